// SPDX-License-Identifier: GPL-2.0-only
//! One function for each scenario: it starts the scheduler under some load,
//! demands something, and stops it. Each says what break it catches.

mod access;
mod adopt;
mod adopt_pi;
mod adopt_storm;
mod balance;
mod beneath;
mod bodies;
mod churn;
mod contained;
mod control;
mod ejected;
mod evictions;
mod forger;
mod hog;
mod hog_kernel;
mod hogged;
mod hotplug;
mod inside;
mod last_cpu;
mod late_idle;
mod lazy;
mod loading;
mod loose;
mod notify;
mod obstacles;
mod predict;
mod preempt;
mod privileges;
mod recording;
mod relieved;
mod residence;
mod rt1;
mod rules;
mod run;
mod running;
mod scenes;
mod service;
mod share;
mod siege;
mod soak;
mod takeover;
mod tally;
mod topology;
mod truth;
mod waits;
mod wakes;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::auditor::{self, Report, Rule};
use crate::cpus::Cpus;
use crate::daemon::Daemon;
use crate::guest;
use crate::kernel_log::{KernelLog, complaints};

/// What a scenario works with.
pub struct Ctx {
    /// The RT CPUs.
    pub rt: Cpus,
    /// All other CPUs that are online.
    pub nrt: Cpus,
    /// The loader.
    pub program: PathBuf,
}

impl Ctx {
    /// RT CPUs as given, the rest as the kernel has it.
    pub fn new(rt: Cpus, program: PathBuf) -> Result<Self> {
        let nrt = Cpus::online()?.without(rt);
        ensure!(nrt.0 != 0, "no CPU is left beside the RT CPUs {rt}");
        Ok(Self { rt, nrt, program })
    }

    /// The same machine with other RT CPUs.
    pub fn with_rt(&self, rt: Cpus) -> Result<Self> {
        Self::new(rt, self.program.clone())
    }

    /// All CPUs.
    #[must_use]
    pub fn all(&self) -> Cpus {
        Cpus(self.rt.0 | self.nrt.0)
    }

    /// Loads the scheduler on the RT CPUs, with more arguments.
    pub fn load(&self, more: &[&str]) -> Result<Daemon> {
        let rt = self.rt.to_string();
        let mut args = vec!["--rt-cpus", &rt];
        args.extend(more);
        Daemon::start(&self.program, &args)
    }
}

/// How a scenario ended, if it did not fail.
pub enum Outcome {
    /// All that it demands was so.
    Passed,
    /// It cannot run here, and why.
    Skipped(String),
}

impl Outcome {
    /// Exit code of `artis-guest scenario` for what cannot run in this guest, as automake has it.
    pub const SKIPPED: u8 = 77;
}

/// Options under which a [`Mixed`](crate::worker::Kind::Mixed) worker is moved to RT CPUs. Its entries
/// come in bursts, so it is calm after K x C of own run time only: 2 ms with this, of the 6 ms that it
/// computes. With the default, 8 ms, it was on RT CPUs only as far as the host took time from the
/// guest's CPUs, which run time includes: on a host that did not, 5 evictions of a worker and less.
const CALM_AT_2_MS: [&str; 2] = ["--predict-c-us", "250"];

/// Fails for fewer than `least` of what is named: too little of what a scenario is about happened.
fn enough(number: u64, least: u64, what: &str) -> Result<()> {
    ensure!(number >= least, "only {number} {what}: this shows nothing");
    Ok(())
}

/// On which kernels of the matrix a scenario runs. In the nightly tier each runs on all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    Everywhere,
    /// All but the one with PREEMPT_RT.
    NotRt,
    /// The first two kernels of the list: without and with PREEMPT_RT.
    Both,
    /// The first kernel of the list.
    First,
    /// The floor kernel only, which has what it needs.
    Floor,
    /// None but in the nightly tier, or when it is asked for by name: it takes long.
    Nightly,
    /// All, when it is asked for by name: it takes very long.
    Named,
}

/// What a scenario needs of the host, which has two CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// What others leave: virtual time counts instructions in its guests, so these are slower then,
    /// but see nothing of it. Or it takes very long, see [`Scope::Named`].
    Shared,
    /// Both CPUs, which its four virtual ones may keep busy: two of those at once take more than
    /// twice as long, also where they wait most of their time (6.18, `forger` and `service` beside
    /// each other: 123 and 128 s; one after the other 53 and 42 s; 2026-11-27).
    Alone,
    /// The same, and it compares times: a failure beside other load is no verdict.
    Timed,
}

/// A named scenario.
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it demands, in a line.
    pub what: &'static str,
    /// On which kernels of the matrix it runs.
    pub scope: Scope,
    /// More arguments for scripts/vm.
    pub boot: &'static [&'static str],
    /// What it takes on an undisturbed host of two CPUs at 3 GHz, s. Ended after
    /// [`Scenario::PATIENCE`] times as long, and more on a slower host, see
    /// [`crate::host::machine::Machine::slowness`].
    pub secs: u32,
    /// What it needs of the host.
    pub host: Host,
    /// Complaints of the kernel that it causes, whatever the scheduler: parts of their lines.
    pub complaints: &'static [&'static str],
    /// The scenario.
    pub run: fn(&Ctx) -> Result<Outcome>,
}

impl Scenario {
    /// A scenario that takes so many times as long as it should is ended,
    pub const PATIENCE: u32 = 3;
    /// but none earlier: it waits so long for what must happen, and says what did not.
    pub const LIMIT_MIN: Duration = Duration::from_secs(90);
}

/// Does a guest with these arguments of scripts/vm count instructions?
pub fn counts_instructions(boot: &[impl AsRef<str>]) -> bool {
    boot.iter().any(|option| option.as_ref().starts_with("--icount"))
}

/// All of them, in the order in which the matrix runs them.
pub const ALL: &[Scenario] = &[
    loading::LOAD_UNLOAD,
    bodies::ZERO_BODIES,
    bodies::ZERO_BODIES_STRICT,
    running::EVERYONE_RUNS,
    running::WEIGHTS,
    hog::FIFO_HOG,
    hog::FIFO_HOG_NRT,
    hog_kernel::HOG_KERNEL,
    hogged::HOGGED,
    relieved::RELIEVED,
    churn::AFFINITY,
    churn::STORMS,
    churn::STORMS_CHECKED,
    loading::SIGKILL,
    takeover::TAKEOVER,
    loading::BAD_ARGS,
    access::ACCESS,
    contained::CONTAINED,
    privileges::PRIVILEGES,
    siege::SIEGE,
    siege::SIEGE_MINUTE,
    ejected::EJECTED,
    hotplug::HOTPLUG,
    last_cpu::LAST_CPU,
    late_idle::LATE_IDLE,
    evictions::TASK_EVICTIONS,
    tally::TALLY,
    recording::RECORDING,
    run::RUN_CLASS,
    rt1::RT1_ORDER,
    rt1::RT1_PLACES,
    wakes::RT0_WAKES,
    wakes::RT1_WAKES,
    residence::RESIDENCE,
    share::RT_SHARE,
    loose::LOOSE,
    share::IDLE_RT_USED,
    share::DEADLINE,
    balance::TWO_CPUS,
    balance::ANNEX_B,
    predict::MIXED_PREDICT,
    topology::TWO_LLCS,
    topology::BOUND,
    topology::SMT,
    control::CTL,
    rules::RULES,
    adopt::ADOPT,
    adopt_storm::ADOPT_STORM,
    adopt_pi::ADOPT_PI,
    inside::INSIDE,
    forger::FORGER,
    obstacles::REFUSED_BACK,
    obstacles::STUCK_TERMINAL,
    obstacles::LOCKED_DOWN,
    notify::NOTIFY,
    service::SERVICE,
    service::SERVICE_FAILS,
    hog::HOG_LOAD,
    beneath::WOKEN_BENEATH,
    beneath::IN_TURN,
    hog::PUT_BACK,
    waits::NEIGHBOURS,
    waits::WIDENED,
    waits::FORK_STORM_WAITS,
    waits::GRACE_PERIODS,
    waits::FAIR_SERVER,
    truth::PREEMPT_GROUND_TRUTH,
    preempt::PREEMPT_MODELS,
    lazy::AUDITOR,
    scenes::SCENE_WORK,
    scenes::SCENE_SHARES,
    scenes::SCENE_COMPARE,
    scenes::SCENE_HOGS,
    scenes::SCENES,
    soak::SOAK_HOUR,
    soak::SOAK_HOTPLUG,
    soak::SOAK_SIGKILL,
    soak::SOAK_FORKS,
    soak::SOAK_AFFINITY,
    soak::SOAK_HOG,
    soak::SOAK_SUSPEND,
];

/// Finds a scenario by name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Scenario> {
    ALL.iter().find(|s| s.name == name)
}

/// What the auditor finds because a scenario is about it: RT1+ tasks wait for higher ones (docs/rt1.md).
const MEANT: &[(Rule, &str)] = &[(Rule::Standstill, "rt1_order")];

/// So many messages are shown from the first complaint of the kernel on: stacks of tasks follow it,
/// at a level that the console does not show.
const STACKS: usize = 300;

/// Runs one, and fails as well if the kernel complained meanwhile.
pub fn run(scenario: &Scenario, ctx: &Ctx) -> Result<Outcome> {
    guest::ensure_virtual()?;
    crate::worker::above_all()?;
    ensure!(guest::scx_state()? == "disabled", "a scheduler is loaded already");
    guest::prepare_dump();
    let mut log = KernelLog::from_now()?;
    auditor::begin(ctx.rt)?;
    say("begins");
    let outcome = (scenario.run)(ctx);
    let audit = auditor::end()?;
    let lines = log.drain();
    let bad = complaints(lines.iter().map(String::as_str), scenario.complaints);
    let first = lines.iter().position(|line| bad.contains(&line.as_str())).unwrap_or(lines.len());
    for (i, line) in lines.iter().enumerate() {
        if line.contains("sched_ext") || (first..first + STACKS).contains(&i) {
            say(&format!("kernel: {line}"));
        }
    }
    for line in audit.iter().flat_map(Report::lines) {
        say(&line);
    }
    say("ends");
    let outcome = outcome?;
    ensure!(bad.is_empty(), "the kernel complained: {bad:?}");
    let found = audit.iter().flat_map(|audit| &audit.findings);
    let new: Vec<_> = found.filter(|f| !MEANT.contains(&(f.rule, scenario.name))).collect();
    let more = new.len().saturating_sub(1);
    ensure!(new.is_empty(), "the auditor found {} (and {more} more)", new[0]);
    Ok(outcome)
}

/// A figure or a step, with the time since the first one, for whoever reads
/// the output.
pub fn say(text: &str) {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let began = BEGAN.get_or_init(Instant::now);
    println!("  {:6.2} s  {text}", began.elapsed().as_secs_f64());
}
