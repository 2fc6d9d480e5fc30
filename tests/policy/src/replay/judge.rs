// SPDX-License-Identifier: GPL-2.0-only
//! How good was a rule? A task that it calls calm at a decision goes to an RT CPU, and is evicted
//! by its next attempt; at a decision where it is not calm any more it leaves by itself.

use super::rules::{Memory, Name};
use super::trace::{Event, What};
use crate::{Policy, Run};
use std::collections::HashMap;

/// What came of the moves of one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Moves to an RT CPU.
    pub moves: u64,
    /// Moves that were followed by an eviction within C of the task's own run time.
    pub wasted: u64,
    /// The same within the horizon, which does not depend on C.
    pub wasted_horizon: u64,
    /// Run time that lay further than the horizon before the next attempt: could be on RT CPUs, ns.
    pub calm_ns: u64,
    /// The part of it that ran on NRT CPUs, ns.
    pub missed_ns: u64,
}

impl Verdict {
    fn percent(part: u64, whole: u64) -> f64 {
        if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
    }

    /// Of the moves, those evicted within C, percent.
    pub fn wasted_pct(&self) -> f64 {
        Self::percent(self.wasted, self.moves)
    }

    /// Of the moves, those evicted within the horizon, percent.
    pub fn wasted_horizon_pct(&self) -> f64 {
        Self::percent(self.wasted_horizon, self.moves)
    }

    /// Of the calm run time, what ran on NRT CPUs, percent.
    pub fn missed_pct(&self) -> f64 {
        Self::percent(self.missed_ns, self.calm_ns)
    }
}

#[derive(Default)]
struct Life {
    memory: Memory,
    run: Run,
    /// Run time at the last event, and at the last charge, ns.
    seen_run_ns: u64,
    charged_run_ns: u64,
    /// Run time at the move to the RT CPU where it is.
    on_rt_since: Option<u64>,
    /// Its attempts still to come, in run time, the next one last.
    attempts: Vec<u64>,
}

impl Life {
    /// It ran up to `run_ns`: how much of that was calm, and where did it run?
    fn account(&mut self, run_ns: u64, horizon_ns: u64, verdict: &mut Verdict) {
        let next = self.attempts.last().copied().unwrap_or(u64::MAX);
        let calm_end = run_ns.min(next.saturating_sub(horizon_ns));
        let calm_ns = calm_end.saturating_sub(self.seen_run_ns);
        verdict.calm_ns += calm_ns;
        if self.on_rt_since.is_none() {
            verdict.missed_ns += calm_ns;
        }
        self.seen_run_ns = run_ns;
    }

    fn attempt(&mut self, event: &Event, policy: &Policy, horizon_ns: u64, verdict: &mut Verdict) {
        self.attempts.pop();
        self.run.attempts += 1;
        if self.run.attempts == 1 {
            self.run.first_attempt_ns = event.clock_ns;
        }
        if let Some(since) = self.on_rt_since.take() {
            let stayed_ns = event.run_ns - since;
            verdict.wasted += u64::from(stayed_ns < policy.predict_c_ns);
            verdict.wasted_horizon += u64::from(stayed_ns < horizon_ns);
        }
    }

    fn charge(&mut self, event: &Event, policy: &Policy) {
        self.run.end_ns = event.clock_ns;
        self.run.run_ns = event.run_ns - self.charged_run_ns;
        self.memory.note(policy, &self.run);
        self.run = Run::default();
        self.charged_run_ns = event.run_ns;
    }
}

/// Replays `events` under a rule; `policy` says C, K and the weight of the past.
///
/// What comes after the last attempt of a task is calm without end. `horizon_ns`: an attempt is
/// near if the task has less run time before it.
pub fn judge(events: &[Event], name: Name, policy: &Policy, horizon_ns: u64) -> Verdict {
    let mut policy = *policy;
    let mut verdict = Verdict::default();
    let mut lives: HashMap<u32, Life> = HashMap::new();
    for event in events.iter().rev() {
        let life = lives.entry(event.task).or_default();
        if event.what == What::Attempt {
            life.attempts.push(event.run_ns);
        }
        // the first event of all is where its account begins
        (life.seen_run_ns, life.charged_run_ns) = (event.run_ns, event.run_ns);
    }
    for event in events {
        let Some(life) = lives.get_mut(&event.task) else { continue };
        life.account(event.run_ns, horizon_ns, &mut verdict);
        match event.what {
            What::Attempt => life.attempt(event, &policy, horizon_ns, &mut verdict),
            What::Run => life.charge(event, &policy),
            What::Place => {
                if !life.memory.is_calm(name, &mut policy, event.clock_ns) {
                    life.on_rt_since = None;
                } else if life.on_rt_since.is_none() {
                    life.on_rt_since = Some(event.run_ns);
                    verdict.moves += 1;
                }
            }
        }
    }
    verdict
}
