// SPDX-License-Identifier: GPL-2.0-only
//! From the name and the unit of a [`Field`] to those of a metric: OpenMetrics wants base
//! units, and wants them in the name.

use prometheus_client::registry::Unit;

use crate::model::{Field, Kind};

/// A figure as a metric.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Its name without `artis_`, the unit, and what OpenMetrics adds for its type.
    pub stem: String,
    /// The base unit that the name ends with, if OpenMetrics knows one.
    pub unit: Option<Unit>,
    /// What the figure is multiplied with.
    pub factor: f64,
    /// Does it only grow?
    pub counter: bool,
    /// What it is.
    pub help: String,
}

/// What becomes of a unit.
struct Base {
    /// End of the names of fields that have it.
    end: &'static str,
    /// What the name ends with instead, which is the unit unless `is_unit` is false.
    base: &'static str,
    is_unit: bool,
    factor: f64,
    /// Added to the description, which is about the field.
    note: &'static str,
}

/// What becomes of the unit of a field. `None`: nobody has said.
fn base(unit: &str) -> Option<Base> {
    let base = |end, base, is_unit, factor, note| Some(Base { end, base, is_unit, factor, note });
    match unit {
        "" => base("", "", false, 1.0, ""),
        "%" => base("_pct", "ratio", true, 1e-2, "; here as a ratio, 1 is 100 %"),
        "s" => base("_s", "seconds", true, 1.0, ""),
        "us" => base("_us", "seconds", true, 1e-6, "; here in seconds"),
        "1/s" => base("_per_s", "per_second", false, 1.0, ""),
        "us/s" => base("_us_per_s", "ratio", true, 1e-6, "; here as a ratio, seconds per second"),
        _ => None,
    }
}

impl Metric {
    /// The metric of `field`, whose name follows `prefix` (as `task_`). `None`: it is no
    /// number, or of a unit that has no place here.
    pub fn new(prefix: &str, field: &Field) -> Option<Self> {
        if field.kind == Kind::Label {
            return None;
        }
        let Base { end, base, is_unit, factor, note } = base(field.unit)?;
        let name = field.name.strip_suffix(end)?;
        let (mut stem, mut unit) = (format!("{prefix}{name}"), None);
        if is_unit {
            unit = Some(Unit::Other(base.to_owned()));
        } else if !base.is_empty() {
            stem = format!("{stem}_{base}");
        }
        // a maximum only grows, too, but its rate is no figure
        let counter = field.kind == Kind::Counter && !name.ends_with("_max");
        Some(Self { stem, unit, factor, counter, help: format!("{}{note}", field.desc) })
    }

    /// Its whole name, as it is asked for.
    pub fn name(&self) -> String {
        let unit = self.unit.as_ref().map_or(String::new(), |unit| format!("_{}", unit.as_str()));
        format!("{}_{}{unit}{}", super::PREFIX, self.stem, if self.counter { "_total" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CauseMetrics, CpuMetrics, Described, Metrics, TaskMetrics};

    fn field(name: &'static str, unit: &'static str, kind: Kind) -> Field {
        Field { name, title: "", unit, kind, desc: "It" }
    }

    fn name(name: &'static str, unit: &'static str, kind: Kind) -> String {
        Metric::new("task_", &field(name, unit, kind)).expect("a metric").name()
    }

    #[test]
    fn units_become_base_units() {
        assert_eq!(name("cpu_pct", "%", Kind::Gauge), "artis_task_cpu_ratio");
        assert_eq!(name("run_s", "s", Kind::Counter), "artis_task_run_seconds_total");
        assert_eq!(name("wait_p50_us", "us", Kind::Gauge), "artis_task_wait_p50_seconds");
        assert_eq!(name("runs_per_s", "1/s", Kind::Gauge), "artis_task_runs_per_second");
        assert_eq!(name("residence_us_per_s", "us/s", Kind::Gauge), "artis_task_residence_ratio");
        assert_eq!(name("runs", "", Kind::Counter), "artis_task_runs_total");
        assert_eq!(name("wait_max_us", "us", Kind::Counter), "artis_task_wait_max_seconds");
        let pct = Metric::new("", &field("cpu_pct", "%", Kind::Gauge)).expect("a metric");
        assert_eq!(pct.factor, 0.01);
        assert!(Metric::new("", &field("comm", "", Kind::Label)).is_none());
        assert!(Metric::new("", &field("far", "furlong", Kind::Gauge)).is_none());
    }

    #[test]
    fn each_figure_has_a_metric() {
        let all = [Metrics::FIELDS, CpuMetrics::FIELDS, TaskMetrics::FIELDS, CauseMetrics::FIELDS];
        for field in all.into_iter().flatten().filter(|field| field.kind != Kind::Label) {
            let metric = Metric::new("", field);
            let metric = metric.unwrap_or_else(|| panic!("{} in {}", field.name, field.unit));
            // the encoder does not escape them
            assert!(!metric.help.contains(['\n', '\\']), "{}", metric.help);
        }
    }
}
