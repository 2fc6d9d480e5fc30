// SPDX-License-Identifier: GPL-2.0-only
//! One line of text for each interval: `--stats` and `--monitor`.

use crate::model::Metrics;

/// The interval in one line, without a line feed.
pub fn render(metrics: &Metrics) -> String {
    let mark = if metrics.bodies_on_rt > 0 { "!" } else { "" };
    format!(
        "{:8.1}s  attempts/s {:.0}  evictions/s {:.0}  bodies on RT {}{mark}  RT CPUs: rt {:.1}% ext {:.1}%  \
         residence {:.0} us/s, worst {:.0} us  queued {}",
        metrics.uptime_s,
        metrics.attempts_per_s,
        metrics.evictions_per_s,
        metrics.bodies_on_rt,
        metrics.rt_pct,
        metrics.ext_pct,
        metrics.residence_us_per_s,
        metrics.residence_max_us,
        metrics.shared_queued + metrics.cpus.values().map(|cpu| cpu.queued).sum::<u64>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_with_the_promise_in_it() {
        let metrics = Metrics { uptime_s: 12.0, evictions_per_s: 430.4, ..Metrics::default() };
        let line = render(&metrics);
        assert!(line.contains("evictions/s 430") && line.contains("bodies on RT 0 "), "{line}");
        assert!(!line.contains('\n'));
        let broken = render(&Metrics { bodies_on_rt: 3, ..metrics });
        assert!(broken.contains("bodies on RT 3!"), "{broken}");
    }
}
