// SPDX-License-Identifier: GPL-2.0-only
//! What others do must not keep the daemon from giving the machine back: a cpuset, a terminal, a
//! kernel that is locked down.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, ensure};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::mount::{MsFlags, mount, umount};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::Signal;
use nix::sys::termios::{FlowArg, tcflow};
use nix::unistd::pipe2;

use super::adopt::{becomes, stay_out};
use super::control::told;
use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cgroup::Cgroup;
use crate::cpus::Cpus;
use crate::daemon::Daemon;
use crate::guest::{PATIENCE, pause, until, write};
use crate::load::Workers;
use crate::policy::{EXT, Policy, cpus_of, nice_values};
use crate::residue::Inventory;
use crate::worker::{Kind, Spec};

/// Catches: a start that is refused since a task of a dead predecessor cannot be put back; a record of
/// it that is lost; another task that is not put back, or not adopted, for that; a `restore` that has to
/// write into /run.
pub const REFUSED_BACK: Scenario = Scenario {
    name: "refused_back",
    what: "a task that its cpuset keeps from being put back: all else works, and later it is; a full /run",
    scope: Scope::First,
    boot: &[],
    secs: 9,
    host: Host::Alone,
    complaints: &[],
    run: refused_back,
};

/// Catches: a terminal, or a pipe, that takes no output and keeps tasks from being adopted or put back,
/// or the daemon from its end; a daemon that Ctrl-Z stops; a view as urgent as what must be done in time.
pub const STUCK_TERMINAL: Scenario = Scenario {
    name: "stuck_terminal",
    what: "the view on a terminal that takes nothing: tasks are put back, and the daemon ends",
    scope: Scope::First,
    boot: &[],
    secs: 20,
    host: Host::Alone,
    complaints: &["sched_ext:"],
    run: stuck_terminal,
};

/// Catches: a daemon that does not work where the kernel is locked down for integrity (Secure Boot), or
/// blames something else; one that does not say why it cannot load under confidentiality.
pub const LOCKED_DOWN: Scenario = Scenario {
    name: "locked_down",
    what: "lockdown=integrity: all works but --set-preempt; confidentiality: refused, with the reason",
    scope: Scope::First,
    boot: &["--append", "lockdown=integrity"],
    secs: 7,
    host: Host::Alone,
    complaints: &[],
    run: locked_down,
};

const REFUSED: &str = "could not be put back";

fn fifo(priority: u32) -> Policy {
    Policy::new(libc::SCHED_FIFO, priority)
}

fn adopted() -> Policy {
    Policy { policy: EXT, ..fifo(0) }
}

fn refused_back(ctx: &Ctx) -> Result<Outcome> {
    stay_out(ctx)?;
    let before = Inventory::now();
    let sleeper = |priority| Spec::new(Kind::Sleep).on(ctx.all()).fifo(priority);
    let mut workers = Workers::start("refused", [sleeper(50), sleeper(40)])?;
    workers.wait_begun()?;
    let [held, other] = [0, 1].map(|i| workers.pid(i).cast_signed());
    let group = Cgroup::with("narrow", "cpuset")?;
    group.set("cgroup.procs", &held.to_string())?;
    // one CPU of either kind
    let both = Cpus(0b0110);
    ensure!(both.0 & ctx.rt.0 != 0 && both.0 & ctx.nrt.0 != 0, "control: RT CPUs {}", ctx.rt);
    both.bind(held)?;
    let on = |tid: i32, cpus: Cpus| {
        until(&format!("task {tid} is on {cpus}"), PATIENCE, || Ok(cpus_of(tid)? == cpus))
    };

    let restore = || Daemon::run(&ctx.program, &["restore"]);
    let daemon = ctx.load(&["--confine", "--set-preempt", "lazy"])?;
    on(held, Cpus::one(1))?;
    on(other, ctx.nrt)?;
    daemon.stop(Signal::SIGKILL)?;
    let full = Full::new()?;
    let ended = restore()?;
    ensure!(ended.code == 0, "restore with a full /run: {}\n{}", ended.code, ended.output);
    drop(full);
    let now = (cpus_of(held)?, cpus_of(other)?);
    ensure!(now == (both, ctx.all()), "put back with a full /run they are on {now:?}");

    let daemon = ctx.load(&["--confine"])?;
    on(held, Cpus::one(1))?;
    on(other, ctx.nrt)?;
    daemon.stop(Signal::SIGKILL)?;
    group.set("cpuset.cpus", "0")?;
    on(held, Cpus::one(0))?;

    let mut daemon = ctx.load(&["--adopt"]).context("with a task that cannot be put back")?;
    ensure!(daemon.output().contains(REFUSED), "it does not say so:\n{}", daemon.output());
    on(other, ctx.all())?;
    becomes(other, "the other task is adopted", adopted())?;
    daemon.ensure_loaded("with a task that cannot be put back")?;
    daemon.signal(Signal::SIGINT)?;
    let ended = daemon.ended()?;
    let says_so = ended.code == 1 && ended.output.contains("scx_artis restore");
    ensure!(says_so, "its end: exit code {}\n{}", ended.code, ended.output);
    ensure!(Policy::of(other)? == Some(fifo(40)), "the other one is {:?}", Policy::of(other)?);

    let ended = restore()?;
    ensure!(ended.code == 1 && ended.output.contains(REFUSED), "restore:\n{}", ended.output);
    group.set("cpuset.cpus", "0-3")?;
    on(held, Cpus::one(1))?;
    let ended = restore()?;
    ensure!(ended.code == 0, "restore: exit code {}\n{}", ended.code, ended.output);
    ensure!(cpus_of(held)? == both, "put back it is on {}", cpus_of(held)?);
    drop((workers, group));
    before.ensure_same()?; // the preemption model, too
    Ok(Outcome::Passed)
}

/// The file system of /run has no room. It has again when this is dropped.
struct Full;

impl Full {
    const RUN: &str = "/run";
    const FILE: &str = "/run/full";

    fn new() -> Result<Self> {
        // by default half of the guest's memory would fit
        Self::resize("1m")?;
        let full = Self;
        let mut file = File::create(Self::FILE)?;
        let error = loop {
            if let Err(error) = file.write(&[0; 4096]) {
                break error;
            }
        };
        ensure!(error.kind() == ErrorKind::StorageFull, "control: {error}");
        Ok(full)
    }

    fn resize(size: &str) -> Result<()> {
        let option = format!("size={size}");
        mount(None::<&str>, Self::RUN, None::<&str>, MsFlags::MS_REMOUNT, Some(option.as_str()))
            .context("another size of /run")
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        let _ = fs::remove_file(Self::FILE);
        let _ = Self::resize("50%");
    }
}

/// A terminal of 24 lines.
struct Terminal {
    slave: OwnedFd,
    keys: File,
    shown: Arc<AtomicUsize>,
}

impl Terminal {
    fn new() -> Result<Self> {
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).context("a terminal")?;
        let keys = File::from(pty.master);
        let (mut screen, mut answers) = (keys.try_clone()?, keys.try_clone()?);
        let shown = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&shown);
        thread::spawn(move || {
            let mut text = [0; 4096];
            // EIO: all have closed it
            while let Ok(n @ 1..) = screen.read(&mut text) {
                count.fetch_add(n, Ordering::Relaxed);
                // where is the cursor?
                if text[..n].windows(4).any(|w| w == b"\x1b[6n") {
                    let _ = answers.write_all(b"\x1b[1;1R");
                }
            }
        });
        Ok(Self { slave: pty.slave, keys, shown })
    }

    /// Bytes that were shown so far.
    fn shown(&self) -> usize {
        self.shown.load(Ordering::Relaxed)
    }
}

/// The view on a terminal of its own, with a task that is adopted.
fn stuck_terminal(ctx: &Ctx) -> Result<Outcome> {
    stay_out(ctx)?;
    let before = Inventory::now();
    let spec = Spec::new(Kind::Sleep).on(ctx.all()).fifo(50);
    let mut workers = Workers::start("viewed", [spec])?;
    workers.wait_begun()?;
    let task = workers.pid(0).cast_signed();
    for (what, code) in [("ejection", 4), ("SIGTERM", 0)] {
        let mut terminal = Terminal::new()?;
        let args = ["--rt-cpus", &ctx.rt.to_string(), "--adopt"];
        let mut daemon = Daemon::begin_on(&terminal.slave, &ctx.program, &args)?;
        daemon.wait_enabled()?;
        becomes(task, "it is adopted", adopted())?;
        until("the view is shown", PATIENCE, || Ok(terminal.shown() > 1000))?;
        let nice = nice_values(daemon.pid())?;
        for name in ["stream", "view"] {
            ensure!(nice.contains(&(name.to_owned(), 0)), "its nice values are {nice:?}");
        }
        terminal.keys.write_all(b"\x1a").context("Ctrl-Z")?;
        pause(1.0);
        told(ctx, &["rt-cpus", &ctx.rt.to_string()], 0).context("after Ctrl-Z")?;
        tcflow(&terminal.slave, FlowArg::TCOOFF)?;
        // what was on its way is still shown; the next frames, one each second, are not
        until("a stopped terminal shows nothing", PATIENCE, || {
            let before = terminal.shown();
            pause(2.5);
            Ok(terminal.shown() == before)
        })?;
        match code {
            0 => daemon.signal(Signal::SIGTERM)?,
            _ => write("/proc/sysrq-trigger", "S")?,
        }
        becomes(task, &format!("it is put back after the {what}"), fifo(50))?;
        let ended = daemon.ended().with_context(|| format!("after the {what}"))?;
        ensure!(ended.code == code, "exit code {} after the {what}", ended.code);
        say(&format!("after the {what} it has ended with {code}"));
    }
    stuck_pipe(ctx, task)?;
    closed_pipe(ctx)?;
    drop(workers);
    before.ensure_same()?;
    Ok(Outcome::Passed)
}

/// Stdout and stderr are a pipe that is full, as of a journal that stands still.
fn stuck_pipe(ctx: &Ctx, task: i32) -> Result<()> {
    let (_reader, writer) = pipe2(OFlag::O_NONBLOCK)?;
    let mut filled = File::from(writer.try_clone()?);
    while filled.write(b"x").is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty()))?;
    let args = ["--rt-cpus", &ctx.rt.to_string(), "--adopt", "--stats", "0.1"];
    let mut daemon = Daemon::begin_to(&writer, &ctx.program, &args)?;
    daemon.wait_enabled()?;
    becomes(task, "it is adopted while nobody reads stderr", adopted())?;
    pause(2.5); // more lines than may wait
    told(ctx, &["rt-cpus", &ctx.rt.to_string()], 0).context("while nobody reads stderr")?;
    daemon.signal(Signal::SIGTERM)?;
    let ended = daemon.ended().context("while nobody reads stderr")?;
    ensure!(ended.code == 0, "exit code {} with a full pipe", ended.code);
    ensure!(Policy::of(task)? == Some(fifo(50)), "it is {:?}", Policy::of(task)?);
    Ok(())
}

/// What read its lines has ended, as head(1) does.
fn closed_pipe(ctx: &Ctx) -> Result<()> {
    let (reader, writer) = pipe2(OFlag::empty())?;
    let args = ["--rt-cpus", &ctx.rt.to_string(), "--stats", "0.1"];
    let mut daemon = Daemon::begin_to(&writer, &ctx.program, &args)?;
    daemon.wait_enabled()?;
    drop((reader, writer));
    pause(1.0);
    told(ctx, &["rt-cpus", &ctx.rt.to_string()], 0).context("without a stdout")?;
    daemon.ensure_loaded("without a stdout")?;
    daemon.signal(Signal::SIGTERM)?;
    let ended = daemon.ended().context("without a stdout")?;
    ensure!(ended.code == 0, "exit code {} without a stdout", ended.code);
    Ok(())
}

fn locked_down(ctx: &Ctx) -> Result<Outcome> {
    const SECURITY: &str = "/sys/kernel/security";
    let state = format!("{SECURITY}/lockdown");
    stay_out(ctx)?;
    let before = Inventory::now();
    mount(Some("none"), SECURITY, Some("securityfs"), MsFlags::empty(), None::<&str>)?;
    let now = fs::read_to_string(&state)?;
    ensure!(now.contains("[integrity]"), "control: {state} is {now}");
    let rt = ctx.rt.to_string();
    let run = |args: &[&str], code: i32, word: &str| {
        let args = [&["--rt-cpus", &rt], args].concat();
        let ended = Daemon::run(&ctx.program, &args)?;
        let fits = ended.code == code && ended.output.contains(word);
        ensure!(fits, "{args:?}: exit code {}, no '{word}'\n{}", ended.code, ended.output);
        say(ended.output.lines().find(|line| line.contains(word)).unwrap_or_default().trim());
        Ok(())
    };
    run(&["--check"], 0, "locked down for integrity")?;
    run(&["--set-preempt", "lazy"], 1, "the kernel is locked down")?;
    let mut workers = Workers::start("locked", [Spec::new(Kind::Sleep).on(ctx.all()).fifo(50)])?;
    workers.wait_begun()?;
    let task = workers.pid(0).cast_signed();
    let daemon = ctx.load(&["--adopt"])?;
    becomes(task, "it is adopted", adopted())?;
    daemon.finish()?;
    ensure!(Policy::of(task)? == Some(fifo(50)), "it is {:?}", Policy::of(task)?);
    write(&state, "confidentiality")?;
    run(&[], 3, "lockdown=integrity")?;
    umount(SECURITY)?;
    drop(workers);
    before.ensure_same()?;
    Ok(Outcome::Passed)
}
