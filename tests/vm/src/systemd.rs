// SPDX-License-Identifier: GPL-2.0-only
//! The guest's systemd, where it is the first process, and our unit as it is installed.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use nix::unistd::Pid;

use crate::cpus::Cpus;
use crate::guest::{PATIENCE, until, write};

/// What scripts/vm boots such a guest with.
pub const BOOT: &[&str] =
    &["--append", "artis_systemd=1", "--bin", "/lib/systemd/systemd", "--bin", "systemctl"];

const UNIT: &str = include_str!("../../../dist/scx_artis.service");
/// Where the unit has its program and its options.
const PROGRAM: &str = "/usr/bin/scx_artis";
const DEFAULTS: &str = "/etc/default/scx_artis";
const UNITS: &str = "/run/systemd/system";
/// What the service says: the guest has no journal.
const LOG: &str = "/run/scx_artis.log";

/// On all CPUs: scenarios bind themselves to RT CPUs, and systemctl is not what they are about.
fn systemctl() -> Result<Command> {
    let mut command = Command::new("taskset");
    command.arg(format!("{:x}", Cpus::online()?.0)).arg("systemctl");
    Ok(command)
}

/// Our unit, installed. Dropping it stops the service and removes all of it.
pub struct Service;

impl Service {
    /// Installs the unit, for the program beside this one.
    ///
    /// # Errors
    /// When systemd is not the first process, or something cannot be written.
    pub fn install() -> Result<Self> {
        let first = fs::read_to_string("/proc/1/comm")?;
        ensure!(first.trim() == "systemd", "the first process is {first}");
        let service = Self;
        fs::create_dir_all("/etc/default")?;
        symlink(env::current_exe()?.with_file_name("scx_artis"), PROGRAM)?;
        fs::write(format!("{UNITS}/scx_artis.service"), UNIT)?;
        service.drop_in("log", &format!("StandardOutput=append:{LOG}\nStandardError=inherit\n"))?;
        Ok(service)
    }

    /// The options that it is started with.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn options(&self, rt_cpus: &str, options: &str) -> Result<()> {
        write(DEFAULTS, &format!("RT_CPUS={rt_cpus}\nOPTIONS={options}\n"))
    }

    /// More lines for the section \[Service\].
    ///
    /// # Errors
    /// When systemd does not take them.
    pub fn drop_in(&self, name: &str, lines: &str) -> Result<()> {
        let dir = format!("{UNITS}/scx_artis.service.d");
        fs::create_dir_all(&dir)?;
        fs::write(format!("{dir}/{name}.conf"), format!("[Service]\n{lines}"))?;
        self.ctl(&["daemon-reload"])
    }

    /// Has `systemctl` do this, without the limit of starts that earlier steps have used up.
    ///
    /// # Errors
    /// When that fails: with what the service said.
    pub fn does(&self, args: &[&str]) -> Result<()> {
        let _ = self.ctl(&["reset-failed", "scx_artis"]);
        self.ctl(&[args, &["scx_artis"]].concat())
    }

    fn ctl(&self, args: &[&str]) -> Result<()> {
        let out = systemctl()?.args(args).output().context("systemctl")?;
        let said = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "systemctl {args:?}: {said}\n{}", self.log());
        Ok(())
    }

    /// One of its properties, as `systemctl show` has it.
    ///
    /// # Errors
    /// When there is no systemctl.
    pub fn property(&self, name: &str) -> Result<String> {
        let args = ["show", "--value", "--property", name, "scx_artis"];
        let out = systemctl()?.args(args).output().context("systemctl")?;
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    }

    /// Waits until a property is so, twice as long as for others: a service that comes again takes
    /// three programs of its own, and each look at it is one more.
    ///
    /// # Errors
    /// When that takes too long: with what it is.
    pub fn becomes(&self, name: &str, what: &str, fits: impl Fn(&str) -> bool) -> Result<()> {
        let mut now = String::new();
        until(what, 2 * PATIENCE, || {
            now = self.property(name)?;
            Ok(fits(&now))
        })
        .with_context(|| format!("{name} is {now}\n{}", self.log()))
    }

    /// Its process; 0: none.
    ///
    /// # Errors
    /// See [`Self::property`].
    pub fn pid(&self) -> Result<Pid> {
        let pid = self.property("MainPID")?;
        Ok(Pid::from_raw(pid.parse().with_context(|| format!("MainPID '{pid}'"))?))
    }

    /// What it said, for messages.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(LOG).unwrap_or_default()
    }

    /// systemd's own version.
    ///
    /// # Errors
    /// When there is no systemctl, or it does not tell.
    pub fn version() -> Result<u32> {
        let out = systemctl()?.arg("--version").output().context("systemctl")?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let word = text.split_whitespace().nth(1).unwrap_or_default();
        word.parse().with_context(|| format!("systemctl --version: {text}"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.ctl(&["stop", "scx_artis"]);
        let _ = fs::remove_dir_all(format!("{UNITS}/scx_artis.service.d"));
        for file in [PROGRAM, DEFAULTS, LOG, &format!("{UNITS}/scx_artis.service")] {
            let _ = fs::remove_file(file);
        }
        let _ = self.ctl(&["reset-failed", "scx_artis"]);
        let _ = self.ctl(&["daemon-reload"]);
        for dir in ["/run/scx_artis", "/run/scx", "/etc/default"] {
            let _ = fs::remove_dir(dir);
        }
    }
}
