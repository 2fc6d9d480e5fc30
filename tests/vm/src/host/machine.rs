// SPDX-License-Identifier: GPL-2.0-only
//! A booted guest, which runs scenarios as it is asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::noise::Meter;
use crate::scenarios::counts_instructions;
use crate::serve::{END, ENDED, READY};

/// What a guest is booted with. Scenarios with the same share guests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// As scripts/kernels has it.
    pub kernel: String,
    /// Arguments for scripts/vm.
    pub options: Vec<String>,
}

impl Boot {
    /// Does it take only what others leave of the host's CPUs? See [`crate::scenarios::Host::Shared`].
    #[must_use]
    pub fn gives_way(&self) -> bool {
        counts_instructions(&self.options)
    }

    /// So many times as long as others it may take.
    #[must_use]
    pub fn waits(&self) -> u32 {
        if self.gives_way() { 10 } else { 1 }
    }
}

/// A kernel's own alarms are set to come within the time of a scenario, s.
const ALARMS: &str = "sysctl.kernel.hung_task_timeout_secs=30";
/// From the start of scripts/vm until the guest serves, and from its last request to its end.
const BOOT_LIMIT: Duration = Duration::from_secs(120);
/// What that takes on the host for which [`crate::scenarios::Scenario::secs`] holds, s; with
/// `--icount`, too.
const BOOT_S: f64 = 4.3;

/// How a scenario ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this exit code; the guest serves on.
    Code(i32),
    /// The guest died: the exit code of scripts/vm, None if a signal ended it.
    Died(Option<i32>),
    /// It did not end in time.
    Overdue,
}

/// What came of a scenario.
pub struct Ran {
    /// How it ended.
    pub end: End,
    /// What it printed.
    pub output: String,
    /// What scripts/vm said, if the guest has ended.
    pub console: String,
    /// From the request to the end.
    pub took: Duration,
    /// See [`Meter::foreign_pct`].
    pub foreign_pct: f64,
    /// The guest had run no other scenario before.
    pub first: bool,
}

/// The guest. Ended when dropped.
pub struct Machine {
    vm: Child,
    requests: Option<ChildStdin>,
    lines: Receiver<String>,
    console: Option<JoinHandle<String>>,
    boot: Boot,
    slowness: f64,
    /// It has run no scenario yet.
    unused: bool,
}

impl Machine {
    /// Boots a guest; an error if it never serves, with what it said.
    pub fn start(root: &Path, boot: &Boot) -> Result<Result<Self, Ran>> {
        let began = Instant::now();
        let vm = root.join("scripts/vm");
        let mut command = if boot.gives_way() {
            let mut command = Command::new("chrt"); // of util-linux, which is everywhere
            command.args(["--idle", "0"]).arg(vm);
            command
        } else {
            Command::new(vm)
        };
        let mut vm = command
            .args(["--kernel", &boot.kernel, "--stdin", "--timeout", "0", "--append", ALARMS])
            .args(&boot.options)
            .args(["--", "artis-guest", "serve"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("start scripts/vm")?;
        let requests = vm.stdin.take();
        let stdout = BufReader::new(vm.stdout.take().context("no stdout")?);
        let mut stderr = vm.stderr.take().context("no stderr")?;
        let (sender, lines) = channel();
        spawn(move || {
            for line in stdout.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).replace('\r', "");
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let console = spawn(move || {
            let mut all = Vec::new();
            let _ = stderr.read_to_end(&mut all);
            String::from_utf8_lossy(&all).replace('\r', "")
        });
        let console = Some(console);
        let limit = BOOT_LIMIT * boot.waits();
        let boot = boot.clone();
        let mut machine = Self { vm, requests, lines, console, boot, slowness: 1.0, unused: true };
        let meter = Meter::begin()?;
        let (end, output) = machine.read_to(READY, began + limit);
        machine.slowness = (began.elapsed().as_secs_f64() / BOOT_S).max(1.0);
        match end {
            End::Code(_) => Ok(Ok(machine)),
            _ => Ok(Err(machine.gone(end, output, &meter, began)?)),
        }
    }

    /// What it was booted with.
    #[must_use]
    pub fn boot(&self) -> &Boot {
        &self.boot
    }

    /// So many times longer than on an undisturbed host of two CPUs at 3 GHz its boot took, 1 at least:
    /// hosts of half that speed were seen, and what a guest does takes as much longer there.
    #[must_use]
    pub fn slowness(&self) -> f64 {
        self.slowness
    }

    /// Runs a scenario, for at most `limit`. The guest is none any more unless the scenario ended
    /// with an exit code.
    pub fn run(mut self, scenario: &str, limit: Duration) -> Result<(Ran, Option<Self>)> {
        let began = Instant::now();
        let meter = Meter::begin()?;
        let asked = self.request(scenario);
        let (end, output) = self.read_to(ENDED, began + limit);
        let first = std::mem::replace(&mut self.unused, false);
        if let (End::Code(_), Ok(())) = (end, asked) {
            let ran = Ran {
                end,
                output,
                console: String::new(),
                took: began.elapsed(),
                foreign_pct: meter.foreign_pct()?,
                first,
            };
            return Ok((ran, Some(self)));
        }
        Ok((Ran { first, ..self.gone(end, output, &meter, began)? }, None))
    }

    /// Ends it as it ends by itself; returns what scripts/vm said.
    pub fn end(mut self) -> String {
        let _ = self.request(END);
        let began = Instant::now();
        while began.elapsed() < BOOT_LIMIT && matches!(self.vm.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.console()
    }

    fn request(&mut self, line: &str) -> std::io::Result<()> {
        match &mut self.requests {
            Some(requests) => writeln!(requests, "{line}").and_then(|()| requests.flush()),
            None => Ok(()),
        }
    }

    /// Reads to a line that begins so; the number behind it is the exit code.
    fn read_to(&mut self, mark: &str, until: Instant) -> (End, String) {
        let mut output = String::new();
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => match line.strip_prefix(mark) {
                    Some(code) => return (End::Code(code.trim().parse().unwrap_or(-1)), output),
                    None => output.extend([&line, "\n"]),
                },
                Err(RecvTimeoutError::Timeout) => return (End::Overdue, output),
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.vm.wait();
                    return (End::Died(status.ok().and_then(|s| s.code())), output);
                }
            }
        }
    }

    fn gone(mut self, end: End, output: String, meter: &Meter, began: Instant) -> Result<Ran> {
        let foreign_pct = meter.foreign_pct()?;
        let (console, took) = (self.console(), began.elapsed());
        Ok(Ran { end, output, console, took, foreign_pct, first: true })
    }

    /// Ends it at once if it is alive; returns what scripts/vm said.
    fn console(&mut self) -> String {
        if matches!(self.vm.try_wait(), Ok(None)) {
            let _ = killpg(Pid::from_raw(self.vm.id().cast_signed()), Signal::SIGTERM);
        }
        let _ = self.vm.wait();
        self.requests = None;
        self.console.take().and_then(|c| c.join().ok()).unwrap_or_default()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.console();
    }
}
