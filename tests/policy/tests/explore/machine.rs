// SPDX-License-Identifier: GPL-2.0-only
//! The state of a small machine, as small as it gets: it is put into a set millions of times.

use artis_policy::c::{ARTIS_SECTION_NONE, ARTIS_SECTION_SLEEPING};

pub const CPUS: usize = 4;
pub const TASKS: usize = 6;

/// What a task may do in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// NRT, only computes and sleeps.
    Calm,
    /// NRT, enters the kernel now and then.
    Attempting,
    /// Firm real time, enters the kernel now and then.
    Rt1,
    /// NRT, may run on the last RT CPU only.
    PinnedRt,
    /// NRT, may run on NRT CPU 0 only.
    PinnedNrt,
    /// An unbound kernel thread.
    Kernel,
}

/// A machine and its tasks: CPUs 0 to nrt - 1 are NRT, the rest RT.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    pub nrt: usize,
    pub rt: usize,
    pub tasks: &'static [Kind],
    /// Weight of each task; none: 100.
    pub weights: &'static [u32],
    /// M of the RT CPUs.
    pub m: u32,
}

impl Scene {
    pub fn cpus(&self) -> std::ops::Range<usize> {
        0..self.nrt + self.rt
    }

    pub fn rt_cpus(&self) -> std::ops::Range<usize> {
        self.nrt..self.nrt + self.rt
    }

    pub fn is_rt(&self, cpu: usize) -> bool {
        cpu >= self.nrt
    }

    pub fn weight(&self, task: u8) -> u32 {
        self.weights.get(usize::from(task)).copied().unwrap_or(100)
    }

    pub fn kind(&self, task: u8) -> Kind {
        self.tasks[usize::from(task)]
    }

    /// Its affinity.
    pub fn may_run(&self, task: u8, cpu: usize) -> bool {
        match self.kind(task) {
            Kind::PinnedRt => cpu == self.nrt + self.rt - 1,
            Kind::PinnedNrt => cpu == 0,
            _ => true,
        }
    }

    /// The only CPU of a task that has one only.
    pub fn pinned_to(&self, task: u8) -> Option<usize> {
        match self.kind(task) {
            Kind::PinnedRt => Some(self.nrt + self.rt - 1),
            Kind::PinnedNrt => Some(0),
            _ => None,
        }
    }
}

/// A short list of tasks, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Queue {
    len: u8,
    items: [u8; TASKS],
}

impl Queue {
    pub fn push(&mut self, item: u8) {
        self.items[usize::from(self.len)] = item;
        self.len += 1;
    }

    pub fn remove(&mut self, at: usize) -> u8 {
        let item = self.items[at];
        self.items.copy_within(at + 1.., at);
        self.items[TASKS - 1] = 0;
        self.len -= 1;
        item
    }

    pub fn pop(&mut self) -> Option<u8> {
        (self.len > 0).then(|| self.remove(0))
    }

    pub fn items(&self) -> &[u8] {
        &self.items[..usize::from(self.len)]
    }

    pub fn items_mut(&mut self) -> &mut [u8] {
        &mut self.items[..usize::from(self.len)]
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Entries of a ring that were overtaken: the task was queued again since.
pub const STALE: u8 = 0x80;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cpu {
    pub curr: Option<u8>,
    /// A real-time task runs.
    pub busy: bool,
    /// And has for long.
    pub held: bool,
    /// It will call ops.dispatch.
    pub kicked: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Task {
    /// Neither sleeping nor dead.
    pub runnable: bool,
    /// enum artis_section.
    pub section: u8,
    pub calm: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub cpu: [Cpu; CPUS],
    pub task: [Task; TASKS],
    /// The queue that NRT CPUs share.
    pub nrt: Queue,
    /// The own queue of each CPU.
    pub own: [Queue; CPUS],
    /// The FIFO from each RT CPU.
    pub ring: [Queue; CPUS],
}

impl State {
    pub fn in_call(&self, task: u8) -> bool {
        u32::from(self.task[usize::from(task)].section) > ARTIS_SECTION_SLEEPING
    }

    pub fn in_user_mode(&self, task: u8) -> bool {
        u32::from(self.task[usize::from(task)].section) == ARTIS_SECTION_NONE
    }

    pub fn is_calm(&self, task: u8) -> bool {
        self.task[usize::from(task)].calm
    }

    /// Neither an ext nor a real-time task runs there, nor is it about to look.
    pub fn is_asleep(&self, cpu: usize) -> bool {
        let c = &self.cpu[cpu];
        c.curr.is_none() && !c.busy && !c.kicked
    }

    /// All places where `task` waits or runs; a stale entry of a ring is none.
    pub fn places(&self, task: u8) -> usize {
        let queues = self.own.iter().chain(&self.ring).chain([&self.nrt]);
        queues.flat_map(Queue::items).filter(|&&t| t == task).count()
            + self.cpu.iter().filter(|c| c.curr == Some(task)).count()
    }

    /// Tasks of one kind and weight are the same to every rule: names them by where they are.
    pub fn canonical(&self, scene: &Scene) -> Self {
        let n = scene.tasks.len() as u8;
        let key = |task: u8| {
            let at = |queue: &Queue| queue.items().iter().position(|&t| t & !STALE == task);
            (
                self.task[usize::from(task)],
                self.cpu.iter().position(|c| c.curr == Some(task)),
                at(&self.nrt),
                self.own.map(|queue| at(&queue)),
                self.ring.map(|queue| at(&queue)),
            )
        };
        let class = |task: u8| (scene.kind(task) as u8, scene.weight(task));
        // names[new] = old: tasks of one class share out the names of that class
        let mut names: Vec<u8> = (0..n).collect();
        for new in 0..names.len() {
            let same = |&other: &usize| class(names[other]) == class(names[new]);
            let least = (new..names.len()).filter(same).min_by_key(|&other| key(names[other]));
            names.swap(new, least.unwrap_or(new));
        }
        let mut new_of = [0; TASKS];
        names.iter().enumerate().for_each(|(new, &old)| new_of[usize::from(old)] = new as u8);
        let rename = |item: u8| new_of[usize::from(item & !STALE)] | (item & STALE);
        let mut state = *self;
        for (new, &old) in names.iter().enumerate() {
            state.task[new] = self.task[usize::from(old)];
        }
        let queues = state.own.iter_mut().chain(&mut state.ring).chain([&mut state.nrt]);
        queues.flat_map(Queue::items_mut).for_each(|item| *item = rename(*item));
        state.cpu.iter_mut().for_each(|c| c.curr = c.curr.map(rename));
        state
    }
}
