// SPDX-License-Identifier: GPL-2.0-only
//! The state of a small machine, as small as it gets: it is put into a set millions of times.

use artis_policy::c::{ARTIS_SECTION_NONE, ARTIS_SECTION_SLEEPING};

pub const CPUS: usize = 4;
pub const TASKS: usize = 6;
pub const GROUPS: usize = 2;

/// What a task may do in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// NRT, only computes and sleeps.
    Calm,
    /// NRT, enters the kernel now and then.
    Attempting,
    /// Firm real time, enters the kernel now and then.
    Rt1,
    /// An unbound kernel thread.
    Kernel,
}

/// A task of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    pub kind: Kind,
    /// CPUs that it may use, bit n is CPU n; 0: all.
    pub mask: u8,
    /// 100 is nice 0.
    pub weight: u32,
}

/// All CPUs, nice 0.
pub const fn any(kind: Kind) -> Actor {
    Actor { kind, mask: 0, weight: 100 }
}

/// These CPUs only.
pub const fn on(kind: Kind, mask: u8) -> Actor {
    Actor { kind, mask, weight: 100 }
}

/// When what a real-time task has preempted is put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutBack {
    AtOnce,
    /// When the real-time task stays; until then it lies in the local queue.
    Late,
    /// Then, too, by the next ops.dispatch of any CPU.
    Held,
}

/// A machine and its tasks.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// Group of each CPU, and whether it is an RT CPU.
    pub cpus: &'static [(usize, bool)],
    pub tasks: &'static [Actor],
    pub put_back: PutBack,
}

impl Scene {
    pub fn ids(&self) -> std::ops::Range<usize> {
        0..self.cpus.len()
    }

    pub fn is_rt(&self, cpu: usize) -> bool {
        self.cpus[cpu].1
    }

    pub fn group(&self, cpu: usize) -> usize {
        self.cpus[cpu].0
    }

    pub fn groups(&self) -> usize {
        1 + self.cpus.iter().map(|cpu| cpu.0).max().unwrap_or(0)
    }

    pub fn weight(&self, task: u8) -> u32 {
        self.tasks[usize::from(task)].weight
    }

    pub fn kind(&self, task: u8) -> Kind {
        self.tasks[usize::from(task)].kind
    }

    /// Its affinity.
    pub fn may_run(&self, task: u8, cpu: usize) -> bool {
        let mask = self.tasks[usize::from(task)].mask;
        mask == 0 || mask >> cpu & 1 == 1
    }

    /// CPUs that it may use.
    pub fn allowed(&self, task: u8) -> impl Iterator<Item = usize> {
        self.ids().filter(move |&cpu| self.may_run(task, cpu))
    }

    /// The only CPU of a task that has one only.
    pub fn pinned_to(&self, task: u8) -> Option<usize> {
        let mut cpus = self.allowed(task);
        cpus.next().filter(|_| cpus.next().is_none())
    }

    /// Groups, by bit, that hold a CPU of its affinity of this kind.
    pub fn groups_of(&self, task: u8, rt: bool) -> u64 {
        let cpus = self.allowed(task).filter(|&cpu| self.is_rt(cpu) == rt);
        cpus.fold(0, |bits, cpu| bits | 1 << self.group(cpu))
    }

    /// The NRT CPU where it is taken to have run last; without one, its first CPU.
    pub fn nrt_cpu(&self, task: u8) -> usize {
        let nrt = self.allowed(task).find(|&cpu| !self.is_rt(cpu));
        nrt.or_else(|| self.allowed(task).next()).expect("a CPU")
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

    pub fn push_first(&mut self, item: u8) {
        self.items.copy_within(..TASKS - 1, 1);
        self.items[0] = item;
        self.len += 1;
    }

    pub fn remove(&mut self, at: usize) -> u8 {
        let item = self.items[at];
        self.items.copy_within(at + 1.., at);
        self.items[TASKS - 1] = 0;
        self.len -= 1;
        item
    }

    pub fn items(&self) -> &[u8] {
        &self.items[..usize::from(self.len)]
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cpu {
    pub curr: Option<u8>,
    /// A real-time task runs.
    pub busy: bool,
    /// And has for long: the tick has seen it.
    pub held: bool,
    /// It will call ops.dispatch.
    pub kicked: bool,
    /// What the real-time task preempted, at which only this CPU gets.
    pub beneath: Option<u8>,
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
    /// The queues of each group.
    pub bound: [Queue; GROUPS],
    pub calm: [Queue; GROUPS],
    /// The own queue of each CPU.
    pub own: [Queue; CPUS],
    /// Tasks in none of them, which the next ops.dispatch queues.
    pub late: Queue,
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

    pub fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.own.iter().chain(&self.bound).chain(&self.calm).chain([&self.late])
    }

    /// All places where `task` waits or runs.
    pub fn places(&self, task: u8) -> usize {
        self.queues().flat_map(Queue::items).filter(|&&t| t == task).count()
            + self.cpu.iter().filter(|c| c.curr == Some(task)).count()
            + self.cpu.iter().filter(|c| c.beneath == Some(task)).count()
    }

    /// Equal tasks are the same to every rule: names them by where they are.
    pub fn canonical(&self, scene: &Scene) -> Self {
        let n = scene.tasks.len() as u8;
        let key = |task: u8| {
            let at = |queue: &Queue| queue.items().iter().position(|&t| t == task);
            (
                self.task[usize::from(task)],
                self.cpu.iter().position(|c| c.curr == Some(task)),
                self.cpu.iter().position(|c| c.beneath == Some(task)),
                self.bound.map(|queue| at(&queue)),
                self.calm.map(|queue| at(&queue)),
                self.own.map(|queue| at(&queue)),
                at(&self.late),
            )
        };
        // names[new] = old: equal tasks share out their names
        let mut names: Vec<u8> = (0..n).collect();
        for new in 0..names.len() {
            let actor = |at: usize| scene.tasks[usize::from(names[at])];
            let same = |&other: &usize| actor(other) == actor(new);
            let least = (new..names.len()).filter(same).min_by_key(|&other| key(names[other]));
            names.swap(new, least.unwrap_or(new));
        }
        let mut new_of = [0; TASKS];
        names.iter().enumerate().for_each(|(new, &old)| new_of[usize::from(old)] = new as u8);
        let rename = |task: u8| new_of[usize::from(task)];
        let mut state = *self;
        for (new, &old) in names.iter().enumerate() {
            state.task[new] = self.task[usize::from(old)];
        }
        let queues = state.own.iter_mut().chain(&mut state.bound).chain(&mut state.calm);
        for queue in queues.chain([&mut state.late]) {
            let len = usize::from(queue.len);
            queue.items[..len].iter_mut().for_each(|task| *task = rename(*task));
        }
        for c in &mut state.cpu {
            (c.curr, c.beneath) = (c.curr.map(rename), c.beneath.map(rename));
        }
        state
    }
}
