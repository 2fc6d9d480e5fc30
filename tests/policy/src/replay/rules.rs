// SPDX-License-Identifier: GPL-2.0-only
//! The rules to compare: those of `policy/predict.h`, by the C text, and candidates for a better one.

use crate::{History, Policy, Run, c, history_note, is_calm};

/// Intervals that [`Name::Recent`] and [`Name::Window`] look back.
const RECENT: usize = 8;

/// A prediction rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// No prediction.
    Off,
    /// The thesis's, in wall time.
    Thesis,
    /// Annex C's, in wall time.
    Wip,
    /// The thesis's, in own run time.
    Run,
    /// Far by the least of the last intervals, or quiet for K x C, in own run time.
    Least,
    /// Candidate: calm after K x C of own run time without an attempt, whatever came before.
    Quiet,
    /// Candidate: as Least, of just the last intervals.
    Recent,
    /// Candidate: the same, but not while an interval as long as the longest of them may go on.
    Window,
}

impl Name {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::Off,
        Self::Thesis,
        Self::Wip,
        Self::Run,
        Self::Least,
        Self::Quiet,
        Self::Recent,
        Self::Window,
    ];
}

/// What is remembered of one task, for all rules.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    history: History,
    /// The last intervals in own run time, ns, the newest last.
    recent: Vec<u64>,
}

impl Memory {
    /// A run has ended.
    pub fn note(&mut self, policy: &Policy, run: &Run) {
        let before = self.history;
        history_note(&mut self.history, policy, run);
        if run.attempts == 0 {
            return;
        }
        // as C does: the first interval goes up to the first attempt, the others are equal
        let spaces = run.end_ns.saturating_sub(run.first_attempt_ns);
        let each = spaces / u64::from(run.attempts);
        let first = before.quiet_run_ns + run.run_ns.saturating_sub(spaces);
        if before.last_ns != 0 {
            self.interval(first);
        }
        for _ in 1..run.attempts.min(64) {
            self.interval(each);
        }
    }

    fn interval(&mut self, ns: u64) {
        self.recent.push(ns);
        if self.recent.len() > RECENT {
            self.recent.remove(0);
        }
    }

    /// Is the task calm by rule `name`? `policy.predict_rule` is set by this.
    pub fn is_calm(&self, name: Name, policy: &mut Policy, now_ns: u64) -> bool {
        let quiet = self.history.quiet_run_ns;
        let c = policy.predict_c_ns;
        let known = self.recent.len() == RECENT;
        let least = self.recent.iter().min().copied().filter(|_| known).unwrap_or(0);
        let greatest = self.recent.iter().max().copied().unwrap_or(0);
        let far = |interval_ns: u64| interval_ns > quiet + c;
        let is_quiet = quiet >= c * u64::from(policy.predict_k);
        policy.predict_rule = match name {
            Name::Off => c::ARTIS_PREDICT_OFF,
            Name::Thesis => c::ARTIS_PREDICT_THESIS,
            Name::Wip => c::ARTIS_PREDICT_WIP,
            Name::Run => c::ARTIS_PREDICT_RUN,
            Name::Least => c::ARTIS_PREDICT_LEAST,
            Name::Quiet => return is_quiet,
            Name::Recent => return is_quiet || far(least),
            Name::Window => return (is_quiet && quiet > greatest) || far(least),
        };
        is_calm(policy, &self.history, now_ns)
    }
}
