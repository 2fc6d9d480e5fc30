// SPDX-License-Identifier: GPL-2.0-only
//! All sources together: opened before the start, read after the end.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::measure::calls::Calls;
use crate::measure::cpu_stat::CpuStat;
use crate::measure::energy::{self, Energy};
use crate::measure::evictions::{self, Evictions};
use crate::measure::migrations::Migrations;
use crate::measure::notes::Notes;
use crate::measure::on_cpu::OnCpu;
use crate::measure::rings::Rings;
use crate::measure::spans::Switch;
use crate::measure::task_stat::TaskStat;
use crate::measure::trouble::machine::SYS_CPU;
use crate::measure::trouble::seen::Heat;
use crate::measure::{machine, perf};

/// Running sources.
pub struct Meters {
    pids: Vec<i32>,
    cpus: Vec<u32>,
    rings: Option<Rings>,
    on_cpu: Option<OnCpu>,
    migrations: Option<Migrations>,
    calls: Option<Calls>,
}

/// Accounts at the start.
pub struct Before {
    tasks: Vec<Option<TaskStat>>,
    energy: Result<Energy, String>,
    heat: Heat,
    cpus: CpuStat,
}

/// What the kernel says about a run. By task where it is a list; `None`: not known.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Process ids.
    pub pids: Vec<i32>,
    /// Time and switches.
    pub stat: Vec<Option<TaskStat>>,
    /// Time on each CPU, ns.
    pub cpu_time_ns: Option<Vec<BTreeMap<u32, u64>>>,
    /// Moves.
    pub migrations: Option<Vec<u64>>,
    /// System calls, those after the task's end included.
    pub calls: Option<Vec<u64>>,
    /// By cause.
    pub evictions: Option<Evictions>,
    /// Switch records by CPU, in their order.
    pub switches: Option<Vec<(u32, Vec<Switch>)>>,
    /// Switch records that were lost.
    pub lost: u64,
    /// Each online CPU's ticks.
    pub ticks: CpuStat,
    /// µJ of all packages.
    pub energy_uj: Option<u64>,
}

impl Meters {
    /// Opens what can be opened for tasks that are asleep; the rest goes to `notes`.
    ///
    /// # Errors
    /// When the kernel does not tell its CPUs.
    pub fn open(pids: &[i32], notes: &mut Notes) -> Result<Self> {
        let cpus = machine::online_cpus()?;
        let rings = Rings::open(&cpus);
        let on_cpu = OnCpu::open(pids, &cpus, rings.as_ref().ok());
        let why = |err: &std::io::Error| perf::why(err, 2);
        match &on_cpu {
            Ok(_) => notes.source("cpu_time_ns", "perf task-clock by task and CPU"),
            Err(err) => notes.source("cpu_time_ns", &format!("task's own look: {}", why(err))),
        }
        // the records come from the events of on_cpu
        let rings = match (rings, &on_cpu) {
            (Ok(rings), Ok(_)) => Ok(rings),
            (Err(why), _) => Err(why),
            (_, Err(err)) => Err(why(err)),
        };
        match &rings {
            Ok(_) => notes.source("timeline", "perf switch records"),
            Err(why) => notes.source("timeline", &format!("task's own look: {why}")),
        }
        let migrations = Migrations::open(pids);
        match (&migrations, &rings) {
            (Ok(_), _) => notes.source("migrations", "perf cpu-migrations"),
            (Err(_), Ok(_)) => notes.source("migrations", "counted in the timeline"),
            (Err(err), Err(_)) => notes.missing("migrations", perf::why(err, 1)),
        }
        let calls = Calls::open(pids);
        if let Err(why) = &calls {
            notes.missing("calls_seen", why);
        }
        Ok(Self {
            pids: pids.to_vec(),
            cpus,
            rings: rings.ok(),
            on_cpu: on_cpu.ok(),
            migrations: migrations.ok(),
            calls: calls.ok(),
        })
    }

    /// The rings to be drained when they are half full.
    pub fn rings(&mut self) -> Option<&mut Rings> {
        self.rings.as_mut()
    }

    /// The accounts just before the start signal.
    ///
    /// # Errors
    /// When /proc/stat cannot be read.
    pub fn begin(&self) -> Result<Before> {
        Ok(Before {
            tasks: self.stats(),
            energy: Energy::read(Path::new(energy::POWERCAP)),
            heat: Heat::read(Path::new(SYS_CPU), &self.cpus),
            cpus: CpuStat::read()?,
        })
    }

    /// The figures, while the tasks that have ended still sleep. `ops` is the scheduler in
    /// charge. What cannot be had goes to `notes`.
    ///
    /// # Errors
    /// When /proc/stat cannot be read.
    pub fn end(mut self, before: Before, ops: Option<&str>, notes: &mut Notes) -> Result<Figures> {
        // what goes on counting comes first
        let ticks = CpuStat::read()?.since(&before.cpus);
        let energy = Energy::read(Path::new(energy::POWERCAP));
        let energy = energy.and_then(|after| Ok(after.since_uj(&before.energy?)));
        let stats = self.stats();
        let since = |(after, before): (Option<TaskStat>, &Option<TaskStat>)| {
            Some(after?.since(before.as_ref().copied()?))
        };
        let stat: Vec<_> = stats.into_iter().zip(&before.tasks).map(since).collect();
        if stat.contains(&None) {
            notes.missing(
                "cpu_ns",
                "/proc/PID/schedstat could not be read for each task: the kernel needs \
                 CONFIG_SCHED_INFO, and /proc must show the user's own processes",
            );
        }
        notes.warn(Heat::read(Path::new(SYS_CPU), &self.cpus).since(&before.heat));
        let evictions = evictions::read(Path::new(evictions::SOCKET), ops, &self.pids);
        if let Some(why) = evictions.as_ref().ok().and_then(|told| told.unknown.as_ref()) {
            notes.missing(
                "evictions",
                format!(
                    "scx_artis does not know each task ({why}): real-time tasks and those that died \
                     are none of its own"
                ),
            );
        }
        let unread = |err: &std::io::Error| format!("the counters could not be read: {err}");
        let cpu_time = self.on_cpu.as_mut().map(OnCpu::read).transpose();
        let migrations = self.migrations.as_mut().map(Migrations::read).transpose();
        let calls = self.calls.as_mut().map(Calls::read).transpose();
        let counted = self.on_cpu.as_mut().map_or(Ok(0), OnCpu::lost).unwrap_or(0);
        let (switches, lost) = self.rings.map(|rings| rings.finish(counted)).unzip();
        let by_cpu = |switches: Vec<Vec<Switch>>| self.cpus.iter().copied().zip(switches).collect();
        Ok(Figures {
            pids: self.pids,
            stat,
            cpu_time_ns: notes.some("cpu_time_ns", cpu_time.map_err(|err| unread(&err))).flatten(),
            migrations: notes.some("migrations", migrations.map_err(|err| unread(&err))).flatten(),
            calls: notes.some("calls_seen", calls.map_err(|err| unread(&err))).flatten(),
            evictions: notes.some("evictions", evictions),
            switches: switches.map(by_cpu),
            lost: lost.unwrap_or(0),
            ticks,
            energy_uj: notes.some("energy_uj", energy),
        })
    }

    fn stats(&self) -> Vec<Option<TaskStat>> {
        self.pids.iter().map(|&pid| TaskStat::read(pid).ok()).collect()
    }
}
