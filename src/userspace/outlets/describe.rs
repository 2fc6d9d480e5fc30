// SPDX-License-Identifier: GPL-2.0-only
//! What each figure is: `--help-stats`, and the tables of docs/statistics.md.

use std::fmt::{self, Write};

use serde_json::Value;

use super::json;
use super::metrics::Metric;
use crate::model::{CauseMetrics, CpuMetrics, Described, Field, Kind, Metrics, TaskMetrics};

/// A group of figures.
struct Group {
    /// What they are about.
    title: &'static str,
    /// Where they are in a line of JSON.
    json: &'static str,
    /// What the names of their metrics begin with, after `artis_`; `None`: they have none.
    metrics: Option<&'static str>,
    fields: &'static [Field],
}

/// All figures.
const GROUPS: [Group; 4] = [
    Group { title: "Machine", json: "machine", metrics: Some(""), fields: Metrics::FIELDS },
    Group {
        title: "CPU",
        json: "machine.cpus[CPU]",
        metrics: Some("cpu_"),
        fields: CpuMetrics::FIELDS,
    },
    Group { title: "Task", json: "tasks[]", metrics: Some("task_"), fields: TaskMetrics::FIELDS },
    Group {
        title: "Cause of attempts of a task",
        json: "tasks[].causes[]",
        metrics: None,
        fields: CauseMetrics::FIELDS,
    },
];

/// A member of what is not a row of figures: events, losses.
struct Member {
    name: String,
    desc: String,
}

fn kind(field: &Field) -> &'static str {
    match field.kind {
        Kind::Label => "label",
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
    }
}

/// All figures as text: `--help-stats`.
///
/// # Errors
/// None that is known: memory is written to.
pub fn help() -> Result<String, fmt::Error> {
    let mut out = String::from(
        "A gauge goes up and down, a counter only grows, a label says what figures are about.\n",
    );
    for Group { title, json, fields, .. } in &GROUPS {
        writeln!(out, "\n{title} (JSON: {json})")?;
        for field in *fields {
            let unit = if field.unit.is_empty() { "-" } else { field.unit };
            writeln!(out, "  {:26} {unit:5} {:8} {}", field.name, kind(field), field.desc)?;
        }
    }
    for (title, about, members) in others() {
        writeln!(out, "\n{title}: {about}")?;
        for Member { name, desc } in members {
            writeln!(out, "  {name:41} {desc}")?;
        }
    }
    Ok(out)
}

/// All figures as the tables of docs/statistics.md.
///
/// # Errors
/// None that is known: memory is written to.
pub fn tables() -> Result<String, fmt::Error> {
    let mut out = String::new();
    for Group { title, json, metrics, fields } in &GROUPS {
        writeln!(out, "### {title}\n\nIn JSON: `{json}`.\n")?;
        writeln!(out, "| name | unit | kind | metric | meaning |\n|---|---|---|---|---|")?;
        for field in *fields {
            let metric = metrics.and_then(|prefix| Metric::new(prefix, field));
            let metric = metric.map_or(String::new(), |metric| format!("`{}`", metric.name()));
            let Field { name, unit, desc, .. } = field;
            writeln!(out, "| `{name}` | {unit} | {} | {metric} | {} |", kind(field), cell(desc))?;
        }
        out.push('\n');
    }
    for (title, about, members) in others() {
        writeln!(out, "### {title}\n\n{about}\n\n| name | meaning |\n|---|---|")?;
        for Member { name, desc } in members {
            writeln!(out, "| `{name}` | {} |", cell(&desc))?;
        }
        out.push('\n');
    }
    Ok(out.trim_end().to_owned() + "\n")
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// What is not a row of figures, from the schema of a line of JSON, where each member has the
/// description that it has in the code.
fn others() -> Vec<(String, String, Vec<Member>)> {
    let schema = json::schema();
    let schema = schema.as_value();
    let def = |name: &str| &schema["$defs"][name];
    let section =
        |title: &str, def: &Value| (title.to_owned(), text(def, "description"), members(def));
    let mut all = vec![
        section("Lost records (lost)", def("Lost")),
        section("What is observed (begin)", def("Begin")),
        section("Any event (events[])", def("Event")),
    ];
    for what in def("Event")["oneOf"].as_array().into_iter().flatten() {
        let name = text(&what["properties"]["event"], "const");
        all.push(section(&format!("Event {name}"), what));
    }
    all
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn members(def: &Value) -> Vec<Member> {
    let properties = def["properties"].as_object().into_iter().flatten();
    let described = properties.filter(|(_, property)| property["const"].is_null());
    described
        .map(|(name, property)| Member { name: name.clone(), desc: text(property, "description") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_there_with_its_members() {
        let all = others();
        let section = |title: &str| {
            let found = all.iter().find(|(name, ..)| name.starts_with(title));
            &found.unwrap_or_else(|| panic!("no {title}")).2
        };
        let names = |title| section(title).iter().map(|m| m.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names("Event eviction"), ["arrived_us", "cause", "from", "left_us", "to"]);
        assert_eq!(names("Event run"), ["cpu", "rt", "run_us"]);
        assert_eq!(names("Any event"), ["at_s", "comm", "pid"]);
        assert_eq!(names("Lost"), ["feed", "over_budget", "ring"]);
        for (title, about, members) in &all {
            assert!(!about.is_empty(), "{title}");
            for member in members {
                assert!(!member.desc.is_empty(), "{title}: {}", member.name);
            }
        }
    }
}
