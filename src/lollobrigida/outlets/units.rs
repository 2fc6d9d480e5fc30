// SPDX-License-Identifier: GPL-2.0-only
//! Figures for eyes: scaled to a fitting unit, three to four digits.

use crate::result::figures::Unit;

/// With its unit; a NO-BREAK SPACE between, so that no line ends there.
pub fn text(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ns => scaled(value, &[("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)]),
        Unit::Uj => scaled(value, &[("µJ", 1.0), ("mJ", 1e3), ("J", 1e6), ("kJ", 1e9)]),
        Unit::Share => format!("{}\u{a0}%", fixed(value * 100.0, 1)),
        Unit::Index => fixed(value, 4),
        Unit::Count if value.fract() == 0.0 => format!("{value}"),
        Unit::Count => fixed(value, 1),
        Unit::StepsPerUs => format!("{}\u{a0}/µs", digits(value)),
    }
}

/// A time.
pub fn ns(value: u64) -> String {
    text(value as f64, Unit::Ns)
}

/// In the greatest unit that leaves at least 1 before the point.
fn scaled(value: f64, units: &[(&str, f64)]) -> String {
    // What would be rounded up to 1000 of a unit is 1 of the next.
    let fits = |by: f64| value.abs() >= 0.9995 * by;
    let (unit, by) = units.iter().rev().find(|u| fits(u.1)).or(units.first()).unwrap_or(&("", 1.0));
    format!("{}\u{a0}{unit}", digits(value / by))
}

/// Three digits or all before the point.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if v < 9.995 => fixed(value, 2),
        v if v < 99.95 => fixed(value, 1),
        _ => fixed(value, 0),
    }
}

fn fixed(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_get_the_unit_that_fits() {
        let ns = |v| text(v, Unit::Ns).replace('\u{a0}', " ");
        let cases = [
            (0.0, "0 ns"),
            (0.25, "0.25 ns"),
            (999.0, "999 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (1_234.0, "1.23 µs"),
            (12_345.0, "12.3 µs"),
            (123_456.0, "123 µs"),
            (999_600.0, "1.00 ms"),
            (1e9, "1.00 s"),
            (123_456e9, "123456 s"),
            (-1500.0, "-1.50 µs"),
        ];
        assert_eq!(cases.map(|(v, _)| ns(v)), cases.map(|(_, t)| t));
    }

    #[test]
    fn other_units() {
        let plain = |v, u| text(v, u).replace('\u{a0}', " ");
        assert_eq!(plain(0.1234, Unit::Share), "12.3 %");
        assert_eq!(plain(0.99987, Unit::Index), "0.9999");
        assert_eq!((plain(3.0, Unit::Count), plain(3.25, Unit::Count)), ("3".into(), "3.2".into()));
        assert_eq!(plain(2_500_000.0, Unit::Uj), "2.50 J");
        assert_eq!(plain(480.2, Unit::StepsPerUs), "480 /µs");
    }
}
