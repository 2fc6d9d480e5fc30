// SPDX-License-Identifier: GPL-2.0-only
//! Threads that a PREEMPT_RT kernel has on each CPU. Beneath a real-time task that does not sleep no
//! timer of its CPU would run, no RCU callback and no deferred work of an interrupt: the kernel would
//! stand still under any scheduler, so an administrator of such a machine raises them. So does each
//! task that the real-time task preempted in a read-side section of RCU, and what waits for its locks:
//! after 0.5 s the kernel makes it a task of the real-time class, of the priority of rcub, which the
//! ext_server does not help and no ext scheduler sees.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::guest::{preempt_rt, processes};
use crate::policy::Policy;

/// How their names begin.
const NAMES: [&str; 4] = ["ktimers/", "rcuc/", "rcub/", "irq_work/"];
/// Their priority.
const USUAL: u32 = 1;

/// They are more urgent than usual while this exists.
pub struct Raised(());

impl Raised {
    /// Raises them to this priority. Other kernels have none.
    pub fn to(priority: u32) -> Result<Self> {
        for name in NAMES {
            let raised = set(name, priority)?;
            ensure!(raised > 0 || !preempt_rt(), "a PREEMPT_RT kernel without threads {name}");
        }
        Ok(Self(()))
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        for name in NAMES {
            if let Err(error) = set(name, USUAL) {
                println!("the threads {name} keep their priority: {error:#}");
            }
        }
    }
}

/// Puts all processes with names that begin so into SCHED_FIFO; returns how many.
fn set(prefix: &str, priority: u32) -> Result<u32> {
    let mut set = 0;
    for (pid, comm) in processes()?.into_iter().filter(|(_, comm)| comm.starts_with(prefix)) {
        Policy::new(libc::SCHED_FIFO, priority).set(pid).context(comm)?;
        set += 1;
    }
    Ok(set)
}

/// Real-time threads of the kernel.
pub fn realtime() -> Result<Vec<(i32, Policy)>> {
    let mut all = Vec::new();
    for (pid, _) in processes()? {
        // kernel threads have no memory of their own, and so no map of it
        let no_maps = fs::read(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.is_empty());
        if let Some(policy) = Policy::of(pid)?.filter(|_| no_maps)
            && policy.priority > 0
        {
            all.push((pid, policy));
        }
    }
    Ok(all)
}
