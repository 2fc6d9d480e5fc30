// SPDX-License-Identifier: GPL-2.0-only
//! What a daemon that no service manager limits has left of root's powers.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::adopt::{becomes, stay_out};
use super::control::told;
use super::{Ctx, Host, Outcome, Scenario, Scope, hotplug, say};
use crate::guest::{PATIENCE, line, until};
use crate::load::Workers;
use crate::policy::{EXT, Policy, nice_values};
use crate::worker::{Kind, Spec};

/// Catches: a daemon that keeps a capability or system call that it does not need, in any of its
/// threads, or a nice value that others profit from; one that needs what it gave up: the kernel's log
/// tells of a call that is refused, which fails any scenario.
pub const PRIVILEGES: Scenario = Scenario {
    name: "privileges",
    what: "started by hand, with all options: few capabilities, no others by exec, system calls filtered",
    scope: Scope::Both,
    boot: &[],
    secs: 20,
    host: Host::Alone,
    complaints: &["sched_ext:"],
    run: privileges,
};

const RULES: &str = "/tmp/privileges.toml";
const METRICS: &str = "/tmp/privileges.sock";
/// Threads of the daemon that may wait: they do what others ask for, or write what it says.
const PATIENT: [&str; 4] = ["feed", "metrics", "metrics-http", "stderr"];
/// Bits of include/uapi/linux/capability.h.
const CHOWN: u64 = 1;
const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const SYS_PTRACE: u64 = 1 << 19;
const SYS_ADMIN: u64 = 1 << 21;
const SYS_NICE: u64 = 1 << 23;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

fn privileges(ctx: &Ctx) -> Result<Outcome> {
    stay_out(ctx)?;
    let sleeper = Spec::new(Kind::Sleep).on(ctx.all()).fifo(30);
    let mut workers = Workers::start("privileged", [sleeper])?;
    workers.wait_begun()?;
    let task = workers.pid(0).cast_signed();
    let rule = |priority: u32| {
        format!("[[rule]]\ncomm = 'nobody'\nuser = 'root'\nclass = 'rt1'\npriority = {priority}\n")
    };
    fs::write(RULES, rule(1))?;
    let options = [
        "--adopt",
        "--confine",
        "--config",
        RULES,
        "--metrics",
        &format!("unix:{METRICS}"),
        "--feed-group",
        "0",
        "--set-preempt",
        "full",
    ];
    let paranoid: i32 = line("/proc/sys/kernel/perf_event_paranoid")?.parse()?;
    let admin = if paranoid > 2 { SYS_ADMIN } else { 0 };
    let few = CHOWN | SYS_PTRACE | SYS_NICE | PERFMON | BPF | admin;
    let mut daemon = ctx.load(&options)?;
    let adopted = Policy { policy: EXT, ..Policy::new(libc::SCHED_FIFO, 0) };
    becomes(task, "it adopts", adopted)?;
    // the filter comes when all else is done
    until("the system calls are filtered", PATIENCE, || {
        Ok(threads(daemon.pid())?.iter().all(|thread| thread.seccomp == 2))
    })
    .with_context(|| daemon.output())?;
    let all = threads(daemon.pid())?;
    ensure!(all.len() > 5, "only {} threads", all.len());
    for thread in &all {
        let wanted = few | DAC_OVERRIDE | DAC_READ_SEARCH;
        ensure!(
            thread.capabilities == [0, wanted, wanted, wanted, 0] && thread.no_new_privs == 1,
            "{thread:x?}, not {wanted:x}"
        );
    }
    say(&format!("{} threads have the capabilities {:x}", all.len(), few));

    say("what is for others is not as urgent as the rest");
    let nice = nice_values(daemon.pid())?;
    for (name, nice) in &nice {
        let wanted = if PATIENT.contains(&name.as_str()) { 0 } else { -10 };
        ensure!(*nice == wanted, "the thread {name} has nice {nice}, not {wanted}");
    }
    for name in PATIENT {
        ensure!(nice.iter().any(|(other, _)| other == name), "no thread {name}: {nice:?}");
    }

    say("all that a daemon does");
    let top = Command::new(&ctx.program)
        .args(["top", "--json", "--count", "2"])
        .stdin(Stdio::null())
        .output()?;
    ensure!(top.status.success(), "top: {}", String::from_utf8_lossy(&top.stderr));
    let text = http(METRICS)?;
    ensure!(text.contains("# EOF"), "metrics: {text}");
    told(ctx, &["set", "predict-c-us", "2100"], 0)?;
    told(ctx, &["rt-cpus", "3"], 0)?;
    told(ctx, &["rt-cpus", &ctx.rt.to_string()], 0)?;
    told(ctx, &["class", &task.to_string(), "--class", "rt1", "--priority", "9"], 0)?;
    daemon.stats()?.counter("evictions")?;
    fs::write(RULES, rule(2))?;
    daemon.signal(Signal::SIGHUP)?;
    until("the rules are read again", PATIENCE, || Ok(daemon.output().contains("SIGHUP")))
        .with_context(|| daemon.output())?;
    hotplug::switch(ctx, &mut daemon, 1, false)?;
    hotplug::switch(ctx, &mut daemon, 1, true)?;
    daemon.finish()?;
    becomes(task, "it puts back", Policy::new(libc::SCHED_FIFO, 30))?;

    say("what fewer options need");
    let daemon = ctx.load(&[])?;
    for thread in threads(daemon.pid())? {
        ensure!(thread.capabilities == [0, few, few, few, 0], "{thread:x?}, not {few:x}");
    }
    daemon.finish()?;
    drop(workers);
    fs::remove_file(RULES)?;
    Ok(Outcome::Passed)
}

/// What /proc/PID/task/TID/status tells of a thread's powers.
#[derive(Debug)]
struct Thread {
    /// Inheritable, permitted, effective, bounding, ambient.
    capabilities: [u64; 5],
    no_new_privs: u64,
    /// 2: calls are filtered.
    seccomp: u64,
}

fn threads(pid: u32) -> Result<Vec<Thread>> {
    let mut all = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
        let number = |key: &str, radix| {
            let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            let value = value.with_context(|| format!("no {key} in\n{status}"))?;
            u64::from_str_radix(value.trim(), radix).context("no number")
        };
        let [i, p, e, b, a] = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
        let cap = |key| number(key, 16);
        all.push(Thread {
            capabilities: [cap(i)?, cap(p)?, cap(e)?, cap(b)?, cap(a)?],
            no_new_privs: number("NoNewPrivs", 10)?,
            seccomp: number("Seccomp", 10)?,
        });
    }
    Ok(all)
}

/// What a socket answers to a request for metrics.
fn http(path: &str) -> Result<String> {
    use std::io::{Read, Write};
    let mut socket = std::os::unix::net::UnixStream::connect(path)?;
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    socket.read_to_string(&mut text)?;
    Ok(text)
}
