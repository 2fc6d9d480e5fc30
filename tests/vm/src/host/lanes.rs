// SPDX-License-Identifier: GPL-2.0-only
//! Which trials run at once: one of those that need all of the host, and beside it one that takes what
//! that leaves; two of these once there is none of the first. What takes very long runs beside none
//! that needs all of the host, and two of it at a time: one that needs the host waits for all of them.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::scenarios::{Host, Scenario, counts_instructions};

/// So many trials run at once.
pub const AT_ONCE: usize = 2;

/// The trials of a run, each in a thread of its own, which waits for its turn.
#[derive(Default)]
pub struct Lanes {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By lane, then in order.
    waiting: BTreeSet<(usize, usize)>,
    /// By lane.
    running: [usize; 3],
}

/// Trials that need all of the host,
const ALONE: usize = 0;
/// that take what is left,
const REST: usize = 1;
/// that take very long.
const LONG: usize = 2;

impl State {
    fn may_begin(&self, trial: (usize, usize)) -> bool {
        let (lane, _) = trial;
        let alone = self.running[ALONE] > 0 || self.waiting.range(..(REST, 0)).next().is_some();
        let fits = match lane {
            ALONE => self.running[ALONE] + self.running[LONG] == 0,
            REST => !alone || self.running[REST] == 0,
            _ => self.running[ALONE] == 0 && (!alone || self.running[LONG] > 0),
        };
        let first = self.waiting.range((lane, 0)..).next() == Some(&trial);
        first && fits && self.running.iter().sum::<usize>() < AT_ONCE
    }
}

/// A trial runs while this exists.
pub struct Turn<'a> {
    lanes: &'a Lanes,
    lane: usize,
}

impl Lanes {
    /// Waits until the trial with this `number`, which counts all of the run in order, may run.
    pub fn turn(&self, scenario: &Scenario, number: usize) -> Turn<'_> {
        let lane = match scenario.host {
            Host::Shared if counts_instructions(scenario.boot) => REST,
            Host::Shared => LONG,
            Host::Alone | Host::Timed => ALONE,
        };
        let mut state = self.state();
        state.waiting.insert((lane, number));
        while !state.may_begin((lane, number)) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.remove(&(lane, number));
        state.running[lane] += 1;
        drop(state);
        self.changed.notify_all();
        Turn { lanes: self, lane }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.lanes.state().running[self.lane] -= 1;
        self.lanes.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{ALONE, LONG, REST, State};

    fn state(waiting: &[(usize, usize)], running: [usize; 3]) -> State {
        State { waiting: waiting.iter().copied().collect(), running }
    }

    #[test]
    fn one_needs_the_host_and_one_takes_the_rest() {
        let all = [(ALONE, 0), (ALONE, 3), (REST, 1), (REST, 2)];
        let begins = |running| all.map(|trial| state(&all, running).may_begin(trial));
        assert_eq!(begins([0, 0, 0]), [true, false, true, false]);
        assert_eq!(begins([1, 0, 0]), [false, false, true, false]);
        assert_eq!(begins([0, 1, 0]), [true, false, false, false]);
        assert_eq!(begins([1, 1, 0]), [false; 4]);
    }

    #[test]
    fn two_take_the_rest_once_there_is_no_other() {
        let rest = [(REST, 1), (REST, 2)];
        let begins = |running| rest.map(|trial| state(&rest, running).may_begin(trial));
        assert_eq!(begins([0, 1, 0]), [true, false]);
        assert_eq!(begins([1, 1, 0]), [false; 2]);
        assert_eq!(begins([0, 2, 0]), [false; 2]);
    }

    #[test]
    fn what_takes_long_is_beside_none_that_needs_the_host() {
        let long = [(LONG, 1), (LONG, 2)];
        assert!(state(&long, [0, 0, 1]).may_begin(long[0]));
        assert!(!state(&long, [1, 0, 0]).may_begin(long[0]));
        let both = [(ALONE, 0), (LONG, 1)];
        assert!(!state(&both, [0, 0, 1]).may_begin(both[0]));
        assert!(state(&both, [0, 0, 1]).may_begin(both[1]), "half of the host would idle");
        assert_eq!(both.map(|trial| state(&both, [0, 0, 0]).may_begin(trial)), [true, false]);
    }
}
