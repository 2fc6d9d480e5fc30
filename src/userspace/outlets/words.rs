// SPDX-License-Identifier: GPL-2.0-only
//! Figures for eyes: times in the unit that fits, numbers that can be counted at a glance.
//! Before a unit is a NO-BREAK SPACE, so that no line ends there.

use crate::model::TaskMetrics;

/// A time of `ns` nanoseconds in its greatest unit that leaves at least 1 before the point.
pub fn ns(ns: f64) -> String {
    const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    // what would be rounded up to 1000 of a unit is 1 of the next
    let fits = |by: f64| ns.abs() >= 0.9995 * by;
    let (unit, by) = UNITS.into_iter().rev().find(|(_, by)| fits(*by)).unwrap_or(UNITS[0]);
    format!("{}\u{a0}{unit}", digits(ns / by))
}

/// A time of `us` microseconds.
pub fn us(us: f64) -> String {
    ns(us * 1e3)
}

/// How long before `now_s` something was at `at_s`, both in seconds of one clock.
pub fn ago(now_s: f64, at_s: f64) -> String {
    match now_s - at_s {
        past if past < 0.000_001 => "just now".to_owned(),
        past if past < 120.0 => format!("{} ago", ns(past * 1e9)),
        past => format!("{:.0} min ago", past / 60.0),
    }
}

/// Three digits or all before the point.
pub fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A percentage.
pub fn pct(value: f64) -> String {
    format!("{value:.1}\u{a0}%")
}

/// A number with its thousands apart.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something: `what` in the singular; a plural with s.
pub fn count(n: u64, what: &str) -> String {
    match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{} {what}s", number(n)),
    }
}

/// `SCHED_FIFO priority 80`, `SCHED_OTHER`, with the nice value where it is not 0.
pub fn policy(task: &TaskMetrics) -> String {
    let name = format!("SCHED_{}", task.policy);
    match (task.rt_prio, task.nice) {
        (prio @ 1.., _) => format!("{name} priority {prio}"),
        (0, nice) if nice != 0 && !matches!(task.policy.as_str(), "DEADLINE" | "IDLE") => {
            format!("{name}, nice {nice}")
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_get_the_unit_that_fits() {
        let cases = [
            (0.0, "0 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (12_345.0, "12.3 µs"),
            (999_600.0, "1.00 ms"),
            (1e9, "1.00 s"),
            (-1_500.0, "-1.50 µs"),
        ];
        assert_eq!(cases.map(|(v, _)| ns(v).replace('\u{a0}', " ")), cases.map(|(_, text)| text));
        assert_eq!(ago(10.0, 9.5), "500\u{a0}ms ago");
        assert_eq!(ago(10.0, 10.5), "just now", "clocks of two CPUs differ a little");
        assert_eq!(ago(600.0, 0.0), "10 min ago");
    }

    #[test]
    fn numbers_are_read_at_a_glance() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")];
        assert_eq!(cases.map(|(n, _)| number(n)), cases.map(|(_, text)| text));
        assert_eq!(count(0, "attempt"), "no attempts");
        assert_eq!(count(1, "attempt"), "1 attempt");
        assert_eq!(count(1_200, "attempt"), "1,200 attempts");
    }
}
