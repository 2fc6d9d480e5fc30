// SPDX-License-Identifier: GPL-2.0-only
//! Tasks of containers, and root of one.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use anyhow::{Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::guest::pause;
use crate::load::Load;
use crate::observe::Observer;

/// Catches: tasks in other namespaces that are known by the ids that they have there; a start without
/// the capabilities for it that changes something.
pub const CONTAINED: Scenario = Scenario {
    name: "contained",
    what: "tasks of containers leave RT CPUs as others do; what root of a container may do",
    scope: Scope::First,
    boot: &[],
    secs: 15,
    host: Host::Alone,
    complaints: &[],
    run: contained,
};

/// For the load to be known, and for the observer, s.
const SETTLED: f64 = 1.5;
const WINDOW: f64 = 4.0;

fn contained(ctx: &Ctx) -> Result<Outcome> {
    let mut observer = Observer::attach(ctx.rt, false)?;
    let mut daemon = ctx.load(&[])?;
    let stress = "stress-ng --quiet --timeout 0 --cpu 2 --sysinfo 2 --fork 1 --vm 1 --vm-bytes 16M";
    let contained = |new| Load::shell(&format!("cd /tmp && exec unshare {new} {stress}"));
    let mut loads =
        [contained("-p -f -m --mount-proc")?, contained("-U -r -p -f -m --mount-proc")?];
    pause(SETTLED);
    let evictions = daemon.stats()?.counter("evictions")?;
    let seen = observer.watch(WINDOW)?;
    let evictions = daemon.stats()?.counter("evictions")? - evictions;
    for load in &mut loads {
        load.ensure_runs()?;
    }
    let bodies = seen.nrt.endangering;
    say(&format!("{bodies} bodies on NRT CPUs, {evictions} evictions"));
    enough(bodies, 1_000, "bodies of contained tasks")?;
    enough(evictions, 6, "evictions")?;
    seen.ensure_clean()?;
    drop(loads);

    // its /run/scx_artis is the host's
    let mut root = Command::new("unshare");
    let set = ["ctl", "set", "predict-c-us", "2100"];
    let out = root.args(["-p", "-f", "-m"]).arg(&ctx.program).args(set).output()?;
    ensure!(out.status.success(), "root of a container, ctl: {}", told(&out));
    daemon.ensure_loaded("after contained tasks")?;
    daemon.finish()?;

    let out = without_capabilities(Command::new(&ctx.program)).args(["--rt-cpus", "3"]).output()?;
    let text = told(&out);
    say(&text);
    ensure!(out.status.code() == Some(3), "without the capabilities: {text}");
    ensure!(text.contains("CAP_BPF"), "it names no capability: {text}");
    Ok(Outcome::Passed)
}

fn told(out: &Output) -> String {
    format!("{}\n{}", out.status, String::from_utf8_lossy(&out.stderr))
}

/// As container engines start programs: root without what BPF needs.
fn without_capabilities(mut command: Command) -> Command {
    const CAP_SYS_ADMIN: libc::c_ulong = 21;
    const CAP_PERFMON: libc::c_ulong = 38;
    const CAP_BPF: libc::c_ulong = 39;
    let limit = || {
        for capability in [CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF] {
            // SAFETY: takes numbers, and touches no memory.
            if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: system calls between fork and exec.
    unsafe { command.pre_exec(limit) };
    command.stdin(Stdio::null());
    command
}
