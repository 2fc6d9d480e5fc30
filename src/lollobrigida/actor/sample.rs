// SPDX-License-Identifier: GPL-2.0-only
//! Where a task computed, by its own look at its CPU after each chunk. All memory is
//! allocated before, and no system call is made.

use std::collections::BTreeMap;

use super::report::{Report, Span};

/// Spans of one task.
const MOST_SPANS: usize = 4096;
/// Pauses below this are not told from a slow chunk.
const FIRST_GAP_NS: u64 = 20_000;
/// Pauses above this are never given up for room: ten milliseconds are seen on a chart.
const LAST_GAP_NS: u64 = 10_000_000;
/// A chunk that took so many times longer than it should was interrupted.
const SLOW: u64 = 4;

/// Collects.
pub(super) struct Sampler {
    /// Steps by CPU number.
    steps: Vec<u64>,
    spans: Vec<Span>,
    gap_ns: u64,
    /// The list was full then.
    until_ns: Option<u64>,
    /// In the fastest chunk so far.
    ns_per_step: f64,
}

impl Sampler {
    /// For CPUs below `cpus`.
    pub fn new(cpus: usize) -> Self {
        Self {
            steps: vec![0; cpus],
            spans: Vec::with_capacity(MOST_SPANS),
            gap_ns: FIRST_GAP_NS,
            until_ns: None,
            ns_per_step: f64::INFINITY,
        }
    }

    /// A chunk of steps was computed between two times, and ended on a CPU.
    pub fn chunk(&mut self, from_ns: u64, to_ns: u64, cpu: u32, steps: u64) {
        if let Some(count) = self.steps.get_mut(cpu as usize) {
            *count += steps;
        }
        if self.until_ns.is_some() {
            return;
        }
        let took_ns = to_ns.saturating_sub(from_ns);
        self.ns_per_step = self.ns_per_step.min(took_ns as f64 / steps as f64);
        let should_ns = (steps as f64 * self.ns_per_step) as u64;
        let slow_ns = should_ns.saturating_mul(SLOW).saturating_add(self.gap_ns);
        let from_ns = match took_ns > slow_ns {
            true => to_ns - should_ns,
            false => from_ns,
        };
        let gap_ns = self.gap_ns;
        match self.spans.last_mut() {
            Some(open) if open.cpu == cpu && from_ns.saturating_sub(open.to_ns) < gap_ns => {
                open.to_ns = to_ns;
            }
            _ => self.push(Span { cpu, from_ns, to_ns }),
        }
    }

    /// Something that is not steps went on until then, on a CPU.
    pub fn until(&mut self, to_ns: u64, cpu: u32) {
        if let Some(open) = self.spans.last_mut()
            && open.cpu == cpu
            && self.until_ns.is_none()
        {
            open.to_ns = to_ns;
        }
    }

    fn push(&mut self, span: Span) {
        if self.spans.len() == MOST_SPANS {
            self.coarsen();
        }
        if self.spans.len() < MOST_SPANS {
            self.spans.push(span);
        } else {
            self.until_ns = Some(span.from_ns);
        }
    }

    /// Makes room for a quarter by forgetting the shorter pauses.
    fn coarsen(&mut self) {
        while self.spans.len() > MOST_SPANS / 4 * 3 && self.gap_ns < LAST_GAP_NS {
            self.gap_ns *= 2;
            let gap_ns = self.gap_ns;
            self.spans.dedup_by(|next, kept| {
                let one = next.cpu == kept.cpu && next.from_ns.saturating_sub(kept.to_ns) < gap_ns;
                if one {
                    kept.to_ns = next.to_ns;
                }
                one
            });
        }
    }

    /// Enters what was collected, times from `start_ns`.
    pub fn tell(self, start_ns: u64, report: &mut Report) {
        report.steps_per_cpu =
            (0..).zip(self.steps).filter(|(_, steps)| *steps > 0).collect::<BTreeMap<u32, u64>>();
        report.spans = self.spans;
        for span in &mut report.spans {
            span.from_ns = span.from_ns.saturating_sub(start_ns);
            span.to_ns = span.to_ns.saturating_sub(start_ns);
        }
        report.span_gap_ns = self.gap_ns;
        report.spans_until_ns = self.until_ns.map(|ns| ns.saturating_sub(start_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(sampler: Sampler) -> Report {
        let mut report = Report::default();
        sampler.tell(1000, &mut report);
        report
    }

    #[test]
    fn chunks_on_one_cpu_are_one_span_and_a_preempted_one_begins_late() {
        let mut sampler = Sampler::new(2);
        sampler.chunk(1000, 11_000, 0, 10);
        sampler.chunk(11_000, 21_000, 0, 10);
        sampler.chunk(21_000, 9_031_000, 0, 10);
        sampler.chunk(9_031_000, 9_041_000, 1, 10);
        let report = told(sampler);
        let span = |cpu, from_ns, to_ns| Span { cpu, from_ns, to_ns };
        assert_eq!(
            report.spans,
            [span(0, 0, 20_000), span(0, 9_020_000, 9_030_000), span(1, 9_030_000, 9_040_000)]
        );
        assert_eq!(report.steps_per_cpu, BTreeMap::from([(0, 30), (1, 10)]));
        assert_eq!(report.time_per_cpu(4000), BTreeMap::from([(0, 3000), (1, 1000)]));
    }

    #[test]
    fn a_full_list_loses_pauses_before_spans() {
        let mut sampler = Sampler::new(2);
        let mut now = 1000;
        for _ in 0..5 * MOST_SPANS {
            sampler.chunk(now, now + 1000, 0, 1);
            now += 50_000;
        }
        let report = told(sampler);
        assert_eq!(report.spans_until_ns, None);
        assert!(report.spans.len() <= MOST_SPANS && report.span_gap_ns > FIRST_GAP_NS);
        assert_eq!(report.spans[report.spans.len() - 1].to_ns, now - 50_000);

        let mut sampler = Sampler::new(2);
        for i in 0..5000 {
            let from_ns = 1000 + i * 50_000;
            sampler.chunk(from_ns, from_ns + 1000, (i % 2) as u32, 1);
        }
        let report = told(sampler);
        assert_eq!(report.spans.len(), MOST_SPANS);
        assert_eq!(report.spans_until_ns, Some(MOST_SPANS as u64 * 50_000));
        assert_eq!(report.steps_per_cpu, BTreeMap::from([(0, 2500), (1, 2500)]));
    }
}
