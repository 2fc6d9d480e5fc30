// SPDX-License-Identifier: GPL-2.0-only
//! Which trials run at once: one of those that need all of the host, and beside it one that takes what
//! that leaves; two of these once there is none of the first.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::scenarios::Host;

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
    /// By whether they take what is left, then in order.
    waiting: BTreeSet<(bool, usize)>,
    /// Of those that need all of the host, and of those that take what is left.
    running: [usize; 2],
}

impl State {
    fn may_begin(&self, trial: (bool, usize)) -> bool {
        let (shares, _) = trial;
        let alone = self.running[0] > 0 || self.waiting.range(..(true, 0)).next().is_some();
        let most = if shares && !alone { AT_ONCE } else { 1 };
        let first = self.waiting.range((shares, 0)..).next() == Some(&trial);
        first
            && self.running[usize::from(shares)] < most
            && self.running.iter().sum::<usize>() < AT_ONCE
    }
}

/// A trial runs while this exists.
pub struct Turn<'a> {
    lanes: &'a Lanes,
    shares: bool,
}

impl Lanes {
    /// Waits until the trial with this `number`, which counts all of the run in order, may run.
    pub fn turn(&self, host: Host, number: usize) -> Turn<'_> {
        let shares = host == Host::Shared;
        let mut state = self.state();
        state.waiting.insert((shares, number));
        while !state.may_begin((shares, number)) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.remove(&(shares, number));
        state.running[usize::from(shares)] += 1;
        drop(state);
        self.changed.notify_all();
        Turn { lanes: self, shares }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.lanes.state().running[usize::from(self.shares)] -= 1;
        self.lanes.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::State;

    fn state(waiting: &[(bool, usize)], running: [usize; 2]) -> State {
        State { waiting: waiting.iter().copied().collect(), running }
    }

    #[test]
    fn one_needs_the_host_and_one_takes_the_rest() {
        let all = [(false, 0), (false, 3), (true, 1), (true, 2)];
        let begins = |running| all.map(|trial| state(&all, running).may_begin(trial));
        assert_eq!(begins([0, 0]), [true, false, true, false]);
        assert_eq!(begins([1, 0]), [false, false, true, false]);
        assert_eq!(begins([0, 1]), [true, false, false, false]);
        assert_eq!(begins([1, 1]), [false; 4]);
    }

    #[test]
    fn two_take_the_rest_once_there_is_no_other() {
        let rest = [(true, 1), (true, 2)];
        let begins = |running| rest.map(|trial| state(&rest, running).may_begin(trial));
        assert_eq!(begins([0, 1]), [true, false]);
        assert_eq!(begins([1, 1]), [false; 2]);
        assert_eq!(begins([0, 2]), [false; 2]);
    }
}
