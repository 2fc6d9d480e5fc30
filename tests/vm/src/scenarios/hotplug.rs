// SPDX-License-Identifier: GPL-2.0-only
//! CPUs that go and come.

use anyhow::{Context, Result, ensure};
use libbpf_rs::query::MapInfoIter;

use super::tally::{Viewer, tasks};
use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::daemon::Daemon;
use crate::guest::{self, PATIENCE, until};
use crate::load::Workers;
use crate::worker::{Kind, Spec};

/// Catches: a loader that ends with the kernel's restart request, that refuses
/// its own RT CPU because it is offline now, that keeps the CPU masks of the
/// first start, that gives storage of tasks back while CPUs come and go: kernels
/// from 6.14 to 6.19 may not come back from that (docs/decisions/0024-storage.md);
/// that tells of a task what it did before.
pub const HOTPLUG: Scenario = Scenario {
    name: "hotplug",
    what: "an RT and an NRT CPU go offline and come back: the loader restarts by itself",
    scope: Scope::First,
    boot: &[],
    secs: 45,
    host: Host::Shared,
    // the kernel's word for the exit that the scheduler asks for when a CPU comes or goes
    complaints: &["disabled (unregistered from the main kernel)"],
    run: hotplug,
};

fn hotplug(ctx: &Ctx) -> Result<Outcome> {
    let mut daemon = ctx.load(&[])?;
    use Kind::{Call, Fork, Sleep, Spin};
    let mut workers =
        Workers::start("hotplug", [Spin, Spin, Spin, Spin, Call, Sleep, Fork].map(Spec::new))?;
    workers.wait_begun()?;
    let storage = storage();
    ensure!(storage.len() == 3, "maps of task and cgroup storage: {storage:?}");
    let mut viewer = Viewer::start(ctx)?;
    for cpu in [ctx.rt.last()?, ctx.nrt.last()?] {
        for online in ["0", "1"] {
            let (begun, attempts) = told(&mut viewer, &workers, |_, attempts| attempts > 0)?;
            // the verifier is slow enough in emulation without a load; the tasks stay
            workers.freeze(true)?;
            switch(&mut daemon, cpu, online).with_context(|| daemon.output())?;
            let (_, now) = told(&mut viewer, &workers, |now, _| now != begun)?;
            ensure!(now == 0, "{now} attempts of stopped tasks, {attempts} before the restart");
            workers.freeze(false)?;
            workers.wait_progress(&format!("with online={online} for CPU {cpu}"))?;
            let now = self::storage();
            ensure!(now == storage, "maps of storage {storage:?} have become {now:?}");
        }
        // back in use: one that may run there only
        let mut pinned = Workers::start("back", [Spec::new(Spin).on(Cpus::one(cpu))])?;
        pinned.wait_begun().with_context(|| format!("CPU {cpu} came back"))?;
    }
    daemon.ensure_loaded("in the end")?;
    drop((viewer, workers));
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// Waits until a viewer is told what is `wanted`: when the scheduler began, and how many attempts the
/// workers have made since.
fn told(
    viewer: &mut Viewer,
    workers: &Workers,
    wanted: impl Fn(u64, u64) -> bool,
) -> Result<(u64, u64)> {
    let mut told = (0, 0);
    until("it is told", PATIENCE, || {
        let Ok(line) = viewer.last() else { return Ok(false) };
        let tasks = tasks(&line)?;
        let of = |i: usize| tasks.get(&workers.pid(i).into())?["attempts"].as_u64();
        let began = line["begin"]["started_ns"].as_u64().context("no started_ns")?;
        told = (began, (0..workers.len()).filter_map(of).sum());
        Ok(wanted(told.0, told.1))
    })?;
    Ok(told)
}

/// All maps of task and cgroup storage. By their names: libbpf-rs takes those of cgroups for unknown.
fn storage() -> Vec<(u32, String)> {
    MapInfoIter::default()
        .map(|map| (map.id, map.name.to_string_lossy().into_owned()))
        .filter(|(_, name)| name.ends_with("_stor"))
        .collect()
}

/// Switches the CPU and waits until the loader has restarted.
fn switch(daemon: &mut Daemon, cpu: u32, online: &str) -> Result<()> {
    let seq = guest::enable_seq()?;
    guest::write(&format!("/sys/devices/system/cpu/cpu{cpu}/online"), online)?;
    say(&format!("CPU {cpu} online={online}: done"));
    until(&format!("artis is back after online={online} for CPU {cpu}"), PATIENCE, || {
        Ok(guest::enable_seq()? > seq && guest::artis_enabled())
    })?;
    say(&format!("CPU {cpu} online={online}: enabled again"));
    daemon.ensure_loaded("after hotplug")
}
