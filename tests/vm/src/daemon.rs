// SPDX-License-Identifier: GPL-2.0-only
//! The loader under test, as a child: start, wait until enabled, stop.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use scx_stats::prelude::StatsClient;
use serde_json::Value;

use crate::auditor;
use crate::guest::{self, PATIENCE, until};

/// A line with this begin holds what a loader that ended had counted, as JSON.
pub const COUNTED: &str = "::counted ";

/// In what the loader says when its weights have not come to 0 at the end.
const COUNTED_WRONGLY: &str = "counted as runnable";

/// A running loader. Killed when dropped.
pub struct Daemon {
    child: Child,
    log: PathBuf,
    enabled_after: Duration,
}

/// A loader that ended by itself.
pub struct Ended {
    /// Its exit code, −1 if a signal ended it.
    pub code: i32,
    /// All that it printed.
    pub output: String,
}

fn log_file() -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    PathBuf::from(format!("/tmp/artis-daemon-{}-{n}.log", std::process::id()))
}

impl Daemon {
    /// Starts it and waits until the kernel says that it is in charge.
    pub fn start(program: &Path, args: &[&str]) -> Result<Self> {
        let began = Instant::now();
        let mut d = Self::begin(program, args)?;
        d.wait_enabled()?;
        d.enabled_after = began.elapsed();
        Ok(d)
    }

    /// Waits until the kernel says that it is in charge.
    pub fn wait_enabled(&mut self) -> Result<()> {
        let began = Instant::now();
        while !guest::artis_enabled() {
            if let Some(status) = self.child.try_wait()? {
                bail!("scx_artis ended before it was enabled: {status}\n{}", self.output());
            }
            if began.elapsed() > PATIENCE {
                bail!("scx_artis is not enabled after {PATIENCE:?}: {}", self.whereabouts());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// What it has said, and what it does now, for a failure to take over.
    #[must_use]
    pub fn whereabouts(&self) -> String {
        let (state, ops) = (guest::scx_state().unwrap_or_default(), guest::scx_ops());
        let (threads, output) = (guest::threads(self.pid()), self.output());
        format!("state {state}, ops {ops:?}\n{threads}{output}")
    }

    /// Starts the program, as whatever it is by its arguments; its output goes to a file.
    pub fn begin(program: &Path, args: &[&str]) -> Result<Self> {
        Self::begin_in(&[], program, args)
    }

    /// The same, with more variables in its environment.
    pub fn begin_in(variables: &[(&str, &str)], program: &Path, args: &[&str]) -> Result<Self> {
        let log = log_file();
        let out = File::create(&log).with_context(|| log.display().to_string())?;
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        command.envs(variables.iter().copied());
        Self::spawn(command, args, log)
    }

    /// Starts it as the foreground job of a terminal, which gets its output.
    pub fn begin_on(terminal: &OwnedFd, program: &Path, args: &[&str]) -> Result<Self> {
        let log = log_file();
        File::create(&log).with_context(|| log.display().to_string())?;
        let mut command = Command::new("setsid");
        let slave = || terminal.try_clone();
        command.arg("-c").arg(program).stdin(slave()?).stdout(slave()?).stderr(slave()?);
        command.env("TERM", "xterm");
        Self::spawn(command, args, log)
    }

    /// Starts it with this as stdout and stderr.
    pub fn begin_to(out: &OwnedFd, program: &Path, args: &[&str]) -> Result<Self> {
        let log = log_file();
        File::create(&log).with_context(|| log.display().to_string())?;
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out.try_clone()?);
        Self::spawn(command, args, log)
    }

    fn spawn(mut command: Command, args: &[&str], log: PathBuf) -> Result<Self> {
        auditor::will_run(args);
        let child = command.args(args).spawn().with_context(|| format!("start {command:?}"))?;
        Ok(Self { child, log, enabled_after: Duration::ZERO })
    }

    /// Runs it to its end: for commands, and for arguments that it refuses.
    pub fn run(program: &Path, args: &[&str]) -> Result<Ended> {
        let ended = Self::begin(program, args)?.ended().with_context(|| format!("{args:?}"))?;
        auditor::has_run(args, ended.code == 0);
        Ok(ended)
    }

    /// From exec to "enabled".
    #[must_use]
    pub fn enabled_after(&self) -> Duration {
        self.enabled_after
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All that it printed so far.
    #[must_use]
    pub fn output(&self) -> String {
        text(&self.log)
    }

    /// Fails unless it runs and the kernel has it in charge.
    pub fn ensure_loaded(&mut self, when: &str) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("scx_artis ended {when}: {status}\n{}", self.output());
        }
        guest::ensure_enabled(when).with_context(|| self.output())
    }

    /// Sends a signal and waits for the end; the kernel's default is back then.
    pub fn stop(mut self, signal: Signal) -> Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            bail!("scx_artis had ended by itself: {status}\n{}", self.output());
        }
        self.signal(signal)?;
        let status = self.wait()?;
        until("the kernel's default scheduler is back", PATIENCE, || {
            Ok(guest::scx_state()? == "disabled")
        })?;
        Ok(status)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, signal).with_context(|| format!("{signal} to {pid}"))
    }

    /// Waits until it ends by itself.
    pub fn ended(mut self) -> Result<Ended> {
        let code = self.wait()?.code().unwrap_or(-1);
        // all of it: the kernel's dump comes last, and is long
        Ok(Ended { code, output: String::from_utf8_lossy(&fs::read(&self.log)?).into_owned() })
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        let mut status = None;
        until("scx_artis ends", PATIENCE, || {
            status = self.child.try_wait()?;
            Ok(status.is_some())
        })
        .with_context(|| self.output())?;
        status.context("no exit status")
    }

    /// Stops it by SIGINT and demands exit code 0, and that all its weights are 0 then. What it
    /// counted goes to the host, which looks whether each counter ever counts.
    pub fn finish(self) -> Result<()> {
        let counted = self.stats()?.read()?;
        println!("{COUNTED}{counted}");
        let log = self.log.clone();
        let status = self.stop(Signal::SIGINT)?;
        let said = text(&log);
        ensure!(status.code() == Some(0), "scx_artis stopped with {status}\n{said}");
        ensure!(!said.contains(COUNTED_WRONGLY), "weights are left: {said}");
        Ok(())
    }

    /// A session with its statistics server.
    pub fn stats(&self) -> Result<Stats> {
        Stats::connect()
    }
}

/// A client of the statistics server. Rates and shares are about the time since
/// the session's last reading; counters are about all time.
pub struct Stats {
    client: StatsClient,
}

impl Stats {
    /// A session with the server of whatever scx_artis runs.
    pub fn connect() -> Result<Self> {
        let client = StatsClient::new().connect(Some(10_000)).context("the statistics socket")?;
        Ok(Self { client })
    }

    /// The next reading, as JSON.
    pub fn read(&mut self) -> Result<Value> {
        let args = vec![("target".to_string(), "top".to_string())];
        self.client.request("stats", args).context("ask for statistics")
    }

    /// One task, as JSON; an error if the scheduler does not know it.
    pub fn task(&mut self, tid: u32) -> Result<Value> {
        let args =
            vec![("target".to_string(), "task".to_string()), ("pid".to_string(), tid.to_string())];
        self.client.request("stats", args).with_context(|| format!("ask about task {tid}"))
    }

    /// A counter of the whole machine.
    pub fn counter(&mut self, name: &str) -> Result<u64> {
        Self::counter_in(&self.read()?, name)
    }

    /// A counter of the whole machine, of a reading.
    pub fn counter_in(stats: &Value, name: &str) -> Result<u64> {
        let found = stats.get(name).and_then(Value::as_u64);
        found.with_context(|| format!("no counter '{name}' in {stats}"))
    }

    /// Waits until the weight of each queue is 0: nothing could run that does not.
    pub fn wait_weightless(&mut self) -> Result<()> {
        let mut last = Vec::new();
        until("no task is counted as runnable", PATIENCE, || {
            let stats = self.read()?;
            let cpus = stats["cpus"].as_object().context("no CPUs")?;
            last = cpus.values().map(|cpu| cpu["weight"].as_f64()).collect();
            Ok(last.iter().all(|weight| *weight == Some(0.0)))
        })
        .with_context(|| format!("the weights of the CPUs are {last:?}"))
    }

    /// A figure of one CPU.
    pub fn of_cpu(&mut self, cpu: u32, name: &str) -> Result<f64> {
        let stats = self.read()?;
        let one = stats.get("cpus").and_then(|c| c.get(cpu.to_string()));
        let one = one.with_context(|| format!("no CPU {cpu} in {stats}"))?;
        one.get(name).and_then(Value::as_f64).with_context(|| format!("no '{name}' in {one}"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(log: &Path) -> String {
    let all = fs::read(log).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = all.lines().collect();
    let from = lines.len().saturating_sub(400);
    lines[from..].iter().map(|l| format!("  scx_artis| {l}\n")).collect()
}
