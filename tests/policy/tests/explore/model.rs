// SPDX-License-Identifier: GPL-2.0-only
//! What happens on a small machine: the steps of the kernel and of src/bpf/queues around the rules
//! of policy/room.h, which decide here as they do there. Steps are atomic against each other.

use crate::machine::{Kind, PutBack, Queue, Scene, State};
use crate::plant::Plant;
use artis_policy::c::{
    ARTIS_QUEUE_BOUND as BOUND, ARTIS_QUEUE_CALM as CALM, ARTIS_QUEUE_OWN as OWN,
    ARTIS_ROUSE_IDLE as ROUSE_IDLE, ARTIS_ROUSE_NRT as ROUSE_NRT,
    ARTIS_ROUSE_PREEMPT as ROUSE_PREEMPT, ARTIS_ROUSE_SELF as ROUSE_SELF,
    ARTIS_SECTION_CALL as SECTION_CALL, ARTIS_SECTION_SLEEPING as SECTION_SLEEPING, artis_facts,
    artis_look, artis_may_use_rt, artis_may_wait, artis_queue_of, artis_rouse, artis_rouse_in,
};
use artis_policy::rt1_order;

/// A place in the order of all queues: RT1+ tasks first.
const FIRST: u64 = 1 << 20;
const LEAD_NS: u64 = 1 << 10;

/// A state, and what may happen next.
pub struct Machine<'a> {
    pub scene: &'a Scene,
    pub plant: Plant,
    pub state: State,
    /// The CPU that dispatches was kicked for its last task.
    pub looks_again: bool,
    /// The CPU to which that task could go is gone when it is queued.
    pub raced: bool,
    /// A move raised the greater of two loads from the first to the second of these.
    pub worse: Option<(u64, u64)>,
}

/// How the heads of the queues and the task that ran compare, where nothing but virtual time tells:
/// every way is explored.
pub type Order = [u64; 4];

impl<'a> Machine<'a> {
    pub fn new(scene: &'a Scene, plant: Plant, state: State) -> Self {
        Self { scene, plant, state, looks_again: false, raced: false, worse: None }
    }

    pub fn planted(&self, plant: Plant) -> bool {
        self.plant == plant
    }

    pub fn is_rt1(&self, task: u8) -> bool {
        self.scene.kind(task) == Kind::Rt1
    }

    pub fn facts(&self, task: u8, cpu: usize, woken: bool) -> artis_facts {
        let section = u32::from(self.state.task[usize::from(task)].section);
        artis_facts {
            nrt_groups: self.scene.groups_of(task, false),
            rt_groups: self.scene.groups_of(task, true),
            cpu: cpu as u32,
            pinned: self.scene.pinned_to(task).is_some(),
            calm: self.state.is_calm(task) || self.planted(Plant::SectionIgnored),
            inside: section != if woken { SECTION_SLEEPING } else { 0 }
                && !self.planted(Plant::SectionIgnored),
            kernel: self.scene.kind(task) == Kind::Kernel,
            unsettled: false,
            rt_forbidden: false,
        }
    }

    pub fn queue_of(&self, facts: &artis_facts) -> u32 {
        // SAFETY: a live struct of C's layout that is only read.
        unsafe { artis_queue_of(facts) }
    }

    pub fn may_use_rt(&self, facts: &artis_facts) -> bool {
        // SAFETY: as above.
        unsafe { artis_may_use_rt(facts) }
    }

    pub fn queue(&mut self, queue: u32, place: usize) -> &mut Queue {
        match queue {
            OWN => &mut self.state.own[place],
            BOUND => &mut self.state.bound[place],
            _ => &mut self.state.calm[place],
        }
    }

    /// Does `cpu` take from `queue` of `place`, once it has looked at what is nearer?
    pub fn takes_from(&self, cpu: usize, queue: u32, place: usize) -> bool {
        match queue {
            OWN => cpu == place,
            BOUND => !self.scene.is_rt(cpu) && self.scene.group(cpu) == place,
            _ => self.scene.group(cpu) == place,
        }
    }

    /// An idle CPU for `task`, as idle_for() looks for one.
    fn idle_for(&self, task: u8, queue: u32, group: usize) -> Option<usize> {
        let find = |rt: bool, near: bool| {
            self.scene.allowed(task).find(|&cpu| {
                self.state.is_asleep(cpu)
                    && self.scene.is_rt(cpu) == rt
                    && (!near || self.scene.group(cpu) == group)
            })
        };
        let of = |rt: bool| find(rt, true).or_else(|| find(rt, false));
        let rt = || if queue == CALM { of(true) } else { None };
        if self.is_rt1(task) { rt().or_else(|| of(false)) } else { of(false).or_else(rt) }
    }

    /// A CPU whose task is lower than RT1+ task `task`, as lower_for() looks for one.
    pub fn lower_for(&self, task: u8, queue: u32) -> Option<usize> {
        let lower = |rt: bool| {
            self.scene.allowed(task).find(|&cpu| {
                let c = &self.state.cpu[cpu];
                let lower = c.curr.is_some_and(|curr| !self.is_rt1(curr));
                self.scene.is_rt(cpu) == rt && !c.busy && !c.kicked && lower
            })
        };
        let rt = if queue == CALM { lower(true) } else { None };
        rt.or_else(|| lower(false))
    }

    /// ops.enqueue of a task whose run queue is that of `cpu`.
    pub fn enqueue(&mut self, task: u8, cpu: usize, woken: bool, last: bool, makes_way: bool) {
        let facts = self.facts(task, cpu, woken);
        let queue = self.queue_of(&facts);
        if queue == OWN {
            let rt1 = self.is_rt1(task);
            let own = &mut self.state.own[cpu];
            if rt1 {
                own.push_first(task)
            } else {
                own.push(task)
            };
            let c = self.state.cpu[cpu];
            let guest = c.curr.is_some_and(|curr| self.scene.pinned_to(curr).is_none());
            // a guest makes way, an idle CPU looks
            self.state.cpu[cpu].kicked |= !self.planted(Plant::NotRoused)
                && !c.busy
                && (c.curr.is_none() || (guest && self.scene.is_rt(cpu)));
            return;
        }
        let here = (queue == CALM || !self.scene.is_rt(cpu)) && self.scene.may_run(task, cpu);
        let mut sees = artis_rouse_in { here, last, idle: false, behind: false };
        let looks = here && (last || makes_way) && !self.is_rt1(task);
        let nrt = self.scene.nrt_cpu(task);
        let mut group = self.scene.group(cpu);
        let mut to = None;
        let found = !(looks || last && self.raced);
        if found {
            to = self.idle_for(task, queue, group);
            sees.idle = to.is_some();
            group = to.map_or(group, |to| self.scene.group(to));
        }
        // SAFETY: a live struct of C's layout that is only read.
        let may_wait = |group: usize| unsafe { artis_may_wait(&facts, queue, group as u32) };
        if self.planted(Plant::MaskIgnored) {
            group = 0;
        } else if !may_wait(group) {
            group = (0..self.scene.groups()).find(|&group| may_wait(group)).expect("a group");
        }
        let rt1 = self.is_rt1(task);
        let waiting = self.queue(queue, group);
        if rt1 {
            waiting.push_first(task)
        } else {
            waiting.push(task)
        };
        if found && !sees.idle && rt1 && !self.planted(Plant::NoPreemption) {
            to = self.lower_for(task, queue);
            sees.behind = to.is_some();
        }
        // SAFETY: as above.
        let kick = match unsafe { artis_rouse(&sees) } {
            ROUSE_SELF => Some(cpu).filter(|_| !self.planted(Plant::LastForgotten)),
            ROUSE_IDLE | ROUSE_PREEMPT => to,
            ROUSE_NRT => Some(nrt).filter(|&nrt| self.state.is_asleep(nrt)),
            _ => None,
        };
        if let Some(to) = kick.filter(|_| !self.planted(Plant::NotRoused)) {
            self.state.cpu[to].kicked = true;
            self.looks_again |= to == cpu;
        }
    }

    /// `task` wakes, which ran on `cpu` last.
    pub fn wake(&mut self, task: u8) {
        self.state.task[usize::from(task)].runnable = true;
        let nrt = self.scene.nrt_cpu(task);
        if let Some(cpu) = self.scene.pinned_to(task) {
            return self.enqueue(task, cpu, true, false, false);
        }
        let facts = self.facts(task, nrt, true);
        let prefers_rt = self.is_rt1(task) && self.may_use_rt(&facts);
        // ops.select_cpu: straight to an idle NRT CPU; to 6.18 that CPU has to look for it
        let idle = self.idle_for(task, BOUND, self.scene.group(nrt));
        if let Some(cpu) = idle.filter(|_| !prefers_rt && facts.nrt_groups != 0) {
            if self.scene.put_back == PutBack::Held {
                let (queue, group) = (self.queue_of(&facts), self.scene.group(cpu));
                self.queue(queue, group).push(task);
                self.state.cpu[cpu].kicked = true;
            } else {
                self.state.cpu[cpu].curr = Some(task);
            }
            return;
        }
        self.enqueue(task, nrt, true, false, false);
        // the kernel preempts the idle task of the CPU of its run queue
        self.state.cpu[nrt].kicked |= self.state.is_asleep(nrt);
    }

    /// The task that runs on `cpu` enters the kernel.
    pub fn attempt(&mut self, cpu: usize, task: u8, order: Order) {
        let t = &mut self.state.task[usize::from(task)];
        (t.section, t.calm) = (SECTION_CALL as u8, false);
        if self.scene.is_rt(cpu) && self.scene.groups_of(task, false) != 0 {
            self.dispatch(cpu, Some(task), order);
        }
    }

    /// The task that runs on `cpu` sleeps, in a call of this section, or ends.
    pub fn block(&mut self, cpu: usize, task: u8, section: u32, order: Order) {
        let t = &mut self.state.task[usize::from(task)];
        (t.runnable, t.section) = (false, section as u8);
        self.dispatch(cpu, None, order);
    }

    /// A real-time task takes `cpu`; what runs there is put back, at once or by a later tick.
    pub fn rt_comes(&mut self, cpu: usize) {
        self.state.cpu[cpu].busy = true;
        let Some(task) = self.state.cpu[cpu].curr.take() else {
            // ops.update_idle: what ops.select_cpu has queued for it
            if self.scene.put_back == PutBack::Held && !self.scene.is_rt(cpu) {
                self.offer(cpu);
            }
            return;
        };
        if self.planted(Plant::Lost) {
            return;
        }
        let rt1 = self.is_rt1(task) && self.scene.put_back == PutBack::Held;
        if rt1 || self.scene.put_back == PutBack::AtOnce {
            self.enqueue(task, cpu, false, false, true);
        } else {
            self.state.cpu[cpu].beneath = Some(task);
        }
    }

    /// What was held is queued by the next ops.dispatch; an idle CPU is woken for it.
    fn send_on(&mut self, task: u8, cpu: usize) {
        let queue = self.queue_of(&self.facts(task, cpu, false));
        let idle = self.idle_for(task, queue, self.scene.group(cpu));
        self.state.late.push(task);
        if let Some(idle) = idle.filter(|_| queue != OWN && !self.planted(Plant::HeldNotRoused)) {
            self.state.cpu[idle].kicked = true;
        }
    }

    fn queue_late(&mut self) {
        while !self.state.late.is_empty() && !self.planted(Plant::HeldForgotten) {
            let task = self.state.late.remove(0);
            let cpu = self.scene.nrt_cpu(task);
            let (facts, group) = (self.facts(task, cpu, false), self.scene.group(cpu));
            let queue = self.queue_of(&facts);
            self.queue(queue, if queue == OWN { cpu } else { group }).push(task);
        }
    }

    /// The tick beneath which a real-time task stays.
    pub fn rt_stays(&mut self, cpu: usize) {
        self.state.cpu[cpu].held = true;
        match self.state.cpu[cpu].beneath.take() {
            Some(task) if self.scene.put_back == PutBack::Held => self.send_on(task, cpu),
            Some(task) => self.enqueue(task, cpu, false, false, false),
            None => {}
        }
        self.offer(cpu);
    }

    /// What waits in the group of `cpu`, and in another one, is offered to idle CPUs.
    pub fn offer(&mut self, cpu: usize) {
        let (mine, groups) = (self.scene.group(cpu), self.scene.groups());
        (0..groups).for_each(|i| self.offer_group((mine + i) % groups));
    }

    /// The first that has an idle CPU gets it to look.
    fn offer_group(&mut self, group: usize) {
        if self.planted(Plant::NotOffered) {
            return;
        }
        let waiting = [(BOUND, self.state.bound[group]), (CALM, self.state.calm[group])];
        for (queue, waiting) in waiting {
            let idle = |&task: &u8| self.idle_for(task, queue, group);
            if let Some(to) = waiting.items().iter().find_map(idle) {
                self.state.cpu[to].kicked = true;
                return;
            }
        }
    }

    pub fn rt_leaves(&mut self, cpu: usize, order: Order) {
        let calm = self.state.calm[self.scene.group(cpu)].items().first();
        let here = |first: &u8| self.is_rt1(*first) && self.scene.may_run(*first, cpu);
        let rt1_waits = calm.is_some_and(here);
        let overtaken = rt1_waits && self.scene.put_back == PutBack::Held;
        let c = &mut self.state.cpu[cpu];
        (c.busy, c.held) = (false, false);
        match c.beneath.take() {
            Some(task) if overtaken => {
                self.send_on(task, cpu);
                self.dispatch(cpu, None, order);
            }
            Some(task) => c.curr = Some(task),
            None => self.dispatch(cpu, None, order),
        }
    }

    /// Where the first of a queue that `cpu` may run lies in the order.
    fn first(&self, queue: &Queue, cpu: usize, order: u64) -> Option<u64> {
        let &task = queue.items().iter().find(|&&task| self.scene.may_run(task, cpu))?;
        Some(if self.is_rt1(task) { rt1_order(1, 0) } else { FIRST + order })
    }

    /// ops.dispatch; `prev`: the task that runs there, whose slice is over.
    pub fn dispatch(&mut self, cpu: usize, prev: Option<u8>, order: Order) {
        self.state.cpu[cpu].kicked = false;
        if prev.is_none() {
            self.state.cpu[cpu].curr = None;
        }
        self.queue_late();
        let (rt, group) = (self.scene.is_rt(cpu), self.scene.group(cpu));
        let mut look = artis_look { rt, lead_ns: LEAD_NS, ..Default::default() };
        let mut returns = false;
        let queues = [self.state.own[cpu], self.state.bound[group], self.state.calm[group]];
        for (nr, queue) in queues.iter().enumerate() {
            if let Some(first) =
                self.first(queue, cpu, order[nr]).filter(|_| !rt || nr != BOUND as usize)
            {
                look.first[nr] = first;
                look.waits |= 1 << nr;
            }
        }
        if self.planted(Plant::RtTakesNothing) && rt {
            look.waits &= !(1 << CALM);
        }
        if let Some(task) = prev {
            let facts = self.facts(task, cpu, false);
            let rt1 = self.is_rt1(task);
            look.order = if rt1 { rt1_order(1, 0) } else { FIRST + order[3] };
            look.pinned = facts.pinned;
            look.may_stay = !rt || facts.pinned || self.may_use_rt(&facts);
            let calm = !rt && self.queue_of(&facts) == CALM && (look.waits != 0 || rt1);
            if calm && self.could_go_to_rt(task, cpu) && !self.planted(Plant::NoReturn) {
                look.may_stay = false;
                returns = rt1;
            }
        }
        let taken = self.take(cpu, &mut look);
        let taken = taken.or_else(|| {
            let dry = !look.may_stay && !self.planted(Plant::GroupsIgnored);
            if dry { self.take_from_groups(cpu) } else { None }
        });
        let stays = prev.is_some() && taken.is_none() && (look.may_stay || (!rt && !returns));
        if stays {
            return;
        }
        self.state.cpu[cpu].curr = taken;
        // it is not idle before that: it is found by nobody
        let last = taken.is_none() && prev.is_some();
        self.state.cpu[cpu].kicked = last;
        if taken.is_some() {
            self.offer(cpu);
        }
        let Some(task) = prev else { return };
        self.enqueue(task, cpu, false, last, false);
        self.state.cpu[cpu].kicked = last && self.looks_again;
    }
}
