// SPDX-License-Identifier: GPL-2.0-only
//! Rules as a table.

use super::RuleShown;
use crate::config::rules::Rule;

/// What a rule says of the treatment; all its other keys say which tasks it is about.
const TREATMENT: [&str; 5] = ["class", "priority", "rr", "rt-cpus", "adopt"];

/// Renders the rules in their order; every line ends with a line feed.
pub fn render(rules: &[RuleShown]) -> String {
    if rules.is_empty() {
        return "no rules: every task is treated alike, but for those of scx_artis run and ctl \
                class\n"
            .to_owned();
    }
    let mut rows = vec![["NR", "TASKS", "TREATMENT", "FROM"].map(str::to_owned)];
    rows.extend(rules.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 3] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for [nr, tasks, treatment, from] in &rows {
        let [nrs, all_tasks, treatments] = widths;
        text += &format!("{nr:>nrs$}  {tasks:<all_tasks$}  {treatment:<treatments$}  {from}\n");
    }
    text
}

fn row(shown: &RuleShown) -> [String; 4] {
    let said = |of_treatment: bool| {
        let keys = keys(&shown.rule)
            .into_iter()
            .filter(|(key, _)| key != "name" && TREATMENT.contains(&key.as_str()) == of_treatment);
        keys.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    };
    let treatment = match said(true) {
        none if none.is_empty() => "as without a rule".to_owned(),
        some => some,
    };
    let from = match &shown.rule.name {
        Some(name) => format!("\"{name}\", {}", shown.from),
        None => shown.from.clone(),
    };
    [shown.nr.to_string(), said(false), treatment, from]
}

/// The keys that the rule has, in the order of their declaration, with values as in a file.
fn keys(rule: &Rule) -> Vec<(String, String)> {
    let table = toml::Table::try_from(rule).unwrap_or_default();
    let mut keys: Vec<_> = table.into_iter().map(|(key, value)| (key, value.to_string())).collect();
    keys.sort_by_key(|(key, _)| TREATMENT.iter().position(|name| name == key));
    keys
}
