// SPDX-License-Identifier: GPL-2.0-only
//! Tasks move to CPUs, from the queues of their group and of others.

use crate::machine::Queue;
use crate::model::{Machine, Order};
use crate::plant::Plant;
use artis_policy::c::{
    ARTIS_NEXT_NONE as NEXT_NONE, ARTIS_NEXT_STAY as NEXT_STAY, ARTIS_QUEUE_BOUND as BOUND,
    ARTIS_QUEUE_CALM as CALM, ARTIS_QUEUE_OWN as OWN, artis_load, artis_look, artis_next,
    artis_relieves,
};

impl Machine<'_> {
    /// The task that artis_next() names, of the queues of `cpu`.
    pub fn take(&mut self, cpu: usize, look: &mut artis_look) -> Option<u8> {
        loop {
            // SAFETY: a live struct of C's layout that is only read.
            let queue = unsafe { artis_next(look) };
            if [NEXT_STAY, NEXT_NONE].contains(&queue) {
                return None;
            }
            let place = if queue == OWN { cpu } else { self.scene.group(cpu) };
            if let Some(task) = self.move_to_local(cpu, queue, place) {
                return Some(task);
            }
            look.waits &= !(1 << queue);
        }
    }

    /// scx_bpf_dsq_move_to_local(): the first of the queue that may run on `cpu`.
    fn move_to_local(&mut self, cpu: usize, queue: u32, place: usize) -> Option<u8> {
        let scene = self.scene;
        let doubled = self.planted(Plant::Doubled);
        let waiting = self.queue(queue, place);
        let at = waiting.items().iter().position(|&task| scene.may_run(task, cpu))?;
        Some(if doubled { waiting.items()[at] } else { waiting.remove(at) })
    }

    /// A CPU that has nothing to run takes from another group.
    pub fn take_from_groups(&mut self, cpu: usize) -> Option<u8> {
        let (groups, mine) = (self.scene.groups(), self.scene.group(cpu));
        (1..groups).map(|i| (mine + i) % groups).find_map(|group| {
            let bound = !self.scene.is_rt(cpu);
            let taken = if bound { self.move_to_local(cpu, BOUND, group) } else { None };
            taken.or_else(|| self.move_to_local(cpu, CALM, group))
        })
    }

    /// Could the calm task that runs on NRT CPU `here` go on on an RT CPU of its group?
    pub fn could_go_to_rt(&self, task: u8, here: usize) -> bool {
        let group = self.scene.group(here);
        let rt = |cpu: &usize| self.scene.is_rt(*cpu) && self.scene.group(*cpu) == group;
        let idle = self.scene.allowed(task).filter(rt).any(|cpu| self.state.is_asleep(cpu));
        idle || (self.is_rt1(task) && self.lower_for(task, CALM).is_some_and(|cpu| rt(&cpu)))
    }

    /// Weight of what is runnable in `group`, and M of as many CPUs as it has.
    fn load(&self, group: usize) -> artis_load {
        let on = |cpu: &usize| self.scene.group(*cpu) == group;
        let cpus = self.scene.ids().filter(on).count();
        let running = self.scene.ids().filter(on).filter_map(|cpu| self.state.cpu[cpu].curr);
        let queues = [&self.state.bound[group], &self.state.calm[group]];
        let waiting = queues.into_iter().flat_map(Queue::items).copied();
        let weight = running.chain(waiting).map(|task| u64::from(self.scene.weight(task))).sum();
        artis_load { weight, m: (1 << 20) / cpus as u32 }
    }

    /// It is time to look at another group: does a task of it come to NRT CPU `cpu`?
    pub fn balance(&mut self, cpu: usize, order: Order) {
        let mine = self.scene.group(cpu);
        for other in (0..self.scene.groups()).filter(|&other| other != mine) {
            let (there, here) = (self.load(other), self.load(mine));
            let queue = if self.state.bound[other].is_empty() { CALM } else { BOUND };
            let scene = self.scene;
            let by_head = self.planted(Plant::HeadJudged);
            let mut waiting = self.queue(queue, other).items().iter();
            let judged = waiting.find(|&&task| by_head || scene.may_run(task, cpu));
            let Some(&first) = judged else { continue };
            let weight = scene.weight(first);
            // SAFETY: live structs of C's layout that are only read.
            let relieves = unsafe { artis_relieves(&there, &here, weight) };
            if !relieves && !self.planted(Plant::LoadIgnored) {
                continue;
            }
            let Some(task) = self.move_to_local(cpu, queue, other) else { continue };
            let before = there.weight * u64::from(there.m);
            let prev = self.state.cpu[cpu].curr.replace(task);
            self.state.cpu[cpu].kicked = false;
            self.offer(cpu);
            if let Some(prev) = prev {
                self.enqueue(prev, cpu, false, false, false);
            }
            let after = self.load(mine);
            let after = after.weight * u64::from(after.m);
            if after > before {
                self.worse = Some((before, after));
            }
            return;
        }
        self.dispatch(cpu, self.state.cpu[cpu].curr, order);
    }
}
