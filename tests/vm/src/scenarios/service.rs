// SPDX-License-Identifier: GPL-2.0-only
//! The systemd unit, run by a real systemd with all its limits.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::adopt::{becomes, stay_out};
use super::control::told;
use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::daemon::Stats;
use crate::forge::UID;
use crate::guest::{PATIENCE, artis_enabled, line, scx_state, until, write};
use crate::load::Workers;
use crate::policy::{EXT, Policy, cpus_of};
use crate::systemd::{BOOT, Service};
use crate::worker::{Kind, Spec};

/// Catches: a unit that does not start, reload or stop; limits of it that keep the daemon from
/// something; tasks that a killed daemon leaves adopted; a service that does not come again after
/// that.
pub const SERVICE: Scenario = Scenario {
    name: "service",
    what: "the systemd unit: start, SIGKILL and restart, reload, stop; adopted tasks are put back",
    scope: Scope::First,
    boot: BOOT,
    secs: 29,
    host: Host::Alone,
    complaints: &[],
    run: service,
};

/// Catches: a daemon that hangs and stays; starts without end where the kernel ejects the scheduler
/// each time, or where the arguments are wrong.
pub const SERVICE_FAILS: Scenario = Scenario {
    name: "service_fails",
    what: "the systemd unit: a daemon that hangs is replaced; starting in vain comes to an end",
    scope: Scope::First,
    boot: BOOT,
    secs: 25,
    host: Host::Alone,
    complaints: &["sched_ext:"],
    run: service_fails,
};

const MODEL: &str = "/sys/kernel/debug/sched/preempt";
/// Where the unit's daemon looks for rules.
const RULES: &str = "/etc/scx_artis/config.toml";
/// The group that may watch.
const GROUP: u32 = 4242;
/// CAP_CHOWN, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_SYS_NICE, CAP_PERFMON, CAP_BPF: all that the unit
/// leaves it (include/uapi/linux/capability.h).
const CAPABILITIES: u64 = 1 | 1 << 19 | 1 << 21 | 1 << 23 | 1 << 38 | 1 << 39;

fn fifo(priority: u32) -> Policy {
    Policy::new(libc::SCHED_FIFO, priority)
}

fn adopted() -> Policy {
    Policy { policy: EXT, ..fifo(0) }
}

fn service(ctx: &Ctx) -> Result<Outcome> {
    stay_out(ctx)?;
    let model = line(MODEL)?;
    ensure!(!model.contains("(lazy)"), "control: the model is {model}");
    let sleeper = |priority| Spec::new(Kind::Sleep).on(ctx.all()).fifo(priority);
    let mut workers = Workers::start("served", [sleeper(30), sleeper(20)])?;
    workers.wait_begun()?;
    let [task, confined] = [0, 1].map(|i| workers.pid(i).cast_signed());
    // of another user: nobody sees its program without CAP_SYS_PTRACE
    let other = Command::new("sleep").arg("1000").stdin(Stdio::null()).uid(UID).gid(UID).spawn()?;
    let mut other = Killed(other);
    let pid = Pid::from_raw(other.0.id().cast_signed());
    let program = fs::read_link(format!("/proc/{pid}/exe"))?;
    fs::create_dir_all("/etc/scx_artis")?;
    let rules = |priority: u32| {
        let rule = format!(
            "[[rule]]\nexe = '{}'\nuser = {UID}\nclass = 'rt1'\npriority = {priority}\n\
             [[rule]]\npid = {confined}\nadopt = false\n",
            program.display()
        );
        fs::write(RULES, rule)
    };
    rules(7)?;
    let service = Service::install()?;
    let options = format!("--adopt --confine --set-preempt lazy --feed-group {GROUP}");
    service.options(&ctx.rt.to_string(), &options)?;

    service.does(&["start"])?;
    ensure!(artis_enabled(), "started, but not in charge\n{}", service.log());
    let first = service.pid()?;
    ensure_limits(first)?;
    becomes(task, "the service adopts", adopted()).with_context(|| service.log())?;
    on(confined, ctx.nrt)?;
    ensure!(line(MODEL)?.contains("(lazy)"), "the model is {}", line(MODEL)?);
    has_priority(&service, pid, 7)?;
    told(ctx, &["rt-cpus", &ctx.rt.to_string()], 0)?;
    watched(ctx)?;

    say("killed, and started again");
    kill(first, Signal::SIGKILL)?;
    service.becomes("MainPID", "another daemon", |now| now != "0" && now != first.to_string())?;
    service.becomes("ActiveState", "the service has come again", |now| now == "active")?;
    ensure!(artis_enabled(), "active, but not in charge\n{}", service.log());
    becomes(task, "the service adopts anew", adopted())?;

    say("reloaded");
    let second = service.pid()?;
    rules(8)?;
    reload(&service)?;
    has_priority(&service, pid, 8)?;
    fs::write(RULES, "banana")?;
    reload(&service)?;
    service.becomes("StatusText", "it tells what is wrong", |now| now.contains("not reloaded"))?;
    rules(9)?;
    reload(&service)?;
    service.becomes("StatusText", "all is well", |now| now.starts_with("RT CPUs"))?;
    service.becomes("ActiveState", "the reload has ended", |now| now == "active")?;
    workers.ensure_progress(1.0, "after a reload")?;
    ensure!(artis_enabled() && service.pid()? == second, "a reload ended the service");

    say("killed for good");
    service.drop_in("test", "Restart=no\n")?;
    kill(second, Signal::SIGKILL)?;
    becomes(task, "the unit puts back what a killed daemon left", fifo(30))?;
    on(confined, ctx.all())?;
    service.becomes("ActiveState", "it has failed", |now| now == "failed")?;
    ensure!(line(MODEL)? == model, "the model is {}", line(MODEL)?);

    say("started, and stopped");
    service.does(&["start"])?;
    becomes(task, "the service adopts once more", adopted())?;
    service.does(&["stop"])?;
    ensure!(scx_state()? == "disabled", "a scheduler after the stop: {}", scx_state()?);
    ensure!(service.property("Result")? == "success", "stopped: {}", service.property("Result")?);
    ensure!(Policy::of(task)? == Some(fifo(30)), "after the stop: {:?}", Policy::of(task)?);
    ensure!(line(MODEL)? == model, "the model is {}", line(MODEL)?);
    other.end();
    fs::remove_dir_all("/etc/scx_artis")?;
    Ok(Outcome::Passed)
}

/// The limits of the unit are in force.
fn ensure_limits(daemon: Pid) -> Result<()> {
    let status = fs::read_to_string(format!("/proc/{daemon}/status"))?;
    let of = |key: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        value.map(str::trim).with_context(|| format!("no {key} in\n{status}"))
    };
    let capabilities = u64::from_str_radix(of("CapEff")?, 16)?;
    ensure!(capabilities == CAPABILITIES, "its capabilities are {capabilities:x}");
    ensure!(of("NoNewPrivs")? == "1" && of("Seccomp")? == "2", "{status}");
    let mounts = fs::read_to_string(format!("/proc/{daemon}/mounts"))?;
    for (dir, mode) in [("/", "ro,"), ("/sys", "ro,"), ("/sys/fs/bpf", "rw,")] {
        let mut options = mounts.lines().filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            (words.next() == Some(dir)).then(|| words.nth(1))?
        });
        let last = options.next_back().with_context(|| format!("no {dir} in\n{mounts}"))?;
        ensure!(last.starts_with(mode), "{dir} is mounted {last}");
    }
    Ok(())
}

/// A member of the group sees what happens, and so do scx's tools.
fn watched(ctx: &Ctx) -> Result<()> {
    let mut top = Command::new(&ctx.program);
    let out = top.args(["top", "--json", "--count", "1"]).uid(UID).gid(GROUP).output()?;
    let text = String::from_utf8_lossy(&out.stdout);
    ensure!(text.contains("\"tasks\""), "a member of the group sees\n{text}");
    Stats::connect()?.counter("evictions")?;
    Ok(())
}

/// Has the service read its rules again, and waits until it has done so.
fn reload(service: &Service) -> Result<()> {
    // the first to know Type=notify-reload
    if Service::version()? >= 253 {
        return service.does(&["reload"]);
    }
    // what it says to each
    let answers =
        || ["by SIGHUP", "the rules are as before"].map(|a| service.log().matches(a).count());
    let before = answers();
    service.does(&["kill", "--signal=HUP", "--kill-whom=main"])?;
    until("the service has read its rules", PATIENCE, || Ok(answers() != before))
        .with_context(|| service.log())
}

fn has_priority(service: &Service, task: Pid, priority: u64) -> Result<()> {
    let mut stats = Stats::connect()?;
    let tid = task.as_raw().unsigned_abs();
    until(&format!("the rule gives priority {priority}"), PATIENCE, || {
        Ok(stats.task(tid).is_ok_and(|task| task["rt1"] == priority))
    })
    .with_context(|| service.log())
}

fn on(tid: i32, cpus: Cpus) -> Result<()> {
    until(&format!("task {tid} is on {cpus}"), PATIENCE, || Ok(cpus_of(tid)? == cpus))
}

/// A program that ends with this.
struct Killed(std::process::Child);

impl Killed {
    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.end();
    }
}

fn service_fails(ctx: &Ctx) -> Result<Outcome> {
    stay_out(ctx)?;
    let service = Service::install()?;
    let rt = ctx.rt.to_string();

    say("wrong arguments");
    service.options(&rt, "--no-such-option")?;
    ensure!(service.does(&["start"]).is_err(), "it has started with wrong arguments");
    service.becomes("ActiveState", "it has failed", |now| now == "failed")?;
    let tried = service.property("NRestarts")?;
    ensure!(tried == "0", "with wrong arguments it was tried again {tried} times");

    say("a daemon that hangs");
    service.options(&rt, "")?;
    service.drop_in("test", "WatchdogSec=4\n")?;
    service.does(&["start"])?;
    let first = service.pid()?;
    kill(first, Signal::SIGSTOP)?;
    service.becomes("MainPID", "another daemon", |now| now != "0" && now != first.to_string())?;
    service.becomes("ActiveState", "the service has come again", |now| now == "active")?;
    ensure!(artis_enabled(), "active, but not in charge\n{}", service.log());
    service.does(&["stop"])?;

    say("ejected again and again");
    service.does(&["start"])?;
    let mut starts = 1;
    loop {
        let daemon = service.pid()?;
        write("/proc/sysrq-trigger", "S")?;
        service.becomes("MainPID", "the daemon has ended", |now| now != daemon.to_string())?;
        let mut state = String::new();
        until("it is started again, or given up", PATIENCE, || {
            state = service.property("ActiveState")?;
            Ok(["active", "failed"].contains(&state.as_str()))
        })?;
        if state == "failed" {
            break;
        }
        starts += 1;
        ensure!(starts < 10, "it is started {starts} times");
    }
    ensure!(starts == 3, "given up after {starts} starts");
    let result = service.property("Result")?;
    say(&format!("given up after {starts} starts: {result}"));
    ensure!(scx_state()? == "disabled", "a scheduler at the end: {}", scx_state()?);
    Ok(Outcome::Passed)
}
