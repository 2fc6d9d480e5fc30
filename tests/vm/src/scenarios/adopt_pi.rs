// SPDX-License-Identifier: GPL-2.0-only
//! Mutexes with priority inheritance between adopted tasks and others.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use anyhow::{Context, Result, ensure};

use super::adopt::{becomes, stay_out};
use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::guest::{PATIENCE, pause, until};
use crate::policy::{EXT, Policy, effective, gettid};

/// Catches: an adopted task that holds a mutex for which a real-time task waits and is not boosted,
/// or stays so; a boost between adopted tasks that docs/adoption.md says there is not.
pub const ADOPT_PI: Scenario = Scenario {
    name: "adopt_pi",
    what: "a PI mutex boosts an adopted owner for an RT0 task, and not for another adopted one",
    scope: Scope::First,
    boot: &[],
    secs: 10,
    host: Host::Alone,
    complaints: &[],
    run: adopt_pi,
};

/// A mutex of the C library, with priority inheritance.
struct PiMutex(Box<libc::pthread_mutex_t>);

// SAFETY: a pthread mutex is made for use by many threads; it does not move, being boxed.
unsafe impl Sync for PiMutex {}
// SAFETY: as above; it is sent while nobody holds it.
unsafe impl Send for PiMutex {}

impl PiMutex {
    fn new() -> Result<Self> {
        let mut attr = MaybeUninit::uninit();
        let mut mutex = Box::new(libc::PTHREAD_MUTEX_INITIALIZER);
        // SAFETY: attr is initialised by the first call, which precedes the others; both outlive
        // the calls.
        let made = unsafe {
            libc::pthread_mutexattr_init(attr.as_mut_ptr()) == 0
                && libc::pthread_mutexattr_setprotocol(
                    attr.as_mut_ptr(),
                    libc::PTHREAD_PRIO_INHERIT,
                ) == 0
                && libc::pthread_mutex_init(&raw mut *mutex, attr.as_ptr()) == 0
        };
        ensure!(made, "no mutex with priority inheritance");
        Ok(Self(mutex))
    }

    fn while_held(&self, what: impl FnOnce()) {
        let mutex = std::ptr::from_ref(&*self.0).cast_mut();
        // SAFETY: initialised by `new`; the C library changes it under its own rules.
        unsafe { libc::pthread_mutex_lock(mutex) };
        what();
        // SAFETY: as above, and held by this thread.
        unsafe { libc::pthread_mutex_unlock(mutex) };
    }
}

/// A thread, its id, and when it is to end or to go on.
struct Task {
    tid: AtomicI32,
    go: AtomicBool,
    holds: AtomicBool,
}

/// A SCHED_FIFO thread on these CPUs that holds the mutex, once it gets it, until it is told.
fn task(mutex: &Arc<PiMutex>, cpus: Cpus, priority: u32) -> Result<Arc<Task>> {
    let (tid, go, holds) = (AtomicI32::new(0), AtomicBool::new(false), AtomicBool::new(false));
    let task = Arc::new(Task { tid, go, holds });
    let (own, mutex) = (Arc::clone(&task), Arc::clone(mutex));
    std::thread::spawn(move || {
        let begun = cpus.bind(0).and_then(|()| Policy::new(libc::SCHED_FIFO, priority).set(0));
        if let Err(error) = begun {
            return say(&format!("{error:#}"));
        }
        own.tid.store(gettid(), Ordering::SeqCst);
        own.wait();
        mutex.while_held(|| {
            own.holds.store(true, Ordering::SeqCst);
            own.wait();
        });
        own.wait();
    });
    until("a thread has begun", PATIENCE, || Ok(task.tid.load(Ordering::SeqCst) != 0))?;
    Ok(task)
}

impl Task {
    fn wait(&self) {
        while !self.go.swap(false, Ordering::SeqCst) {
            pause(0.002);
        }
    }

    fn go(&self) {
        self.go.store(true, Ordering::SeqCst);
    }

    fn tid(&self) -> i32 {
        self.tid.load(Ordering::SeqCst)
    }

    fn wait_holds(&self) -> Result<()> {
        until("it has the mutex", PATIENCE, || Ok(self.holds.load(Ordering::SeqCst)))
    }
}

fn adopt_pi(ctx: &Ctx) -> Result<Outcome> {
    stay_out(ctx)?;
    let daemon = ctx.load(&["--adopt"])?;
    let adopted = Policy { policy: EXT, ..Policy::new(0, 0) };
    for (cpus, boosts) in [(ctx.rt, true), (ctx.all(), false)] {
        let mutex = Arc::new(PiMutex::new()?);
        let owner = task(&mutex, ctx.all(), 10)?;
        becomes(owner.tid(), "the owner is adopted", adopted)?;
        owner.go();
        owner.wait_holds()?;
        let waiter = task(&mutex, cpus, 60)?;
        if !boosts {
            becomes(waiter.tid(), "the waiter is adopted", adopted)?;
        }
        waiter.go();
        let boosted =
            until("the owner is boosted", PATIENCE / 10, || Ok(effective(owner.tid())? == -61));
        let priority = effective(owner.tid())?;
        say(&format!("the owner's priority is {priority} while the waiter on {cpus} waits"));
        ensure!(boosted.is_ok() == boosts, "boosted: {}, not {boosts}", boosted.is_ok());
        ensure!(Policy::of(owner.tid())? == Some(adopted), "no more adopted while it is boosted");
        owner.go();
        waiter.wait_holds().context("after the owner let go")?;
        ensure!(effective(owner.tid())? >= 0, "the owner stays boosted");
        for task in [&waiter, &waiter, &owner] {
            task.go();
            pause(0.05);
        }
    }
    daemon.finish()?;
    Ok(Outcome::Passed)
}
