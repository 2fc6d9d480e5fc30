// SPDX-License-Identifier: GPL-2.0-only
//! Made-up lives of tasks, from a seed: regular short and long periods, long computing, bursts,
//! changes of phase, and sleepers, on CPUs that each task shares with some others.

use super::trace::{Event, What};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// How a task lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// Attempts every 0.1 to 2 ms.
    Short,
    /// Attempts every 2 to 20 ms.
    Middling,
    /// Attempts every 20 to 200 ms.
    Long,
    /// Computes, and attempts every 2 to 10 s.
    Compute,
    /// 20 to 100 attempts 20 to 100 us apart, then computes for 50 to 300 ms.
    Burst,
    /// Turns of 1 to 3 s: attempts every 0.5 ms, or only computes.
    Phases,
    /// Runs for 0.2 to 1 ms, attempts, sleeps for 10 to 50 ms.
    Sleeper,
}

impl Habit {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Short,
        Self::Middling,
        Self::Long,
        Self::Compute,
        Self::Burst,
        Self::Phases,
        Self::Sleeper,
    ];
}

/// xorshift64*: the same trace from the same seed, everywhere.
struct Random(u64);

impl Random {
    /// From `low` to `high`.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        low + (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % (high - low + 1)
    }

    /// `ns`, give or take a fifth.
    fn about(&mut self, ns: u64) -> u64 {
        self.between(ns - ns / 5, ns + ns / 5)
    }
}

/// Run time to the next attempt, and the sleep after it.
struct Life {
    habit: Habit,
    /// Mean interval of those that have one, ns.
    interval_ns: u64,
    /// Attempts left in this burst; run time left in this phase.
    left: u64,
}

impl Life {
    fn new(habit: Habit, random: &mut Random) -> Self {
        let interval_ns = match habit {
            Habit::Short => random.between(100 * US, 2 * MS),
            Habit::Middling => random.between(2 * MS, 20 * MS),
            Habit::Long => random.between(20 * MS, 200 * MS),
            Habit::Phases => 500 * US,
            _ => 0,
        };
        Self { habit, interval_ns, left: 0 }
    }

    fn next(&mut self, random: &mut Random) -> (u64, u64) {
        match self.habit {
            Habit::Short | Habit::Middling | Habit::Long => (random.about(self.interval_ns), 0),
            Habit::Compute => (random.between(2_000 * MS, 10_000 * MS), 0),
            Habit::Sleeper => (random.between(200 * US, MS), random.between(10 * MS, 50 * MS)),
            Habit::Burst if self.left == 0 => {
                self.left = random.between(20, 100);
                (random.between(50 * MS, 300 * MS), 0)
            }
            Habit::Burst => {
                self.left -= 1;
                (random.between(20 * US, 100 * US), 0)
            }
            Habit::Phases => {
                let ns = random.about(self.interval_ns);
                if self.left >= ns {
                    self.left -= ns;
                    return (ns, 0);
                }
                // computes for one phase, then is busy for one
                self.left = random.between(1_000 * MS, 3_000 * MS);
                (random.between(1_000 * MS, 3_000 * MS), 0)
            }
        }
    }
}

/// The life of one task for `span_ns` of the clock. Its slices last 3 ms, with 0 to 9 ms of waiting
/// in between; a balancing pass looks at it every 4 ms while it waits.
pub fn live(task: u32, habit: Habit, seed: u64, span_ns: u64) -> Vec<Event> {
    const SLICE: u64 = 3 * MS;
    const PASS: u64 = 4 * MS;
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut life = Life::new(habit, &mut random);
    let (mut events, mut clock_ns, mut run_ns, mut slice_ns) = (Vec::new(), MS, 0, SLICE);
    let (mut to_attempt, mut sleep_ns) = life.next(&mut random);
    while clock_ns < span_ns {
        let step = to_attempt.min(slice_ns);
        (clock_ns, run_ns) = (clock_ns + step, run_ns + step);
        (to_attempt, slice_ns) = (to_attempt - step, slice_ns - step);
        let mut note = |clock_ns, what| events.push(Event { task, run_ns, clock_ns, what });
        if to_attempt == 0 {
            note(clock_ns, What::Attempt);
            // what the call takes
            clock_ns += random.between(1, 20) * US;
            if sleep_ns > 0 {
                note(clock_ns, What::Run);
                clock_ns += sleep_ns;
                slice_ns = SLICE;
            }
            (to_attempt, sleep_ns) = life.next(&mut random);
        }
        if slice_ns == 0 {
            note(clock_ns, What::Run);
            note(clock_ns, What::Place);
            let end_ns = clock_ns + random.between(0, 9 * MS);
            while clock_ns + PASS < end_ns {
                clock_ns += PASS;
                note(clock_ns, What::Place);
            }
            (clock_ns, slice_ns) = (end_ns, SLICE);
        }
    }
    events
}

/// `each` tasks of every habit, in the order of the clock.
pub fn mix(each: u32, seed: u64, span_ns: u64) -> Vec<Event> {
    let mut events = Vec::new();
    for (kind, habit) in Habit::ALL.into_iter().enumerate() {
        for i in 0..each {
            let task = kind as u32 * each + i;
            events.extend(live(task, habit, seed + u64::from(task), span_ns));
        }
    }
    events.sort_by_key(|event| event.clock_ns);
    events
}
