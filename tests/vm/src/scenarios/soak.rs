// SPDX-License-Identifier: GPL-2.0-only
//! Long runs, for scripts/soak: nothing is ejected, lost, left, or grows. An ejection is a complaint
//! of the kernel's log, which fails any scenario. All of it is told as figures, too, which a saved
//! report has.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use procfs::process::Process;

use super::adopt::becomes;
use super::churn::storm;
use super::control::told as answered;
use super::hog::{HOG_PRIORITY, KERNEL_PRIORITY};
use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::daemon::{Daemon, Ended};
use crate::figure::figure;
use crate::guest::{self, PATIENCE, status_number, until};
use crate::kernel_log::{KernelLog, is_ejection};
use crate::kernel_threads::Raised;
use crate::load::{Load, Workers, mix};
use crate::policy::{EXT, Policy};
use crate::residue::Inventory;
use crate::worker::{Kind, Spec};

/// A FIFO task that never leaves an RT CPU.
pub const SOAK_HOG: Scenario =
    soak("soak_hog", "a FIFO hog on an RT CPU for ten minutes", 700, &[], |ctx| told(ctx, hog));
/// CPUs that go and come under load.
pub const SOAK_HOTPLUG: Scenario =
    soak("soak_hotplug", "an RT and an NRT CPU go and come 1,000 times", 2_000, &[], |ctx| {
        told(ctx, hotplug)
    });
/// Deaths of the daemon while tasks are adopted.
pub const SOAK_SIGKILL: Scenario = Scenario {
    // two at once did not end in 980 and 1,320 s (6.18, 7.0 PREEMPT_RT; 2026-11-29)
    host: Host::Alone,
    ..soak("soak_sigkill", "SIGKILL and a new start 25 times, one of four parts", 375, &[], |ctx| {
        told(ctx, sigkill)
    })
};
/// Tasks that begin and end.
pub const SOAK_FORKS: Scenario =
    soak("soak_forks", "100,000 forks", 2_000, &[], |ctx| told(ctx, forks));
/// Tasks that change their CPUs.
pub const SOAK_AFFINITY: Scenario =
    soak("soak_affinity", "600,000 changes of affinity", 1_200, &[], |ctx| told(ctx, affinity));
/// The machine sleeps.
pub const SOAK_SUSPEND: Scenario = Scenario {
    // beside another guest CPUs come back too late for the kernel ("failed to report alive state")
    host: Host::Alone,
    ..soak("soak_suspend", "suspend to RAM, five times", 300, &[], |ctx| told(ctx, suspend))
};
/// As much load as there is.
pub const SOAK_HOUR: Scenario =
    soak("soak_hour", "full load and a real-time task for an hour", 3_700, &[], |ctx| {
        told(ctx, hour)
    });

/// Catches, all of them: an ejection, a task that stands still, a setting that stays, memory of the
/// daemon that grows.
const fn soak(
    name: &'static str,
    what: &'static str,
    secs: u32,
    complaints: &'static [&'static str],
    run: fn(&Ctx) -> Result<Outcome>,
) -> Scenario {
    let (scope, host) = (Scope::Named, Host::Shared);
    Scenario { name, what, scope, boot: &[], secs, host, complaints, run }
}

/// Whatever comes of it: has the kernel ended the scheduler, and is a setting not what it was?
fn told(ctx: &Ctx, run: fn(&Ctx) -> Result<Outcome>) -> Result<Outcome> {
    let (before, mut log) = (Inventory::now(), KernelLog::from_now()?);
    let outcome = run(ctx);
    if !matches!(outcome, Ok(Outcome::Skipped(_))) {
        let ejections = log.drain().iter().filter(|line| is_ejection(line)).count();
        figure("ejections", ejections, "times");
        figure("settings_left", before.settings_left(), "settings");
    }
    outcome
}

/// Fails unless each of the workers does some work in the next `secs`. After the last look, or a failed
/// one, it tells how many did none.
fn look(workers: &mut Workers, secs: f64, when: &str, last: bool) -> Result<()> {
    let before = workers.counts();
    let looked = workers.ensure_progress(secs, when);
    if last || looked.is_err() {
        let lost = before.iter().zip(workers.counts()).filter(|(then, now)| *then == now).count();
        figure("tasks_lost", lost, "tasks");
    }
    looked
}

/// What a process has of memory that is no file's.
struct Memory {
    kb: u64,
    /// The same by mapping, where there is any: address and name, KiB.
    of: BTreeMap<String, u64>,
}

impl Memory {
    fn now(pid: u32) -> Result<Self> {
        let mut of = BTreeMap::new();
        for map in Process::new(pid.cast_signed())?.smaps()? {
            let kb = map.extension.map.get("Anonymous").map_or(0, |bytes| bytes / 1024);
            if kb > 0 {
                of.insert(format!("{:x} {:?}", map.address.0, map.pathname), kb);
            }
        }
        Ok(Self { kb: status_number(pid, "RssAnon")?, of })
    }

    /// Tells which mappings have more than in `before`.
    fn tell_more(&self, before: &Self) {
        for (mapping, kb) in &self.of {
            let had_kb = before.of.get(mapping).copied().unwrap_or(0);
            if *kb > had_kb {
                say(&format!("{mapping}: {had_kb} to {kb} KiB"));
            }
        }
    }
}

/// Fails if memory grows: if `of` the second half of the samples is more than `of` the first one. `most`: what
/// one daemon has had at one time. What it does for the first time takes some, once.
fn ensure_flat(samples: &[Memory], of: fn(&[Memory]) -> Option<&Memory>) -> Result<()> {
    let (first, second) = samples.split_at(samples.len() / 2);
    let (before, now) = of(first).zip(of(second)).context("too few samples of memory")?;
    let grown_kb = now.kb.saturating_sub(before.kb);
    figure("memory", now.kb, "KiB");
    figure("memory_grown", grown_kb, "KiB");
    say(&format!("memory, KiB: {:?}", samples.iter().map(|sample| sample.kb).collect::<Vec<_>>()));
    if grown_kb > 0 {
        now.tell_more(before);
    }
    ensure!(grown_kb <= GROWTH_MAX, "the daemon has {grown_kb} KiB more");
    Ok(())
}

fn most(half: &[Memory]) -> Option<&Memory> {
    half.iter().max_by_key(|sample| sample.kb)
}

/// Where each sample is of another daemon: how much of what it needs to begin the allocator keeps is
/// chance, 740 KiB in some. What accumulates from one to the next is in all.
fn least(half: &[Memory]) -> Option<&Memory> {
    half.iter().min_by_key(|sample| sample.kb)
}

/// In each window every task must do some work; half of the shortest time that the daemon gives the
/// kernel's watchdog.
const WINDOW: f64 = 15.0;
/// What the daemon may have more: 64 bytes kept of each of 500 changes of a CPU would be seen. KiB.
const GROWTH_MAX: u64 = 31;

/// The scheduler, and a load on all CPUs.
struct Soak {
    before: Inventory,
    daemon: Daemon,
    loads: Vec<Load>,
    workers: Workers,
    starts: u64,
    /// The daemon's memory at each look.
    memory: Vec<Memory>,
}

impl Soak {
    fn begin(ctx: &Ctx, more: impl IntoIterator<Item = Spec>) -> Result<Self> {
        use Kind::{Call, Exec, Fork, Sleep, Spin, Thread, Touch};
        let before = Inventory::now();
        let daemon = ctx.load(&[])?;
        let specs = [Spin, Spin, Sleep, Call, Touch, Fork, Exec, Thread].map(Spec::new);
        let mut workers = Workers::start("soak", specs.into_iter().chain(more))?;
        workers.wait_begun()?;
        let mut soak = Self {
            before,
            daemon,
            loads: mix()?,
            workers,
            starts: guest::enable_seq()?,
            memory: Vec::new(),
        };
        soak.look("in the beginning")?;
        Ok(soak)
    }

    /// Fails unless all live and get on.
    fn look(&mut self, when: &str) -> Result<()> {
        self.look_once(when, false)
    }

    fn look_once(&mut self, when: &str, last: bool) -> Result<()> {
        look(&mut self.workers, WINDOW, when, last)?;
        for load in &mut self.loads {
            load.ensure_runs()?;
        }
        self.daemon.ensure_loaded(when)?;
        self.memory.push(Memory::now(self.daemon.pid())?);
        Ok(())
    }

    /// Looks for `secs`.
    fn last(&mut self, secs: f64) -> Result<()> {
        let windows = (secs / WINDOW).ceil() as u32;
        (1..=windows).try_for_each(|w| self.look(&format!("in window {w} of {windows}")))
    }

    /// Fails unless it can end without a trace. Starts of the scheduler that are more than `wanted`
    /// follow an end that was not.
    fn end(mut self, wanted: u64) -> Result<Outcome> {
        self.look_once("in the end", true)?;
        let starts = guest::enable_seq()? - self.starts;
        figure("starts", starts, "times");
        ensure!(
            starts <= wanted,
            "the scheduler was started {starts} times, {wanted} are explained"
        );
        ensure_flat(&self.memory, most)?;
        drop((self.workers, self.loads));
        self.daemon.finish()?;
        self.before.ensure_same()?;
        Ok(Outcome::Passed)
    }
}

fn hog(ctx: &Ctx) -> Result<Outcome> {
    let raised = Raised::to(KERNEL_PRIORITY)?;
    let mut soak = Soak::begin(ctx, [])?;
    let on = Cpus::one(ctx.rt.first()?);
    let mut hog = Workers::start("hog", [Spec::new(Kind::Spin).on(on).fifo(HOG_PRIORITY)])?;
    hog.wait_begun()?;
    soak.last(600.0)?;
    hog.ensure_progress(WINDOW, "in the end")?;
    drop((hog, raised));
    soak.end(0)
}

fn hotplug(ctx: &Ctx) -> Result<Outcome> {
    const TIMES: u64 = 1_000;
    const BETWEEN_LOOKS: usize = 10;
    let mut soak = Soak::begin(ctx, [])?;
    let mut cpus = [ctx.rt.last()?, ctx.nrt.last()?].into_iter().cycle();
    for turn in 0..TIMES / BETWEEN_LOOKS as u64 {
        for cpu in cpus.by_ref().take(BETWEEN_LOOKS) {
            for online in ["0", "1"] {
                guest::write(&format!("/sys/devices/system/cpu/cpu{cpu}/online"), online)?;
            }
        }
        soak.look(&format!("after {} times", (turn + 1) * BETWEEN_LOOKS as u64))?;
    }
    soak.end(0)
}

fn sigkill(ctx: &Ctx) -> Result<Outcome> {
    const TIMES: u32 = 25;
    const PRIORITIES: [u32; 4] = [20, 30, 40, 25];
    // the last one forks: its children have records, too
    let kinds = [Kind::Sleep, Kind::Sleep, Kind::Sleep, Kind::Fork];
    let real = kinds.into_iter().zip(PRIORITIES);
    let real = real.map(|(kind, p)| Spec::new(kind).on(ctx.all()).fifo(p.cast_signed()));
    super::adopt::stay_out(ctx)?;
    let soak = Soak::begin(ctx, real)?;
    let Soak { before, daemon, mut loads, mut workers, .. } = soak;
    daemon.finish()?;
    let adopted: Vec<_> = (workers.len() - PRIORITIES.len()..workers.len()).collect();
    let mut memory = Vec::new();
    for turn in 1..=TIMES {
        let daemon = ctx.load(&["--adopt"])?;
        for i in &adopted {
            let expected = Policy { policy: EXT, ..Policy::new(libc::SCHED_FIFO, 0) };
            becomes(workers.pid(*i).cast_signed(), "it is adopted", expected)?;
        }
        // it has begun, and freed what it needed for that, when it answers
        answered(ctx, &["get"], 0)?;
        memory.push(Memory::now(daemon.pid())?);
        daemon.signal(Signal::SIGKILL)?;
        let Ended { code, output } = daemon.ended()?;
        ensure!(code == -1, "in turn {turn} it had ended: {code}\n{output}");
        until("the scheduler is gone", PATIENCE, || Ok(guest::scx_state()? == "disabled"))?;
        look(&mut workers, WINDOW / 5.0, &format!("after SIGKILL {turn}"), turn == TIMES)?;
    }
    ensure_flat(&memory, least)?;
    let ended = Daemon::run(&ctx.program, &["restore"])?;
    ensure!(ended.code == 0, "restore: {}\n{}", ended.code, ended.output);
    for (i, priority) in adopted.iter().zip(PRIORITIES) {
        let fifo = Policy::new(libc::SCHED_FIFO, priority);
        becomes(workers.pid(*i).cast_signed(), "it is what it was", fifo)?;
    }
    for load in &mut loads {
        load.ensure_runs()?;
    }
    drop((workers, loads));
    ctx.load(&[])?.finish()?;
    before.ensure_same()?;
    Ok(Outcome::Passed)
}

fn forks(ctx: &Ctx) -> Result<Outcome> {
    const FORKS: u64 = 100_000;
    let mut soak = Soak::begin(ctx, [])?;
    // at nice 0, beside the load, they take longer than half an hour
    let mut forking =
        Workers::start("forks", [Kind::Fork; 4].map(|kind| Spec::new(kind).nice(-10)))?;
    forking.wait_begun()?;
    let began = Instant::now();
    let forks = loop {
        let forks = forking.counts().iter().sum::<u64>();
        if forks >= FORKS {
            break forks;
        }
        soak.look(&format!("after {forks} forks"))?;
    };
    figure("forks_per_second", forks / began.elapsed().as_secs().max(1), "times");
    drop(forking);
    soak.end(0)
}

fn affinity(ctx: &Ctx) -> Result<Outcome> {
    const CHANGES: u64 = 600_000;
    const BURST_S: u64 = 10;
    let mut soak = Soak::begin(ctx, [])?;
    let bound = Workers::start("bound", [Kind::Spin, Kind::Call, Kind::Sleep].map(Spec::new))?;
    let (mut secs, mut changes) = (0, 0);
    while changes < CHANGES {
        changes += std::thread::scope(|scope| {
            let storm = || storm(ctx, &bound, Duration::from_secs(BURST_S), u64::MAX);
            let storms = [(); 3].map(|()| scope.spawn(storm));
            storms.into_iter().map(|storm| storm.join().expect("no panic")).sum::<Result<u64>>()
        })?;
        secs += BURST_S;
        soak.look(&format!("after {changes} changes of affinity"))?;
    }
    figure("affinities_per_second", changes / secs, "times");
    drop(bound);
    soak.end(0)
}

fn suspend(ctx: &Ctx) -> Result<Outcome> {
    const TIMES: u64 = 5;
    let [state, alarm] = ["/sys/power/state", "/sys/class/rtc/rtc0/wakealarm"];
    let states = fs::read_to_string(state).unwrap_or_default();
    if !states.split_whitespace().any(|state| state == "mem") || !Path::new(alarm).exists() {
        return Ok(Outcome::Skipped(format!("{state} offers '{}'", states.trim())));
    }
    let mut soak = Soak::begin(ctx, [])?;
    for turn in 1..=TIMES {
        guest::write(alarm, "0")?;
        // one that comes before it sleeps does not wake it
        guest::write(alarm, "+20")?;
        guest::write(state, "mem").context("it does not sleep")?;
        let online = Cpus::online()?;
        ensure!(online == ctx.all(), "only CPUs {online} came back from sleep {turn}");
        say(&format!("it has slept for the {turn}. time"));
        soak.look(&format!("after sleep {turn}"))?;
    }
    soak.end(0)
}

fn hour(ctx: &Ctx) -> Result<Outcome> {
    let rt0 = Spec::new(Kind::Duty).on(Cpus::one(ctx.rt.first()?)).fifo(50);
    let mut soak = Soak::begin(ctx, [rt0])?;
    soak.last(3_600.0)?;
    soak.end(0)
}
