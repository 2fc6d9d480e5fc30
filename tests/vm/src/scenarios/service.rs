// SPDX-License-Identifier: GPL-2.0-only
//! The systemd unit, run by a real systemd: as root's own manager, since the guest's first process
//! is another.

use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::adopt::{becomes, stay_out};
use super::{Ctx, Outcome, Scenario, Scope, say};
use crate::cgroup::Cgroup;
use crate::guest::{PATIENCE, artis_enabled, scx_state, until, write};
use crate::load::Workers;
use crate::policy::{EXT, Policy};
use crate::worker::{Kind, Spec};

/// Catches: a unit that does not start, reload or stop; tasks that a killed daemon leaves adopted; a
/// service that does not come again after that.
pub const SERVICE: Scenario = Scenario {
    name: "service",
    what: "the systemd unit: start, SIGKILL and restart, reload, stop; adopted tasks are put back",
    scope: Scope::First,
    boot: &[
        "--bin",
        "/lib/systemd/systemd",
        "--bin",
        "systemctl",
        "--file",
        "/usr/lib/systemd/user/basic.target:/usr/lib/systemd/user/",
        "--file",
        "/usr/lib/systemd/user/default.target:/usr/lib/systemd/user/",
        "--file",
        "/usr/lib/systemd/user/paths.target:/usr/lib/systemd/user/",
        "--file",
        "/usr/lib/systemd/user/shutdown.target:/usr/lib/systemd/user/",
        "--file",
        "/usr/lib/systemd/user/sockets.target:/usr/lib/systemd/user/",
        "--file",
        "/usr/lib/systemd/user/timers.target:/usr/lib/systemd/user/",
    ],
    secs: 13,
    timed: false,
    complaints: &[],
    run: service,
};

const UNIT: &str = include_str!("../../../../dist/scx_artis.service");
const RUNTIME: &str = "/run/user/0";
/// Where the unit has its program and its options.
const PROGRAM: &str = "/usr/bin/scx_artis";
const DEFAULTS: &str = "/etc/default/scx_artis";
/// Where the manager finds the unit.
const INSTALLED: &str = "/etc/systemd/user/scx_artis.service";

/// The manager of root's services, which ends with this.
struct Manager {
    child: Child,
    cgroup: Cgroup,
}

impl Manager {
    fn start() -> Result<Self> {
        // what it asks for: a machine booted with systemd, a cgroup of its own
        for dir in ["/run/systemd/system", RUNTIME, "/etc/systemd/user", "/etc/default"] {
            fs::create_dir_all(dir)?;
        }
        fs::write(INSTALLED, UNIT)?;
        let cgroup = Cgroup::plain("services")?;
        let child = cgroup
            .shell("exec systemd --user")
            .env("XDG_RUNTIME_DIR", RUNTIME)
            .stdin(Stdio::null())
            .spawn()
            .context("start systemd")?;
        let manager = Self { child, cgroup };
        until("systemd runs", PATIENCE, || {
            Ok(manager.ctl(&["is-system-running"])?.trim() == "running")
        })?;
        Ok(manager)
    }

    fn systemctl(args: &[&str]) -> Command {
        let mut command = Command::new("systemctl");
        command.arg("--user").args(args).env("XDG_RUNTIME_DIR", RUNTIME);
        command
    }

    /// What `systemctl` says.
    fn ctl(&self, args: &[&str]) -> Result<String> {
        let out = Self::systemctl(args).output().context("systemctl")?;
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }

    fn status(&self) -> String {
        self.ctl(&["status", "scx_artis"]).unwrap_or_default()
    }

    /// Does `action` to the service.
    fn does(&self, action: &str) -> Result<()> {
        let status = Self::systemctl(&[action, "scx_artis"]).status().context("systemctl")?;
        ensure!(status.success(), "systemctl {action}: {status}\n{}", self.status());
        Ok(())
    }

    /// The daemon.
    fn pid(&self) -> Result<Pid> {
        let pid = self.ctl(&["show", "--property=MainPID", "--value", "scx_artis"])?;
        Ok(Pid::from_raw(pid.trim().parse().with_context(|| format!("MainPID '{pid}'"))?))
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.cgroup.kill();
        let _ = self.child.wait();
        for dir in [RUNTIME, "/run/user", "/run/systemd"] {
            let _ = fs::remove_dir_all(dir);
        }
        for file in [PROGRAM, DEFAULTS, INSTALLED] {
            let _ = fs::remove_file(file);
        }
    }
}

fn service(ctx: &Ctx) -> Result<Outcome> {
    // before this is bound to some CPUs, which children are, too
    let manager = Manager::start()?;
    stay_out(ctx)?;
    let was = Policy::new(libc::SCHED_FIFO, 30);
    let adopted = Policy { policy: EXT, ..Policy::new(libc::SCHED_FIFO, 0) };
    let mut workers = Workers::start("served", [Spec::new(Kind::Sleep).on(ctx.all()).fifo(30)])?;
    workers.wait_begun()?;
    let task = workers.pid(0).cast_signed();
    symlink(env::current_exe()?.with_file_name("scx_artis"), PROGRAM)?;
    write(DEFAULTS, &format!("RT_CPUS={}\nOPTIONS=--adopt\n", ctx.rt))?;

    manager.does("start")?;
    becomes(task, "the service adopts", adopted).with_context(|| manager.status())?;
    let first = manager.pid()?;
    say("killed, and started again");
    kill(first, Signal::SIGKILL)?;
    until("the service has come again", PATIENCE, || {
        let pid = manager.pid()?;
        Ok(pid.as_raw() != 0 && pid != first && artis_enabled())
    })?;
    becomes(task, "the service adopts anew", adopted)?;

    say("reloaded");
    let second = manager.pid()?;
    manager.does("reload")?;
    workers.ensure_progress(1.0, "after a reload")?;
    ensure!(artis_enabled() && manager.pid()? == second, "a reload ended the service");

    say("killed for good");
    let drop_in = "/run/user/0/systemd/user/scx_artis.service.d";
    fs::create_dir_all(drop_in)?;
    fs::write(format!("{drop_in}/test.conf"), "[Service]\nRestart=no\n")?;
    manager.ctl(&["daemon-reload"])?;
    kill(second, Signal::SIGKILL)?;
    becomes(task, "the unit puts back what a killed daemon left", was)?;

    say("started, and stopped");
    manager.does("start")?;
    becomes(task, "the service adopts once more", adopted)?;
    manager.does("stop")?;
    ensure!(scx_state()? == "disabled", "a scheduler after the stop: {}", scx_state()?);
    ensure!(Policy::of(task)? == Some(was), "after the stop: {:?}", Policy::of(task)?);
    Ok(Outcome::Passed)
}
