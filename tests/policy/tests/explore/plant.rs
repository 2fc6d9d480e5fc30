// SPDX-License-Identifier: GPL-2.0-only
//! Bugs that are planted, each of which must be found.

/// A bug that is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    None,
    /// A task is queued in the first group.
    MaskIgnored,
    /// A task in the kernel is queued as a calm one.
    SectionIgnored,
    /// No CPU is kicked after an insertion.
    NotRoused,
    /// A CPU that is about to go idle is not kicked for its last task.
    LastForgotten,
    /// What waits for a CPU that a real-time task holds is offered to no other.
    NotOffered,
    /// An RT1+ task stays on its NRT CPU.
    NoReturn,
    /// An RT1+ task preempts nothing.
    NoPreemption,
    /// RT CPUs do not take from the calm queue.
    RtTakesNothing,
    /// A CPU without work does not look at other groups.
    GroupsIgnored,
    /// Balancing goes by the weight of a queue's head, also if another task is moved.
    HeadJudged,
    /// A task moves to another group whatever the loads.
    LoadIgnored,
    /// A task is taken and left where it was.
    Doubled,
    /// A preempted task is forgotten.
    Lost,
    /// No CPU is kicked for a task that was held.
    HeldNotRoused,
    /// No ops.dispatch queues what was held.
    HeldForgotten,
}
