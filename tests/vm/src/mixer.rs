// SPDX-License-Identifier: GPL-2.0-only
//! The cooperative mixer of De Marchi's "Multi-core scheduling optimizations for soft real-time
//! applications": four waves feed two
//! mixers, which feed an output, which feeds a monitor. Threads that share buffers and wake each
//! other; what a sample takes from the first wave's begin to the monitor, and who changes its CPU.

use std::fmt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, Thread};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
use nix::unistd::gettid;

use crate::cpus::Cpus;
use crate::work::{compute_units, monotonic_ns, units_in};

/// Who there is, and whose data each of them takes.
const ROLES: [(&str, &[usize]); 8] = [
    ("wave0", &[]),
    ("wave1", &[]),
    ("wave2", &[]),
    ("wave3", &[]),
    ("mixer0", &[0, 1]),
    ("mixer1", &[2, 3]),
    ("output", &[4, 5]),
    ("monitor", &[6]),
];

/// What the mixer is told.
#[derive(Args, Clone, Debug)]
pub struct Spec {
    /// So many samples
    #[arg(long, default_value_t = 1000)]
    pub samples: usize,
    /// Time between two
    #[arg(long, default_value_t = 5000)]
    pub period_us: u64,
    /// What each task computes for a sample
    #[arg(long, default_value_t = 200)]
    pub burst_us: u64,
    /// What each task writes for a sample
    #[arg(long, default_value_t = 16)]
    pub item_kb: usize,
    /// Each wave on one of these CPUs, in turn
    #[arg(long, value_name = "CPUS")]
    pub bind: Option<Cpus>,
    /// Declare the followers to the scx_artis that runs, by this program
    #[arg(long, value_name = "PROGRAM")]
    pub follow: Option<String>,
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// Time of each sample, ns, sorted.
    samples_ns: Vec<u64>,
    /// Of each task: name, how often it began to run after a wait, and on another CPU than before.
    tasks: Vec<(&'static str, u64, u64)>,
}

/// What the tasks share.
struct Board {
    spec: Spec,
    units: u64,
    /// When the first sample begins, ns.
    begin_ns: OnceLock<u64>,
    /// Begin of the first wave of each sample, ns.
    began_ns: Vec<AtomicU64>,
    /// Samples that each role has done.
    done: [AtomicU64; ROLES.len()],
    /// What each role writes.
    items: Vec<Vec<AtomicU64>>,
    threads: OnceLock<Vec<Thread>>,
}

/// Where a task ran.
#[derive(Default)]
struct Places {
    last: Option<i32>,
    wakes: u64,
    moves: u64,
}

impl Places {
    fn note(&mut self) {
        // SAFETY: no arguments; it reads the CPU's number.
        let cpu = unsafe { libc::sched_getcpu() };
        self.wakes += 1;
        self.moves += u64::from(self.last.is_some_and(|last| last != cpu));
        self.last = Some(cpu);
    }
}

/// Runs the mixer to its end.
///
/// # Errors
/// When threads cannot be made or `--follow` does not work.
pub fn run(spec: &Spec) -> Result<Report> {
    ensure!(spec.samples > 0 && spec.item_kb > 0, "no sample, or an empty one");
    let words = spec.item_kb * 1024 / size_of::<u64>();
    let item = || (0..words).map(|_| AtomicU64::new(0)).collect();
    let board = Arc::new(Board {
        spec: spec.clone(),
        units: units_in(spec.burst_us * 1000)?.max(1),
        begin_ns: OnceLock::new(),
        began_ns: (0..spec.samples).map(|_| AtomicU64::new(u64::MAX)).collect(),
        done: Default::default(),
        items: ROLES.iter().map(|_| item()).collect(),
        threads: OnceLock::new(),
    });
    let go = Arc::new(Barrier::new(ROLES.len() + 1));
    let (tell, told) = mpsc::channel();
    let mut threads = Vec::new();
    for (role, (name, _)) in ROLES.iter().enumerate() {
        let (board, go, tell) = (Arc::clone(&board), Arc::clone(&go), tell.clone());
        let thread = thread::Builder::new().name((*name).to_owned()).spawn(move || {
            let _ = tell.send((role, gettid().as_raw()));
            let bound = if ROLES[role].1.is_empty() { bind(role, &board.spec) } else { Ok(()) };
            go.wait();
            bound.and_then(|()| play(role, &board))
        });
        threads.push(thread.with_context(|| format!("start {name}"))?);
    }
    let mut tids = [0; ROLES.len()];
    for (role, tid) in told.iter().take(ROLES.len()) {
        tids[role] = tid;
    }
    let _ = board.threads.set(threads.iter().map(|t| t.thread().clone()).collect());
    if let Some(program) = &spec.follow {
        declare(program, &tids)?;
    }
    let _ = board.begin_ns.set(monotonic_ns()? + 50_000_000);
    go.wait();
    let (mut tasks, mut samples_ns) = (Vec::new(), Vec::new());
    for (thread, (name, _)) in threads.into_iter().zip(ROLES) {
        let (places, times) =
            thread.join().map_err(|_| anyhow!("{name} panicked"))?.context(name)?;
        tasks.push((name, places.wakes, places.moves));
        samples_ns.extend(times);
    }
    samples_ns.sort_unstable();
    Ok(Report { samples_ns, tasks })
}

/// Binds the calling thread, a wave.
fn bind(wave: usize, spec: &Spec) -> Result<()> {
    let Some(cpus) = spec.bind else { return Ok(()) };
    let cpu = cpus.iter().cycle().nth(wave).context("no CPU to bind a wave to")?;
    Cpus::one(cpu).bind(0)
}

/// Has every consumer follow its producers.
fn declare(program: &str, tids: &[i32; ROLES.len()]) -> Result<()> {
    for (role, (name, producers)) in ROLES.iter().enumerate() {
        if producers.is_empty() {
            continue;
        }
        let of = producers.iter().map(|producer| tids[*producer].to_string());
        let out = Command::new(program)
            .args(["ctl", "follow", &tids[role].to_string()])
            .args(of)
            .output()
            .with_context(|| format!("run {program}"))?;
        let text = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "{program} ctl follow for {name}: {text}");
    }
    Ok(())
}

/// All samples of one task; the times of the monitor's.
fn play(role: usize, board: &Board) -> Result<(Places, Vec<u64>)> {
    let (spec, mut places, mut times) = (&board.spec, Places::default(), Vec::new());
    let producers = ROLES[role].1;
    let consumer = ROLES.iter().position(|(_, of)| of.contains(&role));
    let begin_ns = *board.begin_ns.get().context("the begin is not known")?;
    let threads = board.threads.get().context("the threads are not known")?;
    for sample in 0..spec.samples as u64 {
        if producers.is_empty() {
            let at_ns = begin_ns + sample * spec.period_us * 1000;
            let at = TimeSpec::nanoseconds(at_ns.cast_signed());
            clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &at)
                .context("waiting for the next sample")?;
            places.note();
            board.began_ns[sample as usize].fetch_min(monotonic_ns()?, Ordering::Relaxed);
        }
        while !producers.iter().all(|p| board.done[*p].load(Ordering::Acquire) > sample) {
            thread::park();
            places.note();
        }
        let mut sum = 0u64;
        for producer in producers {
            let item = board.items[*producer].iter();
            sum = item.fold(sum, |sum, word| sum.wrapping_add(word.load(Ordering::Relaxed)));
        }
        if let Some(consumer) = consumer {
            compute_units(board.units);
            for (i, word) in board.items[role].iter().enumerate() {
                word.store(sum.wrapping_add(i as u64), Ordering::Relaxed);
            }
            board.done[role].store(sample + 1, Ordering::Release);
            threads[consumer].unpark();
        } else {
            let began_ns = board.began_ns[sample as usize].load(Ordering::Relaxed);
            times.push(monotonic_ns()?.saturating_sub(began_ns));
        }
    }
    Ok((places, times))
}

impl Report {
    /// Wake-ups of those that follow, and how many of them were on another CPU than before.
    #[must_use]
    pub fn followers(&self) -> (u64, u64) {
        let consumers = self.tasks.iter().zip(ROLES).filter(|(_, (_, of))| !of.is_empty());
        consumers.fold((0, 0), |(wakes, moves), (task, _)| (wakes + task.1, moves + task.2))
    }

    /// Reads the lines of [`Report`]'s text for [`Report::followers`].
    ///
    /// # Errors
    /// When there are no such lines.
    pub fn followers_in(text: &str) -> Result<(u64, u64)> {
        let line = text.lines().find_map(|line| line.strip_prefix("followers\t"));
        let (wakes, moves) =
            line.and_then(|line| line.split_once('\t')).context("no line of followers")?;
        Ok((wakes.parse()?, moves.parse()?))
    }

    fn quantile_ns(&self, pct: usize) -> u64 {
        let last = self.samples_ns.len().saturating_sub(1);
        self.samples_ns.get(last * pct / 100).copied().unwrap_or(0)
    }
}

/// Lines of words separated by tabs: `sample`, number, mean (ns), variance (ns²), median, 99 %,
/// maximum (ns); `task`, name, wake-ups, moves; `followers`, wake-ups, moves.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.samples_ns.len().max(1) as f64;
        let mean = self.samples_ns.iter().sum::<u64>() as f64 / n;
        let variance =
            self.samples_ns.iter().map(|ns| (*ns as f64 - mean).powi(2)).sum::<f64>() / n;
        let (median, p99, most) =
            (self.quantile_ns(50), self.quantile_ns(99), self.quantile_ns(100));
        writeln!(f, "sample\t{n}\t{mean:.0}\t{variance:.0}\t{median}\t{p99}\t{most}")?;
        for (name, wakes, moves) in &self.tasks {
            writeln!(f, "task\t{name}\t{wakes}\t{moves}")?;
        }
        let (wakes, moves) = self.followers();
        write!(f, "followers\t{wakes}\t{moves}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_arrives_and_the_text_tells_it() {
        let spec = Spec {
            samples: 20,
            period_us: 500,
            burst_us: 10,
            item_kb: 1,
            bind: None,
            follow: None,
        };
        let report = run(&spec).expect("it runs");
        assert_eq!(report.samples_ns.len(), 20);
        assert!(report.tasks[..4].iter().all(|(_, wakes, _)| *wakes == 20), "{report}");
        let text = report.to_string();
        assert!(text.starts_with("sample\t20\t"), "{text}");
        assert_eq!(Report::followers_in(&text).expect("told"), report.followers());
    }

    #[test]
    fn a_move_is_another_cpu_than_before() {
        let mut places = Places::default();
        places.note();
        assert_eq!((places.wakes, places.moves), (1, 0), "the first is none");
        places.last = Some(-1);
        places.note();
        assert_eq!((places.wakes, places.moves), (2, 1));
    }
}
