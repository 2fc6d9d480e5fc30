// SPDX-License-Identifier: GPL-2.0-only
//! Runs scenarios one after the other in one guest, each in a process of its own, as the host asks
//! on stdin; and looks after each that the guest is as it was before the first one.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::stdin;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use walkdir::WalkDir;

use crate::guest::{self, PATIENCE, until};
use crate::kernel_log::{KernelLog, complaints};
use crate::residue::Inventory;
use crate::scenarios::{self, Scenario};

/// A line with this begin says that the guest waits for a request.
pub const READY: &str = "::ready";
/// A line with this begin ends what a scenario prints; its exit code follows.
pub const ENDED: &str = "::ended ";
/// The request that ends the guest.
pub const END: &str = "end";

/// Serves requests until stdin ends or [`END`]: each other line is the name of a scenario.
pub fn serve() -> Result<()> {
    guest::ensure_virtual()?;
    let mut log = KernelLog::from_now()?;
    let before = State::now()?;
    println!("{READY}");
    for line in stdin().lines() {
        let line = line.context("stdin")?;
        if line == END {
            break;
        }
        let code = run(&line, &before, &mut log)?;
        println!("{ENDED}{code}");
    }
    Ok(())
}

/// Runs a scenario; returns its exit code, 1 if it left something behind.
fn run(name: &str, before: &State, log: &mut KernelLog) -> Result<i32> {
    let scenario = scenarios::find(name).with_context(|| format!("no scenario '{name}'"))?;
    let mut command = Command::new(env::current_exe()?);
    let status = command.args(["scenario", name]).stdin(Stdio::null()).status()?;
    let code = status.code().unwrap_or(-1);
    if code == 0
        && let Err(e) = ensure_clean(scenario, before, log)
    {
        println!("artis-guest: {e:#}");
        return Ok(1);
    }
    Ok(code)
}

fn ensure_clean(scenario: &Scenario, before: &State, log: &mut KernelLog) -> Result<()> {
    before.ensure_same()?;
    ensure!(guest::scx_state()? == "disabled", "a scheduler is loaded still");
    let lines = log.drain();
    let bad = complaints(lines.iter().map(String::as_str), scenario.complaints);
    ensure!(bad.is_empty(), "the kernel complained: {bad:?}");
    for entry in fs::read_dir("/tmp")?.flatten() {
        let _ = fs::remove_file(entry.path());
    }
    Ok(())
}

/// What a scenario could leave: see [`Inventory`]; and processes, cgroups, CPUs that are offline.
struct State {
    inventory: Inventory,
    processes: BTreeSet<String>,
    cgroups: BTreeSet<String>,
    online: String,
}

impl State {
    fn now() -> Result<Self> {
        Ok(Self {
            inventory: Inventory::now(),
            processes: processes()?,
            cgroups: cgroups(),
            online: guest::line("/sys/devices/system/cpu/online")?,
        })
    }

    /// Waits until all is as it was; fails with what is not.
    fn ensure_same(&self) -> Result<()> {
        let mut left = BTreeSet::new();
        let gone = until("processes and cgroups are gone", PATIENCE, || {
            left = processes()?.difference(&self.processes).cloned().collect();
            left.extend(cgroups().difference(&self.cgroups).cloned());
            Ok(left.is_empty())
        });
        if gone.is_err() {
            bail!("left behind: {left:?}");
        }
        let online = guest::line("/sys/devices/system/cpu/online")?;
        ensure!(online == self.online, "CPUs online: {online}, before: {}", self.online);
        self.inventory.ensure_same()
    }
}

/// Programs of user mode: kernel threads have no command line, and come and go.
fn processes() -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if !command.is_empty() {
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            all.insert(format!("process {pid} {}", command.trim()));
        }
    }
    Ok(all)
}

fn cgroups() -> BTreeSet<String> {
    let all = WalkDir::new("/sys/fs/cgroup").into_iter().flatten();
    all.filter(|e| e.file_type().is_dir())
        .map(|e| format!("cgroup {}", e.path().display()))
        .collect()
}
