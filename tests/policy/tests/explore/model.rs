// SPDX-License-Identifier: GPL-2.0-only
//! What can happen on the machine: each step is one event of the kernel and what the scheduler does
//! with it, after src/bpf/events and src/bpf/queues, with the same C functions for every rule.
//!
//! Virtual time is left out: queues are first in, first out, and nobody is preempted for it. Steps
//! are atomic: what happens within a hand-over is checked in tests/handover.

use crate::machine::{Kind, Queue, STALE, Scene, State};
use artis_policy::c::{
    ARTIS_SECTION_CALL, ARTIS_SECTION_NONE, ARTIS_SECTION_SLEEPING, artis_ring, artis_ring_entry,
    artis_ring_pid, artis_ring_pop, artis_ring_push, artis_ring_seq,
};
use artis_policy::{Place, PlaceIn, place};

/// A bug put into the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    None,
    /// A full ring is an error that nobody handles.
    OverflowIgnored,
    /// Stale entries are not told from others.
    SeqIgnored,
    /// An evicted task's NRT CPU is not woken.
    NoKick,
    NoFill,
    NoReturn,
    /// The pass moves whatever waits.
    WeightIgnored,
    /// The pass does not look whether a task is in the kernel.
    SectionIgnored,
}

/// Slots of a ring that entries of tasks may take, so that it overflows.
const ROOM: usize = 2;
const SLOTS: usize = 16;

/// A state, and what may be done to it.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    pub scene: &'a Scene,
    pub plant: Plant,
    pub state: State,
    /// The load of the giver before, and the receiver's after a move that was to even out.
    pub worse: Option<(u64, u64)>,
}

/// A real ring of C with the entries of `queue`, and so many strangers' before them that `ROOM` is left.
fn ring_of(queue: &Queue) -> artis_ring {
    let mut ring = artis_ring::default();
    for item in std::iter::repeat_n(&0xff, SLOTS - ROOM).chain(queue.items()) {
        let seq = u32::from(item & STALE == 0);
        // SAFETY: a live ring that nobody else sees.
        assert!(unsafe {
            artis_ring_push(&mut ring, artis_ring_entry(u32::from(item & !STALE), seq))
        });
    }
    ring
}

impl Machine<'_> {
    pub fn kick_idle_nrt(&mut self) -> bool {
        let idle = (0..self.scene.nrt).find(|&cpu| self.state.is_asleep(cpu));
        if let Some(cpu) = idle {
            self.state.cpu[cpu].kicked = true;
        }
        idle.is_some()
    }

    fn run(&mut self, cpu: usize, task: u8) {
        self.state.cpu[cpu].curr = Some(task);
        let t = &mut self.state.task[usize::from(task)];
        if u32::from(t.section) == ARTIS_SECTION_SLEEPING {
            t.section = ARTIS_SECTION_NONE as u8;
        }
    }

    /// artis_place(), for a task that ran on `cpu`.
    fn verdict(&self, task: u8, cpu: usize, woken: bool, put_back: bool) -> Place {
        place(&PlaceIn {
            section: self.state.task[usize::from(task)].section.into(),
            woken,
            calm: self.state.is_calm(task),
            kernel: self.scene.kind(task) == Kind::Kernel,
            unsettled: false,
            on_rt: self.scene.is_rt(cpu),
            put_back,
            rt1: self.scene.kind(task) == Kind::Rt1,
            displaced: false,
            ahead: false,
        })
    }

    fn idle_rt(&self, task: u8) -> Option<usize> {
        let idle = |&cpu: &usize| self.state.is_asleep(cpu) && self.state.own[cpu].is_empty();
        self.scene.rt_cpus().find(|cpu| idle(cpu) && self.scene.may_run(task, *cpu))
    }

    fn insert_own(&mut self, task: u8, cpu: usize) {
        self.state.own[cpu].push(task);
        self.state.cpu[cpu].kicked |= self.state.is_asleep(cpu);
    }

    fn insert_nrt(&mut self, task: u8) {
        self.state.nrt.push(task);
        self.kick_idle_nrt();
    }

    /// The RT CPU hands over through the ring; if that is full, through the shared queue.
    fn hand_over(&mut self, task: u8, cpu: usize) {
        let mut ring = ring_of(&self.state.ring[cpu]);
        // SAFETY: a live ring that nobody else sees.
        if unsafe { artis_ring_push(&mut ring, artis_ring_entry(task.into(), 1)) } {
            self.state.ring[cpu].push(task);
            // the CPU that is told need not be idle: it looks when it dispatches next
            if self.plant != Plant::NoKick {
                self.kick_idle_nrt();
            }
        } else if self.plant != Plant::OverflowIgnored {
            self.insert_nrt(task);
        }
    }

    /// ops.enqueue of a task that ran on `cpu`; `evicted`: because of an attempt on an RT CPU.
    fn enqueue(&mut self, task: u8, cpu: usize, woken: bool, put_back: bool, evicted: bool) {
        // queued again: entries that still name it are stale
        for ring in &mut self.state.ring {
            ring.items_mut().iter_mut().filter(|t| **t == task).for_each(|t| *t |= STALE);
        }
        if let Some(only) = self.scene.pinned_to(task) {
            return self.insert_own(task, only);
        }
        match self.verdict(task, cpu, woken, put_back) {
            Place::RtStay if self.state.own[cpu].is_empty() => {
                if put_back && self.kick_idle_nrt() {
                    self.state.nrt.push(task);
                } else {
                    self.insert_own(task, cpu);
                }
            }
            Place::RtIdle => match self.idle_rt(task) {
                Some(rt) => self.insert_own(task, rt),
                None => self.insert_nrt(task),
            },
            _ if evicted => self.hand_over(task, cpu),
            _ => self.insert_nrt(task),
        }
    }

    pub fn wake(&mut self, task: u8) {
        self.state.task[usize::from(task)].runnable = true;
        if self.scene.pinned_to(task).is_none() {
            // ops.select_cpu
            if let Some(cpu) = (0..self.scene.nrt).find(|&cpu| self.state.is_asleep(cpu)) {
                return self.run(cpu, task);
            }
            if self.verdict(task, 0, true, false) == Place::RtIdle
                && let Some(rt) = self.idle_rt(task)
            {
                return self.insert_own(task, rt);
            }
        }
        self.enqueue(task, 0, true, false, false);
        // who may run nowhere else takes the CPU from a guest
        if let Some(cpu) = self.scene.pinned_to(task).filter(|&cpu| self.scene.is_rt(cpu))
            && !self.state.cpu[cpu].busy
            && let Some(guest) = self.state.cpu[cpu].curr
            && self.scene.pinned_to(guest).is_none()
        {
            self.state.cpu[cpu].curr = None;
            self.enqueue(guest, cpu, false, false, false);
            self.dispatch(cpu, None, false);
        }
    }

    /// The task that runs on `cpu` enters the kernel.
    pub fn attempt(&mut self, cpu: usize, task: u8) {
        let t = &mut self.state.task[usize::from(task)];
        (t.section, t.calm) = (ARTIS_SECTION_CALL as u8, false);
        if self.scene.is_rt(cpu) && self.scene.pinned_to(task).is_none() {
            self.state.cpu[cpu].curr = None;
            self.enqueue(task, cpu, false, false, true);
            self.dispatch(cpu, None, false);
        }
    }

    /// The task that runs on `cpu` sleeps, in a call of this section, or ends.
    pub fn block(&mut self, cpu: usize, task: u8, section: u32, pass: bool) {
        self.state.cpu[cpu].curr = None;
        let t = &mut self.state.task[usize::from(task)];
        (t.runnable, t.section) = (false, section as u8);
        self.dispatch(cpu, None, pass);
    }

    /// The affinity of a task in the FIFO of `cpu` changes: another CPU takes it off and queues it.
    pub fn requeue(&mut self, cpu: usize, at: usize) {
        let task = self.state.ring[cpu].items()[at];
        self.enqueue(task, cpu, false, false, false);
    }

    /// A real-time task takes `cpu`; what runs there is put back.
    pub fn rt_comes(&mut self, cpu: usize) {
        self.state.cpu[cpu].busy = true;
        self.state.cpu[cpu].kicked = false;
        if let Some(task) = self.state.cpu[cpu].curr.take() {
            self.enqueue(task, cpu, false, true, false);
        }
    }

    pub fn rt_leaves(&mut self, cpu: usize) {
        (self.state.cpu[cpu].busy, self.state.cpu[cpu].held) = (false, false);
        self.dispatch(cpu, None, false);
    }

    /// ops.dispatch; `prev`: its slice is over; `pass`: it is time for a balancing pass.
    pub fn dispatch(&mut self, cpu: usize, prev: Option<u8>, pass: bool) {
        self.state.cpu[cpu].kicked = false;
        if let Some(task) = prev {
            self.state.cpu[cpu].curr = None;
            self.enqueue(task, cpu, false, false, false);
        }
        if !self.scene.is_rt(cpu) {
            self.drain();
        }
        let mut next = self.state.own[cpu].pop();
        if !self.scene.is_rt(cpu) {
            next = next.or_else(|| self.state.nrt.pop());
            if next.is_none() && self.pull() {
                next = self.state.nrt.pop();
            }
        }
        // pinned tasks elsewhere in the queue never are
        if let Some(task) = next {
            assert!(self.scene.may_run(task, cpu), "{task} on {cpu}: {:?}", self.state);
            self.run(cpu, task);
        }
        if !self.scene.is_rt(cpu) {
            self.fill_idle();
            if pass {
                self.balance();
                self.fill_idle();
            }
        }
        // it looked just now, unless the pass brought something meanwhile
        self.state.cpu[cpu].kicked &= self.state.cpu[cpu].curr.is_none();
    }

    /// An NRT CPU reads all FIFOs and puts what is not stale into the shared queue.
    fn drain(&mut self) {
        for cpu in self.scene.rt_cpus() {
            let mut ring = ring_of(&self.state.ring[cpu]);
            self.state.ring[cpu] = Queue::default();
            let mut entry = 0;
            // SAFETY: a live ring that nobody else sees.
            while unsafe { artis_ring_pop(&mut ring, &mut entry) } {
                // SAFETY: plain values.
                let (pid, seq) = unsafe { (artis_ring_pid(entry), artis_ring_seq(entry)) };
                if usize::try_from(pid).is_ok_and(|pid| pid < self.scene.tasks.len())
                    && (seq == 1 || self.plant == Plant::SeqIgnored)
                {
                    self.insert_nrt(pid as u8);
                }
            }
        }
    }
}
