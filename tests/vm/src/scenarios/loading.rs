// SPDX-License-Identifier: GPL-2.0-only
//! Loading, unloading, being killed, being given nonsense.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::mount::{MsFlags, mount, umount};
use nix::sys::signal::Signal;

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::daemon::Daemon;
use crate::figure::figure;
use crate::guest::{self, PATIENCE, until};
use crate::load::{Workers, mix};
use crate::plain;
use crate::residue::Inventory;
use crate::worker::{Kind, Spec};

/// Catches: a loader that does not attach, does not end on SIGINT or SIGTERM,
/// exits with another code, leaves a pin, socket, map, program or a changed
/// setting behind; a dispatch path that forgets one kind of CPU; a second
/// instance that disturbs the first.
pub const LOAD_UNLOAD: Scenario = Scenario {
    name: "load_unload",
    what: "loads, runs tasks, unloads by SIGINT and SIGTERM, leaves nothing behind; twice",
    // on each kernel, tally, zero_bodies and adopt load and unload it, and serve looks what is left
    scope: Scope::First,
    boot: &[],
    secs: 13,
    host: Host::Alone,
    complaints: &[],
    run: load_unload,
};

fn load_unload(ctx: &Ctx) -> Result<Outcome> {
    let (rt, nrt) = (Cpus::one(ctx.rt.first()?), Cpus::one(ctx.nrt.first()?));
    let before = Inventory::now();
    let mut longest = Duration::ZERO;
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut daemon = ctx.load(&[])?;
        say(&format!("enabled {:.2} s after exec", daemon.enabled_after().as_secs_f64()));
        longest = longest.max(daemon.enabled_after());
        let spin = || Spec::new(Kind::Spin);
        let specs = [spin().on(rt), spin().on(nrt), spin(), Spec::new(Kind::Fork)];
        let mut workers = Workers::start("load", specs)?;
        workers.wait_begun()?;
        workers.ensure_progress(1.0, "under artis")?;
        refuses_a_second(ctx, &mut daemon)?;
        let status = daemon.stop(signal)?;
        ensure!(status.code() == Some(0), "after {signal} it exits with {status}");
        workers.ensure_progress(1.0, "after the unload")?;
        drop(workers);
        before.ensure_same().with_context(|| format!("after {signal}"))?;
    }
    figure("enabled_after", format!("{:.2}", longest.as_secs_f64()), "s");
    Ok(Outcome::Passed)
}

fn refuses_a_second(ctx: &Ctx, first: &mut Daemon) -> Result<()> {
    let second = Daemon::run(&ctx.program, &["--rt-cpus", &ctx.rt.to_string()])?;
    ensure!(second.code == 3, "a second instance exits with {}\n{}", second.code, second.output);
    ensure!(second.output.contains("artis"), "a second instance says\n{}", second.output);
    first.ensure_loaded("after a second instance was refused")
}

/// Catches: state that needs the loader to be undone, tasks stranded in a
/// queue of a scheduler that is gone; a scheduler that outlives its hooks.
pub const SIGKILL: Scenario = Scenario {
    name: "sigkill",
    what: "SIGKILL of the loader under load: the kernel's default takes over",
    scope: Scope::First,
    boot: &[],
    secs: 13,
    host: Host::Alone,
    complaints: &[],
    run: sigkill,
};

/// Of the descriptors that a process leaves open, the kernel closes the one that was opened last first
/// (`close_files()`, fs/file.c, and `task_work_run()`, kernel/task_work.c): the scheduler, and then the
/// hooks that tell it of entries into the kernel.
fn ensure_gone_before_its_hooks(daemon: &Daemon) -> Result<()> {
    let pid = daemon.pid();
    let (mut scheduler, mut faults) = (None, Vec::new());
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let fd: u32 = entry?.file_name().to_str().context("a name")?.parse()?;
        let kind = fs::read_link(format!("/proc/{pid}/fd/{fd}"));
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}"));
        let (Ok(kind), Ok(info)) = (kind, info) else { continue }; // closed by now
        if info.lines().any(|line| line == "link_type:\tstruct_ops") {
            scheduler = Some(fd);
        } else if kind.ends_with("anon_inode:[perf_event]") || info.contains("link_type:\tperf\n") {
            faults.push(fd);
        }
    }
    let scheduler = scheduler.context("control: no link of a scheduler")?;
    say(&format!("the scheduler is descriptor {scheduler}, its page faults are {faults:?}"));
    ensure!(faults.len() >= 4, "control: {} events", faults.len());
    ensure!(faults.iter().all(|fd| *fd < scheduler), "the hooks end before the scheduler");
    Ok(())
}

fn sigkill(ctx: &Ctx) -> Result<Outcome> {
    let before = Inventory::now();
    let daemon = ctx.load(&[])?;
    let mut loads = mix()?;
    let rt = Cpus::one(ctx.rt.first()?);
    let kinds =
        [Kind::Spin, Kind::Spin, Kind::Spin, Kind::Spin, Kind::Sleep, Kind::Call, Kind::Fork];
    let more = [Spec::new(Kind::Spin).on(rt), Spec::new(Kind::Spin)];
    let specs = kinds.map(Spec::new).into_iter().chain(more);
    let mut workers = Workers::start("kill", specs)?;
    workers.wait_begun()?;
    guest::pause(1.0);
    guest::ensure_enabled("before SIGKILL")?;
    ensure_gone_before_its_hooks(&daemon)?;
    let reference = workers.kill_last()?;
    let killed = Instant::now();
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(daemon.pid().cast_signed()),
        Signal::SIGKILL,
    )?;
    until("the state is disabled", PATIENCE, || Ok(guest::scx_state()? == "disabled"))?;
    let took = killed.elapsed();
    say(&format!("a task is gone after {reference:.2?}, the scheduler disabled after {took:.2?}"));
    drop(daemon);
    workers.ensure_progress(2.0, "after SIGKILL")?;
    for l in &mut loads {
        l.ensure_runs()?;
    }
    drop((workers, loads));
    // a socket's file may stay: nobody was there to remove it; a new instance must cope
    ctx.load(&[]).context("after a SIGKILL")?.finish()?;
    before.ensure_same()?;
    Ok(Outcome::Passed)
}

/// Catches: arguments that are accepted, messages without the culprit, exit
/// codes that scripts cannot rely on, changes made before all is checked.
pub const BAD_ARGS: Scenario = Scenario {
    name: "bad_args",
    what: "bad arguments and unfit machines: message, exit code, and nothing changed",
    scope: Scope::Both,
    boot: &[],
    secs: 2,
    host: Host::Alone,
    complaints: &[],
    run: bad_args,
};

fn bad_args(ctx: &Ctx) -> Result<Outcome> {
    let before = Inventory::now();
    let all = ctx.all().to_string();
    let cases: [(&[&str], i32, &str); 9] = [
        (&["--rt-cpus", &all], 2, "no CPU is left"),
        (&["--rt-cpus", "2-63"], 2, "63"),
        (&["--rt-cpus", "3-2"], 2, "3-2"),
        (&["--rt-cpus", "banana"], 2, "banana"),
        (&["--rt-cpus", "0x0"], 2, "no RT CPU"),
        (&["--rt-cpus", ""], 2, "rt-cpus"),
        (&["--rt-cpus", "2-3", "--call", "no_such_call=harmless"], 2, "no_such_call"),
        (&["--rt-cpus", "2-3", "--call", "read=banana"], 2, "banana"),
        (&["--no-such-option"], 2, "--no-such-option"),
    ];
    for (args, code, word) in cases {
        refused(ctx, args, &[code], word)?;
    }
    offline(ctx)?;
    without_bpf_fs(ctx)?;
    contained(ctx)?;
    without_groups(ctx)?;
    before.ensure_same()?;
    plain::under(|| refused(ctx, &["--rt-cpus", &ctx.rt.to_string()], &[3], plain::NAME))?;
    before.ensure_same()?;
    Ok(Outcome::Passed)
}

fn refused(ctx: &Ctx, args: &[&str], codes: &[i32], word: &str) -> Result<()> {
    let ended = Daemon::run(&ctx.program, args)?;
    let (code, out) = (ended.code, &ended.output);
    ensure!(codes.contains(&code), "{args:?}: exit code {code}, expected {codes:?}\n{out}");
    ensure!(out.contains(word), "{args:?}: the message does not mention '{word}'\n{out}");
    ensure!(!out.contains("panicked"), "{args:?}: it panicked\n{out}");
    ensure!(guest::scx_ops().is_none_or(|o| !o.starts_with("artis")), "{args:?}: it loaded");
    say(&format!("{args:?}: {code}, {}", out.lines().next().unwrap_or("").trim()));
    Ok(())
}

fn offline(ctx: &Ctx) -> Result<()> {
    let cpu = ctx.rt.last()?;
    let online = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    guest::write(&online, "0")?;
    let r = refused(ctx, &["--rt-cpus", &ctx.rt.to_string()], &[2, 3], &cpu.to_string());
    guest::write(&online, "1")?;
    r
}

/// Where tasks have other ids or times than the kernel tells, wrong tasks would be changed.
fn contained(ctx: &Ctx) -> Result<()> {
    const CLONE_NEWTIME: i32 = 0x80; // linux/sched.h
    let (program, rt) = (ctx.program.display().to_string(), ctx.rt.to_string());
    let unshared = |how: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(how).arg(&program);
        command
    };
    let mut in_time = Command::new(&program);
    // SAFETY: a system call between fork and exec, which enters the namespace
    unsafe {
        in_time.pre_exec(|| match libc::unshare(CLONE_NEWTIME) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    for (kind, mut command) in
        [("pid", unshared(&["-p", "-f"])), ("time", in_time), ("user", unshared(&["-U", "-r"]))]
    {
        let out = command.args(["--rt-cpus", &rt]).stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&out.stderr);
        let told = [&format!("another {kind} namespace"), "--pid=host"];
        let refused = out.status.code() == Some(3) && told.iter().all(|word| text.contains(*word));
        ensure!(refused, "in a {kind} namespace: {}\n{text}", out.status);
    }
    Ok(())
}

/// An initrd has neither.
fn without_groups(ctx: &Ctx) -> Result<()> {
    let files = ["/etc/group", "/etc/passwd"].map(|path| (path, fs::read(path).ok()));
    for (path, _) in &files {
        let _ = fs::remove_file(path);
    }
    let ended = ctx.load(&[]).and_then(Daemon::finish);
    for (path, text) in files {
        if let Some(text) = text {
            fs::write(path, text)?;
        }
    }
    ended.context("without users and groups")
}

/// Where nothing can be pinned, tasks could not be put back after a crash.
fn without_bpf_fs(ctx: &Ctx) -> Result<()> {
    const BPF_FS: &str = "/sys/fs/bpf";
    umount(BPF_FS)?;
    let args = ["--rt-cpus", &ctx.rt.to_string(), "--adopt"];
    let r = refused(ctx, &args, &[3], "mount -t bpf");
    mount(Some("bpf"), BPF_FS, Some("bpf"), MsFlags::empty(), None::<&str>)?;
    r
}
