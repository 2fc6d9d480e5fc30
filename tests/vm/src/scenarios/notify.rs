// SPDX-License-Identifier: GPL-2.0-only
//! What the daemon tells a service manager, which is this process here.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::mkfifo;

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::daemon::Daemon;
use crate::guest::{PATIENCE, artis_enabled, pause, until, write};
use crate::residue::Inventory;

/// Catches: a daemon that says that it is in charge before it is, or that a reload is over before it
/// is; signs of life that do not come from the run loop, come too seldom, or without being asked for;
/// an end that is not announced.
pub const NOTIFY: Scenario = Scenario {
    name: "notify",
    what: "what service managers are told: ready, reloading, alive while the run loop runs, stopping",
    scope: Scope::First,
    boot: &[],
    secs: 30,
    host: Host::Alone,
    complaints: &["sched_ext:"],
    run: notify,
};

const SOCKET: &str = "/tmp/notify.sock";
/// The daemon's rules come through it when this process writes them: its run loop waits for that.
const RULES: &str = "/tmp/notify.rules";
/// The daemon is to give a sign of life twice in this time, s.
const WATCHDOG_S: f64 = 2.0;

/// A message of the daemon.
#[derive(Clone, Debug)]
struct Said {
    text: String,
    /// The scheduler was in charge when it came.
    in_charge: bool,
}

impl Said {
    fn has(&self, line: &str) -> bool {
        self.text.lines().any(|l| l == line)
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('='))
    }
}

/// The service manager: hears all that is said, as it is said.
struct Manager(Arc<Mutex<Vec<Said>>>);

impl Manager {
    fn listen() -> Result<Self> {
        let socket = UnixDatagram::bind(SOCKET).context(SOCKET)?;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let said = Arc::clone(&heard);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n) = socket.recv(&mut bytes) {
                let in_charge = artis_enabled();
                let text = String::from_utf8_lossy(&bytes[..n]).into_owned();
                said.lock().unwrap_or_else(PoisonError::into_inner).push(Said { text, in_charge });
            }
        });
        Ok(Self(heard))
    }

    fn heard(&self) -> Vec<Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many messages so far have this line.
    fn count(&self, line: &str) -> usize {
        self.heard().iter().filter(|said| said.has(line)).count()
    }

    /// Waits for so many messages with this line; returns the last of them.
    fn wait(&self, line: &str, times: usize) -> Result<Said> {
        until(&format!("{line}, {times} times"), PATIENCE, || Ok(self.count(line) >= times))
            .with_context(|| format!("{:#?}", self.heard()))?;
        let last = self.heard().into_iter().rfind(|said| said.has(line));
        last.context("it was heard")
    }

    /// Nothing with this line comes in two periods of the watchdog.
    fn silent(&self, line: &str, when: &str) -> Result<()> {
        pause(0.2); // what is on its way already
        let before = self.count(line);
        pause(2.0 * WATCHDOG_S);
        let more = self.count(line) - before;
        ensure!(more == 0, "{more} times {line} {when}");
        Ok(())
    }
}

/// Now, as the daemon tells it, us.
fn monotonic_us() -> Result<i64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(now.tv_sec() * 1_000_000 + now.tv_nsec() / 1_000)
}

/// Gives the daemon these rules, once it reads them.
fn give(rules: &str) -> Result<()> {
    let mut fifo = OpenOptions::new().write(true).open(RULES).context(RULES)?;
    Ok(fifo.write_all(rules.as_bytes())?)
}

fn notify(ctx: &Ctx) -> Result<Outcome> {
    let before = Inventory::now();
    let rt = ctx.rt.to_string();
    mkfifo(RULES, Mode::S_IRWXU)?;
    let manager = Manager::listen()?;
    let period_us = format!("{}", WATCHDOG_S * 1e6);
    let watched = [("NOTIFY_SOCKET", SOCKET), ("WATCHDOG_USEC", &period_us)];
    let args = ["--rt-cpus", &rt, "--config", RULES];
    let mut daemon = Daemon::begin_in(&watched, &ctx.program, &args)?;
    give("")?;
    let ready = manager.wait("READY=1", 1).with_context(|| daemon.output())?;
    ensure!(ready.in_charge, "it says that it is ready before the scheduler is in charge");
    let is_first = manager.heard().first().is_some_and(|said| said.has("READY=1"));
    ensure!(is_first, "what it says before starts the watchdog: {:#?}", manager.heard());
    let status = ready.value("STATUS").unwrap_or_default();
    ensure!(status.starts_with("RT CPUs"), "its status is '{status}'");

    say("signs of life");
    let (first, began) = (manager.count("WATCHDOG=1"), monotonic_us()?);
    manager.wait("WATCHDOG=1", first + 5)?;
    #[expect(clippy::cast_precision_loss, reason = "some seconds")]
    let took_s = (monotonic_us()? - began) as f64 / 1e6;
    // the last of them may have come at once
    let least_s = 4.0 * WATCHDOG_S / 2.0 * 0.9;
    ensure!(took_s > least_s, "5 signs of life in {took_s:.2} s, more than twice in a period");
    daemon.signal(Signal::SIGSTOP)?;
    manager.silent("WATCHDOG=1", "of a daemon that is stopped")?;
    daemon.signal(Signal::SIGCONT)?;
    manager.wait("WATCHDOG=1", manager.count("WATCHDOG=1") + 2).context("after SIGCONT")?;

    for (rules, word) in [("", ""), ("banana", "not reloaded")] {
        say("a reload");
        let (reloads, readies) = (manager.count("RELOADING=1"), manager.count("READY=1"));
        let asked = monotonic_us()?;
        daemon.signal(Signal::SIGHUP)?;
        let reloading = manager.wait("RELOADING=1", reloads + 1)?;
        let told = reloading.value("MONOTONIC_USEC").context("no MONOTONIC_USEC")?;
        let told: i64 = told.parse().with_context(|| told.to_owned())?;
        let now = monotonic_us()?;
        ensure!((asked..=now).contains(&told), "MONOTONIC_USEC {told}, not in {asked} to {now}");
        // its run loop waits for the rules, while all its other threads run
        manager.silent("WATCHDOG=1", "while the run loop does not run")?;
        ensure!(manager.count("READY=1") == readies, "it is ready before it has read the rules");
        give(rules)?;
        let ready = manager.wait("READY=1", readies + 1)?;
        let status = ready.value("STATUS").unwrap_or_default();
        let fits = status.contains("not reloaded") != word.is_empty();
        ensure!(fits, "after the rules '{rules}' its status is '{status}'");
        manager.wait("WATCHDOG=1", manager.count("WATCHDOG=1") + 2).context("after a reload")?;
    }
    daemon.ensure_loaded("after reloads")?;
    ensure!(manager.count("STOPPING=1") == 0, "it says that it stops");
    let status = daemon.stop(Signal::SIGTERM)?;
    ensure!(status.code() == Some(0), "after SIGTERM it exits with {status}");
    manager.wait("STOPPING=1", 1)?;

    say("without a watchdog, and ejected");
    let signs = manager.count("WATCHDOG=1");
    let readies = manager.count("READY=1");
    let unwatched = &watched[..1];
    let mut daemon = Daemon::begin_in(unwatched, &ctx.program, &["--rt-cpus", &rt])?;
    manager.wait("READY=1", readies + 1).with_context(|| daemon.output())?;
    pause(WATCHDOG_S);
    daemon.ensure_loaded("without a watchdog")?;
    write("/proc/sysrq-trigger", "S")?;
    let ended = daemon.ended()?;
    ensure!(ended.code == 4, "ejected it exits with {}\n{}", ended.code, ended.output);
    manager.wait("STOPPING=1", 2).context("after an ejection")?;
    ensure!(manager.count("WATCHDOG=1") == signs, "signs of life that nobody asked for");
    ensure!(manager.count("STOPPING=1") == 2, "it stops more than once: {:#?}", manager.heard());
    for file in [SOCKET, RULES] {
        fs::remove_file(file)?;
    }
    before.ensure_same()?;
    Ok(Outcome::Passed)
}
