// SPDX-License-Identifier: GPL-2.0-only
//! A balancing pass: the loops around policy/balance.h, as an NRT CPU runs them.

use crate::machine::{Kind, Queue};
use crate::model::{Machine, Plant};
use artis_policy::c::{
    ARTIS_MIGRATION_FILL as FILL, ARTIS_MIGRATION_RETURN as RETURN,
    ARTIS_MIGRATION_RT_NRT as RT_NRT, ARTIS_MIGRATION_RT_RT as RT_RT,
};
use artis_policy::{
    Candidate, Haul, Migration, Policy, Seat, filter, haul_is_done, haul_of, haul_took,
    prefers_from, prefers_to, seat_load, steals,
};

/// A seat's number: 0 is the group of NRT CPUs, then the RT CPUs.
type SeatNr = usize;

const NRT_GROUP: SeatNr = 0;

fn policy() -> Policy {
    Policy { imbalance_pct: 25, ..Policy::default() }
}

impl Machine<'_> {
    /// The CPU of an RT seat.
    fn cpu_of(&self, seat: SeatNr) -> usize {
        self.scene.nrt + seat - 1
    }

    fn queue_of(&self, seat: SeatNr) -> &Queue {
        if seat == NRT_GROUP { &self.state.nrt } else { &self.state.own[self.cpu_of(seat)] }
    }

    fn seat(&self, nr: SeatNr, dry: bool) -> Seat {
        let (scene, state) = (self.scene, &self.state);
        let rt = nr != NRT_GROUP;
        let cpus = if rt { self.cpu_of(nr)..self.cpu_of(nr) + 1 } else { 0..scene.nrt };
        let running = cpus.clone().filter_map(|cpu| state.cpu[cpu].curr);
        let own = cpus.clone().flat_map(|cpu| state.own[cpu].items().iter().copied());
        let shared: &[u8] = if rt { &[] } else { state.nrt.items() };
        let tasks: Vec<u8> = running.chain(own).chain(shared.iter().copied()).collect();
        let waits = |rt1: bool| {
            shared.iter().any(|&t| {
                (scene.kind(t) == Kind::Rt1) == rt1 && state.is_calm(t) && state.in_user_mode(t)
            })
        };
        let first = &state.cpu[cpus.start];
        // the oldest is not there to be taken if the CPU is about to run it
        let queue = self.queue_of(nr).items().iter().skip(usize::from(rt && first.kicked));
        let leaving = queue.filter(|&&task| scene.pinned_to(task).is_none()).count();
        let rt1 = tasks.iter().filter(|&&t| scene.kind(t) == Kind::Rt1).count();
        Seat {
            weight: tasks.iter().map(|&task| u64::from(scene.weight(task))).sum(),
            m: if rt { scene.m << 20 } else { (1 << 20) / scene.nrt as u32 },
            queued: leaving as u32,
            rt1: if rt { rt1 as u32 } else { 0 },
            rt: rt.into(),
            rt_busy: (rt && first.busy).into(),
            rt_held: (rt && first.held).into(),
            rt_bound: (rt && tasks.iter().any(|&task| scene.pinned_to(task).is_some())).into(),
            dry: dry.into(),
            calm_waiting: waits(false).into(),
            rt1_waiting: waits(true).into(),
            near: 1,
        }
    }

    fn candidate(&self, task: u8, to: SeatNr) -> Candidate {
        let (scene, state) = (self.scene, &self.state);
        let blind = self.plant == Plant::SectionIgnored;
        let mut cpus =
            if to == NRT_GROUP { 0..scene.nrt } else { self.cpu_of(to)..self.cpu_of(to) + 1 };
        Candidate {
            weight: scene.weight(task),
            rt1: (scene.kind(task) == Kind::Rt1).into(),
            calm: (state.is_calm(task) || blind).into(),
            in_section: (state.in_call(task) && !blind).into(),
            kernel: (scene.kind(task) == Kind::Kernel).into(),
            settled: 1,
            allowed: cpus.any(|cpu| scene.may_run(task, cpu)).into(),
            rt_only: (scene.kind(task) == Kind::PinnedRt).into(),
        }
    }

    /// Where in the giver's queue the first task is that would move.
    fn taker(
        &self,
        migration: Migration,
        (from, to): (SeatNr, SeatNr),
        haul: &Haul,
    ) -> Option<usize> {
        let tasks = self.queue_of(from).items();
        tasks.iter().position(|&task| steals(migration, &self.candidate(task, to), haul))
    }

    /// Do the filter and the first look into the queue allow this pair?
    fn allows(&self, migration: Migration, pair: (SeatNr, SeatNr), dry: bool) -> bool {
        let (from, to) = (self.seat(pair.0, false), self.seat(pair.1, dry));
        let haul = Haul { rt1_too: 1, ..haul_of(migration, &from, &to) };
        filter(migration, &from, &to, &policy()) && self.taker(migration, pair, &haul).is_some()
    }

    /// Of all pairs that this migration allows, the best giver's best.
    fn select(&self, migration: Migration, dry: bool) -> Option<(SeatNr, SeatNr)> {
        let seats: Vec<Seat> = (0..=self.scene.rt).map(|nr| self.seat(nr, dry)).collect();
        let mut best: Option<(SeatNr, SeatNr)> = None;
        for from in 0..seats.len() {
            for to in (0..seats.len()).filter(|&to| to != from) {
                let better = best.is_none_or(|(f, t)| match f == from {
                    true => prefers_to(migration, &seats[to], Some(&seats[t])),
                    false => prefers_from(&seats[from], Some(&seats[f])),
                });
                if better && self.allows(migration, (from, to), dry) {
                    best = Some((from, to));
                }
            }
        }
        best
    }

    fn shift(&mut self, at: usize, (from, to): (SeatNr, SeatNr)) -> u8 {
        let source = if from == NRT_GROUP { None } else { Some(self.cpu_of(from)) };
        let task = match source {
            None => self.state.nrt.remove(at),
            Some(cpu) => self.state.own[cpu].remove(at),
        };
        if to == NRT_GROUP {
            self.state.nrt.push(task);
            self.kick_idle_nrt();
        } else {
            let cpu = self.cpu_of(to);
            self.state.own[cpu].push(task);
            self.state.cpu[cpu].kicked |= self.state.is_asleep(cpu);
        }
        task
    }

    /// Moves what one migration moves between two seats. Returns how many tasks.
    fn haul(&mut self, migration: Migration, pair: (SeatNr, SeatNr), dry: bool) -> usize {
        let mut count = 0;
        let mut haul = haul_of(migration, &self.seat(pair.0, false), &self.seat(pair.1, dry));
        for rt1_too in [0, 1] {
            haul.rt1_too = rt1_too;
            while !haul_is_done(&haul) {
                let evens_out = haul.free == 0;
                let asked = Haul {
                    free: haul.free + u32::from(self.plant == Plant::WeightIgnored),
                    ..haul
                };
                let Some(at) = self.taker(migration, pair, &asked) else { break };
                let before = seat_load(&self.seat(pair.0, false));
                let task = self.shift(at, pair);
                let after = seat_load(&self.seat(pair.1, dry));
                if evens_out && after > before {
                    self.worse = Some((before, after));
                }
                haul_took(&mut haul, self.scene.weight(task));
                count += 1;
            }
        }
        count
    }

    /// A dry NRT CPU takes what waits on an RT CPU into the queue that it shares, at once.
    pub fn pull(&mut self) -> bool {
        self.select(RT_NRT, true).is_some_and(|pair| self.haul(RT_NRT, pair, true) > 0)
    }

    /// What every dispatch of an NRT CPU does: idle RT CPUs get a calm task that waits.
    pub fn fill_idle(&mut self) {
        for seat in 1..=self.scene.rt {
            for migration in [RETURN, FILL] {
                let idle =
                    self.state.is_asleep(self.cpu_of(seat)) && self.queue_of(seat).is_empty();
                if !idle
                    || self.plant == Plant::NoFill
                    || !self.allows(migration, (NRT_GROUP, seat), false)
                {
                    continue;
                }
                // one task: what more there is to even out, the pass does
                let haul = Haul { free: 1, ..Haul::default() };
                if let Some(at) = self.taker(migration, (NRT_GROUP, seat), &haul) {
                    self.shift(at, (NRT_GROUP, seat));
                }
            }
        }
    }

    /// What one NRT CPU does every balance_ns. Returns come after what may take an RT1+ task off an
    /// RT CPU that is busy, so that it gets to another one in the same pass; fills come last.
    pub fn balance(&mut self) {
        for migration in [RT_RT, RT_NRT, RETURN, FILL] {
            let left_out = match self.plant {
                Plant::NoReturn => migration == RETURN,
                Plant::NoFill => migration == FILL,
                _ => false,
            };
            // once for each RT CPU
            for _ in 0..self.scene.rt {
                match self.select(migration, false) {
                    Some(pair) if !left_out => self.haul(migration, pair, false),
                    _ => break,
                };
            }
        }
    }

    /// Is there a pair that the pass should have served?
    pub fn could_return(&self) -> bool {
        (1..=self.scene.rt).any(|to| self.allows(RETURN, (NRT_GROUP, to), false))
    }

    /// Does an idle RT CPU wait for a calm task that waits for a CPU?
    pub fn could_fill_idle(&self) -> bool {
        (1..=self.scene.rt).any(|to| {
            self.state.is_asleep(self.cpu_of(to))
                && self.queue_of(to).is_empty()
                && self.allows(FILL, (NRT_GROUP, to), false)
        })
    }
}
