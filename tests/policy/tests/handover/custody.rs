// SPDX-License-Identifier: GPL-2.0-only
//! A task in the FIFO that is dequeued meanwhile: it dies, sleeps, or changes its affinity and is
//! queued again for other CPUs. What the kernel knows of it is modelled after kernel/sched/ext.c
//! (`do_enqueue_task`, `ops_dequeue`, `finish_dispatch`); the ring is the C text.

use crate::ring::{Plant, Ring};
use crate::{drain, explore};
use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use loom::thread;
use std::sync::{Arc, Mutex};

/// p->scx.ops_state: who has the task, and the number of its enqueue above.
const NONE: u64 = 0;
const QUEUEING: u64 = 1;
const QUEUED: u64 = 2;
const DISPATCHING: u64 = 3;

const fn state(word: u64) -> u64 {
    word & 3
}

/// When the reader compares an entry's sequence number with the task's, and who moves that.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// Never.
    None,
    /// Before it inserts.
    Before,
    /// After it inserted, taking that back if the entry was stale; `ops.enqueue` moves the number.
    After,
    /// The same, and `ops.dequeue` moves the number, too.
    AfterAndDequeue,
    /// After it inserted; the number is the kernel's own, of p->scx.ops_state.
    AfterByKernel,
}

/// Those that are right.
const SAFE: [Check; 2] = [Check::AfterAndDequeue, Check::AfterByKernel];

struct Task {
    ops_state: AtomicU64,
    /// What BPF keeps with the task.
    seq: AtomicU64,
    /// The dispatch queues that it is in. Locked as the kernel's queues are.
    queued_in: Mutex<Vec<usize>>,
    check: Check,
}

impl Task {
    fn new(check: Check) -> Arc<Self> {
        Arc::new(Self {
            ops_state: AtomicU64::new(NONE),
            seq: AtomicU64::new(0),
            queued_in: Mutex::default(),
            check,
        })
    }

    /// The RT CPU queues the task for the CPUs that read `ring`; number `qseq` of the kernel's.
    fn enqueue(&self, ring: &Ring, qseq: u64) {
        self.ops_state.store(qseq << 2 | QUEUEING, Release);
        let own = self.seq.fetch_add(1, AcqRel) + 1;
        let seq = if self.check == Check::AfterByKernel { qseq } else { own };
        assert!(ring.push(seq), "there is room");
        self.ops_state.store(qseq << 2 | QUEUED, Release);
    }

    /// The task sleeps, dies or changes its affinity while it is queued.
    fn dequeue(&self) {
        loop {
            let word = self.ops_state.load(Acquire);
            match state(word) {
                NONE => break,
                QUEUED => {
                    if self.check == Check::AfterAndDequeue {
                        self.seq.fetch_add(1, AcqRel);
                    }
                    if self.ops_state.compare_exchange(word, NONE, AcqRel, Acquire).is_ok() {
                        break;
                    }
                }
                // another CPU is just putting it into a queue
                _ => thread::yield_now(),
            }
        }
        self.queued_in.lock().expect("no panic under the lock").clear();
    }

    /// ops.dispatch of an NRT CPU read `seq` and puts the task into `queue`.
    fn dispatch(&self, seq: u64, queue: usize) {
        let fresh = || self.seq.load(Acquire) == seq;
        if self.check == Check::Before && !fresh() {
            return;
        }
        // scx_bpf_dsq_insert() remembers which enqueue it is about
        let qseq = self.ops_state.load(Acquire) >> 2;
        let stale = match self.check {
            Check::None | Check::Before => false,
            Check::After | Check::AfterAndDequeue => !fresh(),
            Check::AfterByKernel => self.ops_state.load(Acquire) >> 2 != seq,
        };
        if stale {
            // scx_bpf_dispatch_cancel()
            return;
        }
        // finish_dispatch(), when ops.dispatch has returned
        loop {
            let word = self.ops_state.load(Acquire);
            match state(word) {
                QUEUED if word >> 2 == qseq => {
                    // without the number, as in the kernel
                    if self.ops_state.compare_exchange(word, DISPATCHING, AcqRel, Acquire).is_ok() {
                        break;
                    }
                }
                QUEUEING => thread::yield_now(),
                _ => return,
            }
        }
        self.queued_in.lock().expect("no panic under the lock").push(queue);
        self.ops_state.store(NONE, Release);
    }
}

fn reader(ring: &Arc<Ring>, task: &Arc<Task>, queue: usize) -> thread::JoinHandle<()> {
    let (ring, task) = (ring.clone(), task.clone());
    thread::spawn(move || drain(&ring, |seq| task.dispatch(seq, queue)))
}

/// Evicted, dequeued while it is handed over, and then queued again through `rings[1]`, if any;
/// returns in which queues it ends.
fn dequeued_meanwhile(check: Check, again: Option<usize>) {
    explore(Some(2), move || {
        let rings = [0, 1].map(|_| Arc::new(Ring::new(Plant::None)));
        let task = Task::new(check);
        task.enqueue(&rings[0], 1);
        let first = reader(&rings[0], &task, 0);
        task.dequeue();
        let second = again.map(|ring| {
            task.enqueue(&rings[ring], 2);
            reader(&rings[ring], &task, ring)
        });
        first.join().expect("a reader ends");
        if let Some(second) = second {
            second.join().expect("a reader ends");
        }
        let queued_in = task.queued_in.lock().expect("no panic under the lock").clone();
        assert_eq!(queued_in, Vec::from_iter(again), "in the wrong queues");
        assert_eq!(state(task.ops_state.load(Acquire)), NONE);
    });
}

#[test]
fn a_task_that_sleeps_or_dies_in_the_fifo_is_in_no_queue() {
    for check in SAFE {
        dequeued_meanwhile(check, None);
    }
}

#[test]
fn a_task_that_is_evicted_again_is_queued_once() {
    for check in SAFE {
        dequeued_meanwhile(check, Some(0));
    }
}

/// Its affinity changed: the queue of the first group would never let it run.
#[test]
fn a_task_that_is_evicted_to_other_cpus_is_queued_for_those() {
    for check in SAFE {
        dequeued_meanwhile(check, Some(1));
    }
}

#[test]
#[should_panic(expected = "in the wrong queues")]
fn without_sequence_numbers_it_ends_in_the_wrong_queue() {
    dequeued_meanwhile(Check::None, Some(1));
}

/// Between the comparison and the insertion it may be queued again.
#[test]
#[should_panic(expected = "in the wrong queues")]
fn compared_before_the_insertion_it_ends_in_the_wrong_queue() {
    dequeued_meanwhile(Check::Before, Some(1));
}

/// The kernel has a new number for it before `ops.enqueue` moves ours.
#[test]
#[should_panic(expected = "in the wrong queues")]
fn moved_by_enqueue_alone_the_number_comes_too_late() {
    dequeued_meanwhile(Check::After, Some(1));
}
