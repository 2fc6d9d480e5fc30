// SPDX-License-Identifier: GPL-2.0-only
//! Figures as short texts.

use crate::model::{Field, Value};

/// A number in at most five characters: 99999, 1234k, 56M; beyond 9999G more.
pub fn count(number: f64) -> String {
    let number = if number.is_finite() { number.max(0.0) } else { 0.0 };
    match number {
        n if n > 0.0 && n < 9.95 && n.fract() != 0.0 => format!("{n:.1}"),
        n if n < 99_999.5 => format!("{n:.0}"),
        n if n < 9_999_500.0 => format!("{:.0}k", n / 1e3),
        n if n < 9_999_500_000.0 => format!("{:.0}M", n / 1e6),
        n => format!("{:.0}G", n / 1e9),
    }
}

/// A share in percent, in four characters: 0.3, 74.9, 100.
pub fn percent(percent: f64) -> String {
    if percent < 99.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

/// A time in us, in at most five characters: 0.8us, 44us, 1.2ms, 31s. Empty for none.
pub fn time(us: f64) -> String {
    match us {
        us if us <= 0.0 || us.is_nan() => "-".to_owned(),
        us if us < 9.95 => format!("{us:.1}us"),
        us if us < 999.5 => format!("{us:.0}us"),
        us if us < 9_950.0 => format!("{:.1}ms", us / 1e3),
        us if us < 999_500.0 => format!("{:.0}ms", us / 1e3),
        us if us < 9_950_000.0 => format!("{:.1}s", us / 1e6),
        us if us < 999_500_000.0 => format!("{:.0}s", us / 1e6),
        us => format!("{:.0}m", us / 6e7),
    }
}

/// A time of ns that are whole numbers, see [`time`].
pub fn time_ns(ns: u64) -> String {
    time(ns as f64 / 1e3)
}

/// Hours, minutes and seconds: 1:02:03.
pub fn clock(secs: f64) -> String {
    let secs = secs.max(0.0) as u64;
    format!("{}:{:02}:{:02}", secs / 3_600, secs / 60 % 60, secs % 60)
}

/// A figure as its unit asks for.
pub fn figure(field: &Field, value: Value<'_>) -> String {
    match (value, field.unit) {
        (Value::Text(text), _) => text.to_owned(),
        (Value::Float(number), "%") => percent(number),
        (Value::Float(number), "us") => time(number),
        (Value::Float(number), "s") => {
            if number < 999.95 {
                format!("{number:.1}")
            } else {
                clock(number)
            }
        }
        (Value::Float(number), _) => count(number),
        (Value::Int(number), _) if number < 0 || is_id(field) => number.to_string(),
        (Value::Int(number), _) => count(number as f64),
    }
}

/// Ids are not shortened.
fn is_id(field: &Field) -> bool {
    field.kind == crate::model::Kind::Label
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Described, TaskMetrics};

    #[test]
    fn figures_are_short() {
        let counts = [0.0, 0.25, 9.0, 430.4, 99_999.0, 123_456.0, 56e6, 7e9].map(count);
        assert_eq!(counts, ["0", "0.2", "9", "430", "99999", "123k", "56M", "7000M"]);
        let times = [0.0, 0.84, 44.4, 999.6, 1_234.0, 56_000.0, 2.5e6, 31e6, 6e8, 6e9].map(time);
        let wanted =
            ["-", "0.8us", "44us", "1.0ms", "1.2ms", "56ms", "2.5s", "31s", "600s", "100m"];
        assert_eq!(times, wanted);
        assert_eq!([0.0, 74.94, 99.96, 250.0].map(percent), ["0.0", "74.9", "100", "250"]);
        assert_eq!(clock(3_723.4), "1:02:03");
    }

    #[test]
    fn ids_are_whole_and_negative_numbers_stay() {
        let task =
            TaskMetrics { pid: 4_194_304, nice: -20, attempts: 4_194_304, ..Default::default() };
        let shown = |name: &str| {
            let at = TaskMetrics::FIELDS.iter().position(|field| field.name == name);
            let at = at.expect("a field");
            figure(&TaskMetrics::FIELDS[at], task.values()[at])
        };
        assert_eq!(shown("pid"), "4194304");
        assert_eq!(shown("nice"), "-20");
        assert_eq!(shown("attempts"), "4194k");
    }
}
