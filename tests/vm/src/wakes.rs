// SPDX-License-Identifier: GPL-2.0-only
//! An observer of how long a task takes from the interrupt of its timer to user mode
//! (observer/wakes.bpf.c).

use std::fmt;

use anyhow::{Context, Result, ensure};

use crate::cpus::Cpus;
use crate::guest::{PATIENCE, until};
use crate::skeleton;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/wakes_skel.rs"));
}
use skel::{WakesSkel, WakesSkelBuilder};

/// The attached programs.
pub struct Wakes {
    skel: WakesSkel<'static>,
}

/// Some wake-ups.
pub struct Took {
    /// How long they took, ns, in ascending order.
    ns: Vec<u64>,
    /// Where the task ran then.
    cpus: Vec<u32>,
}

impl Wakes {
    /// Loads and attaches; watches no task yet.
    pub fn attach() -> Result<Self> {
        Ok(Self { skel: skeleton::attach(WakesSkelBuilder::default(), |_| Ok(()))? })
    }

    /// Watches a task that sleeps over and over until it has woken up as often as is kept. The
    /// caller waits on CPUs `from`: it has a real-time priority above the task's.
    pub fn watch(&mut self, pid: u32, from: Cpus) -> Result<Took> {
        let bss = self.skel.maps.bss_data.as_deref_mut().context("the observer has no bss")?;
        (bss.nr_wakes, bss.woken_ns) = (0, 0);
        bss.watched_pid = pid;
        let wakes = &raw const bss.nr_wakes;
        let all = bss.wake_ns.len();
        from.bind(0)?;
        until("the task has woken up often enough", PATIENCE, || {
            // SAFETY: the map is mapped as long as the skeleton lives.
            Ok(unsafe { wakes.read_volatile() } as usize >= all)
        })?;
        bss.watched_pid = 0;
        Cpus::online()?.bind(0)?;
        let (mut ns, cpus) = (bss.wake_ns.to_vec(), bss.wake_cpu.to_vec());
        ns.sort_unstable();
        ensure!(ns[0] > 0, "a wake-up took no time");
        Ok(Took { ns, cpus })
    }
}

/// As text: percentiles.
impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = [25, 50, 75, 90, 99].map(|pct| self.percentile_ns(pct));
        write!(f, "25, 50, 75, 90, 99 % of {} wake-ups within {shown:?} ns", self.ns.len())
    }
}

impl Took {
    /// So many percent of the wake-ups took no longer, ns.
    #[must_use]
    pub fn percentile_ns(&self, pct: usize) -> u64 {
        let nth = (self.ns.len() * pct).div_ceil(100);
        self.ns.get(nth.saturating_sub(1)).copied().unwrap_or(0)
    }

    /// The mean of the wake-ups of these turns that are no longer than 1.1 times the first quartile, ns.
    /// The turn of an emulated CPU may fall into a wake-up of a task on another, 25 to 55 % of them, and
    /// adds 16 % or more. The others take one of a few times, between which a percentile would jump.
    #[must_use]
    pub fn usual_ns(turns: &[Self]) -> f64 {
        let mut all: Vec<u64> = turns.iter().flat_map(|took| took.ns.iter().copied()).collect();
        all.sort_unstable();
        let most = all.get(all.len() / 4).map_or(0, |quartile| quartile + quartile / 10);
        all.retain(|ns| *ns <= most);
        all.iter().sum::<u64>() as f64 / all.len().max(1) as f64
    }

    /// The share of wake-ups on these CPUs, percent.
    #[must_use]
    pub fn on_pct(&self, cpus: Cpus) -> usize {
        let on = self.cpus.iter().filter(|cpu| cpus.0 >> **cpu & 1 != 0);
        on.count() * 100 / self.cpus.len().max(1)
    }
}
