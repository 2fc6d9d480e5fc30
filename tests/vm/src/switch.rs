// SPDX-License-Identifier: GPL-2.0-only
//! The thread-switch time of "Le Temps Réel sous Linux": two threads on one CPU
//! take turns with a mutex. How long from its release in one until the other runs with it?

use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use anyhow::{Result, anyhow, ensure};
use clap::Args;

use crate::cpus::Cpus;
use crate::work::monotonic_ns;
use crate::worker::set_fifo;

/// What is measured.
#[derive(Args, Clone, Debug)]
pub struct Spec {
    /// The CPU of both threads
    #[arg(long, default_value = "1")]
    pub cpu: Cpus,
    /// So many switches
    #[arg(long, default_value_t = 10_000)]
    pub switches: usize,
    /// SCHED_FIFO with this priority
    #[arg(long)]
    pub fifo: Option<i32>,
}

/// The times, ns, sorted.
#[derive(Clone, Debug)]
pub struct Report(Vec<u64>);

/// What the mutex protects.
#[derive(Default)]
struct Turn {
    /// Whose it is.
    of: usize,
    /// When it was given away, ns.
    released_ns: u64,
    times_ns: Vec<u64>,
}

/// Takes turns until there are enough switches.
///
/// # Errors
/// When the CPU or the policy cannot be had.
pub fn run(spec: &Spec) -> Result<Report> {
    ensure!(spec.cpu.iter().count() == 1, "{} is not one CPU", spec.cpu);
    spec.cpu.bind(0)?;
    if let Some(priority) = spec.fifo {
        set_fifo(0, Some(priority))?;
    }
    let shared = Arc::new((Mutex::new(Turn::default()), [Condvar::new(), Condvar::new()]));
    let other = Arc::clone(&shared);
    let switches = spec.switches;
    // it inherits CPU and policy
    let thread = thread::Builder::new()
        .name("switch".into())
        .spawn(move || take_turns(1, switches, &other))?;
    take_turns(0, switches, &shared)?;
    thread.join().map_err(|_| anyhow!("the other thread panicked"))??;
    let (turn, _) = &*shared;
    let mut times = std::mem::take(&mut turn.lock().map_err(|_| poisoned())?.times_ns);
    times.sort_unstable();
    Ok(Report(times))
}

fn poisoned() -> anyhow::Error {
    anyhow!("the other thread panicked")
}

fn take_turns(me: usize, switches: usize, shared: &(Mutex<Turn>, [Condvar; 2])) -> Result<()> {
    let (turn, signals) = shared;
    let mut mine = turn.lock().map_err(|_| poisoned())?;
    loop {
        while mine.of != me {
            mine = signals[me].wait(mine).map_err(|_| poisoned())?;
        }
        let now_ns = monotonic_ns()?;
        if mine.released_ns != 0 {
            let took_ns = now_ns.saturating_sub(mine.released_ns);
            mine.times_ns.push(took_ns);
        }
        let ends = mine.times_ns.len() >= switches;
        mine.of = 1 - me;
        // what is given away at the end is no switch; else the wait above releases the mutex
        mine.released_ns = if ends { 0 } else { monotonic_ns()? };
        signals[1 - me].notify_one();
        if ends {
            return Ok(());
        }
    }
}

/// A line of words separated by tabs: `switch`, number, mean, median, 99 %, maximum (ns).
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = &self.0;
        let last = times.len().saturating_sub(1);
        let at = |pct| times.get(last * pct / 100).copied().unwrap_or(0);
        let mean = times.iter().sum::<u64>() / (times.len().max(1) as u64);
        write!(f, "switch\t{}\t{mean}\t{}\t{}\t{}", times.len(), at(50), at(99), at(100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_is_timed() {
        let spec = Spec { cpu: Cpus(1), switches: 50, fifo: None };
        let Report(times) = run(&spec).expect("it runs");
        assert!(times.len() >= 50 && times.iter().all(|ns| *ns > 0), "{times:?}");
        assert!(times.is_sorted());
    }
}
