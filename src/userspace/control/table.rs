// SPDX-License-Identifier: GPL-2.0-only
//! The state of a running daemon as a table.

use super::{Bounds, State, Value, plain};

/// Renders the state; every line ends with a line feed.
pub fn render(state: &State) -> String {
    let mut rows = vec![["NAME", "VALUE", "DEFAULT", "UNIT", "BOUNDS"].map(str::to_owned)];
    rows.extend(state.values.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 4] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = format!(
        "RT CPUs {}  NRT CPUs {}  policy_seq {}\n\n",
        state.rt_cpus, state.nrt_cpus, state.policy_seq
    );
    for [name, value, default, unit, bounds] in &rows {
        let [names, values, defaults, units] = widths;
        let line = format!(
            "{name:<names$}  {value:>values$}  {default:>defaults$}  {unit:<units$}  {bounds}"
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if !state.values.values().all(Value::is_default) {
        text.push_str("\n* is not the default\n");
    }
    text
}

fn row((name, value): (&String, &Value)) -> [String; 5] {
    let mark = if value.is_default() { "" } else { "*" };
    let bounds = match &value.bounds {
        Bounds::Range { min, max } => format!("{min} to {max}"),
        Bounds::Words { one_of } => one_of.join(", "),
    };
    let (now, default) = (plain(&value.value), plain(&value.default));
    [name.clone(), format!("{mark}{now}"), default, value.unit.clone(), bounds]
}
