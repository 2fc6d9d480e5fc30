// SPDX-License-Identifier: GPL-2.0-only
//! The rules to compare: those of `policy/predict.h`, by the C text, those that it had before, and
//! candidates for a better one.

use crate::{History, Policy, Run, c, history_note, is_calm, is_far, period};

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

/// Has the task run for K x C without an attempt? So it has to, by every rule but [`Name::Off`], as
/// long as no interval is known.
fn is_quiet(policy: &Policy, history: &History) -> bool {
    history.quiet_run_ns >= policy.predict_c_ns * u64::from(policy.predict_k)
}

/// [`Name::Wip`]: calm once K times the time since the last attempt reaches the mean interval.
pub fn wip(policy: &Policy, history: &History, now_ns: u64) -> bool {
    let (since_ns, mean_ns) = (now_ns.saturating_sub(history.last_ns), period(history.period_ns));
    if history.period_ns == 0 {
        return is_quiet(policy, history);
    }
    since_ns.saturating_mul(u64::from(policy.predict_k)) >= mean_ns
}

/// [`Name::Run`]: the thesis's two tests, in own run time.
pub fn run(policy: &Policy, history: &History) -> bool {
    if history.period_ns == 0 {
        return is_quiet(policy, history);
    }
    is_far(policy, history.quiet_run_ns, period(history.period_run_ns))
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
        let is_quiet = is_quiet(policy, &self.history);
        policy.predict_rule = match name {
            Name::Thesis => c::ARTIS_PREDICT_THESIS,
            Name::Least => c::ARTIS_PREDICT_LEAST,
            Name::Off => return true,
            Name::Wip => return wip(policy, &self.history, now_ns),
            Name::Run => return run(policy, &self.history),
            Name::Quiet => return is_quiet,
            Name::Recent => return is_quiet || far(least),
            Name::Window => return (is_quiet && quiet > greatest) || far(least),
        };
        is_calm(policy, &self.history, now_ns)
    }
}
