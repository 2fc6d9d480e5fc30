// SPDX-License-Identifier: GPL-2.0-only
//! What the guest's kernel says: sched_ext's state, CPU times, its account of tasks.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// Where sched_ext tells its state.
pub const SCHED_EXT: &str = "/sys/kernel/sched_ext";

/// How long anything in a guest may take at most: for what must happen, not a
/// measure of how fast.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Refuses to run on a machine that is not virtual: the scenarios offline CPUs,
/// start FIFO hogs and kill schedulers.
pub fn ensure_virtual() -> Result<()> {
    let info = fs::read_to_string("/proc/cpuinfo")?;
    let virt = info.lines().any(|l| l.starts_with("flags") && l.contains(" hypervisor"));
    ensure!(virt, "this is no virtual machine: scenarios run in scripts/vm only");
    Ok(())
}

/// A file of one line, trimmed.
pub fn line(path: &str) -> Result<String> {
    Ok(fs::read_to_string(path).with_context(|| path.to_string())?.trim().to_string())
}

/// Writes to a file of sysfs or procfs.
pub fn write(path: &str, value: &str) -> Result<()> {
    fs::write(path, value).with_context(|| format!("write {value} to {path}"))
}

/// disabled, enabling, enabled, disabling.
pub fn scx_state() -> Result<String> {
    line(&format!("{SCHED_EXT}/state"))
}

/// The name of the loaded scheduler, if there is one.
#[must_use]
pub fn scx_ops() -> Option<String> {
    line(&format!("{SCHED_EXT}/root/ops")).ok()
}

/// How often a scheduler was enabled since boot.
pub fn enable_seq() -> Result<u64> {
    Ok(line(&format!("{SCHED_EXT}/enable_seq"))?.parse()?)
}

/// Can a sched_ext scheduler put a task back from beneath a real-time one at any time (6.19)?
pub fn puts_back_late() -> Result<bool> {
    has_symbol("scx_bpf_reenqueue_local___v2")
}

/// Does the kernel have this function?
pub fn has_symbol(name: &str) -> Result<bool> {
    let symbols = fs::read_to_string("/proc/kallsyms").context("/proc/kallsyms")?;
    Ok(symbols.lines().any(|line| line.split_whitespace().nth(2) == Some(name)))
}

/// How the names of the scheduler under test begin. ARTIS_VM_OPS names another
/// one, to see how it fares in a scenario.
#[must_use]
pub fn ops_prefix() -> String {
    std::env::var("ARTIS_VM_OPS").unwrap_or_else(|_| "artis".into())
}

/// Is the scheduler under test in charge?
#[must_use]
pub fn artis_enabled() -> bool {
    scx_state().is_ok_and(|s| s == "enabled")
        && scx_ops().is_some_and(|o| o.starts_with(&ops_prefix()))
}

/// Fails unless our scheduler is in charge.
pub fn ensure_enabled(when: &str) -> Result<()> {
    ensure!(
        artis_enabled(),
        "artis is not loaded {when}: state {}, ops {:?}",
        scx_state()?,
        scx_ops()
    );
    Ok(())
}

/// Is the kernel a PREEMPT_RT one? By its version text: /sys/kernel/realtime is
/// not in mainline's kernels.
#[must_use]
pub fn preempt_rt() -> bool {
    nix::sys::utsname::uname().is_ok_and(|u| u.version().to_string_lossy().contains("PREEMPT_RT"))
}

/// Polls until `done` says so; fails with `what` after `patience`.
pub fn until(what: &str, patience: Duration, mut done: impl FnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !done()? {
        if start.elapsed() > patience {
            bail!("waited {:.1} s in vain: {what}", patience.as_secs_f64());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// What the threads of a process do, with their stacks in the kernel. What cannot be read is missing.
#[must_use]
pub fn threads(pid: u32) -> String {
    let mut text = String::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let tells = |line: &&str| {
            ["State:", "se.sum_exec", "nr_switches", "policy", "prio", "ext.enabled"]
                .iter()
                .any(|begin| line.starts_with(begin))
        };
        let (comm, status, sched) = (read("comm"), read("status"), read("sched"));
        let told: Vec<_> = status.lines().chain(sched.lines()).filter(tells).collect();
        let told = told.join(", ").split_whitespace().collect::<Vec<_>>().join(" ");
        text +=
            &format!("thread {:?} {}: {told}\n{}", task.file_name(), comm.trim(), read("stack"));
    }
    text
}

/// Sleeps.
pub fn pause(secs: f64) {
    std::thread::sleep(Duration::from_secs_f64(secs));
}

/// Ticks in user mode (nice or not) and in all, of one CPU since boot.
pub fn cpu_ticks(cpu: u32) -> Result<(u64, u64)> {
    let stat = fs::read_to_string("/proc/stat")?;
    let prefix = format!("cpu{cpu} ");
    let fields = stat.lines().find_map(|l| l.strip_prefix(&prefix));
    let fields = fields.with_context(|| format!("/proc/stat has no cpu{cpu}"))?;
    let n: Vec<u64> = fields.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    ensure!(n.len() >= 8, "/proc/stat: '{fields}'");
    Ok((n[0] + n[1], n[..8].iter().sum()))
}

/// Time on a CPU of a task since it began, ns.
pub fn run_time_ns(pid: u32) -> Result<u64> {
    schedstat(pid, 0)
}

/// Time for which a task has waited for a CPU since it began, ns.
pub fn wait_time_ns(pid: u32) -> Result<u64> {
    schedstat(pid, 1)
}

fn schedstat(pid: u32, field: usize) -> Result<u64> {
    let path = format!("/proc/{pid}/schedstat");
    let text = line(&path)?;
    let value = text.split_whitespace().nth(field).with_context(|| path.clone())?;
    value.parse().with_context(|| format!("{path}: '{text}'"))
}

/// Id and name of each process; one that ends meanwhile has no name.
pub fn processes() -> Result<Vec<(i32, String)>> {
    let named = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let comm = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        Some((pid, comm.trim_end().to_owned()))
    };
    Ok(fs::read_dir("/proc")?.flatten().filter_map(named).collect())
}

/// A number of /proc/PID/status. Of memory, in KiB: RssAnon is what is no file's, VmLck what is locked.
/// FDSize: places in the table of open files.
pub fn status_number(pid: u32, field: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| path.clone())?;
    let value = status.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
    let number = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
    number.with_context(|| format!("{path} has no {field}"))
}

/// State, CPU, run and wait time of a task, for messages.
#[must_use]
pub fn describe(pid: u32) -> String {
    let stat = line(&format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let field = |i: usize| fields.get(i).copied().unwrap_or("?");
    let ms = |ns: Result<u64>| ns.unwrap_or(0) / 1_000_000;
    let (ran_ms, waited_ms) = (ms(run_time_ns(pid)), ms(wait_time_ns(pid)));
    // fields 3 and 39 of proc(5), counted from the third
    format!("{} CPU {} ran {ran_ms} ms waited {waited_ms} ms", field(0), field(36))
}

const TRACING: &str = "/sys/kernel/tracing";

/// Prepares [`scx_dump`]. Beforehand: it waits for a kworker on each CPU, which a real-time
/// task may keep from running. Kernels without this tracepoint have no dump.
pub fn prepare_dump() {
    let _ = write(&format!("{TRACING}/events/sched_ext/sched_ext_dump/enable"), "1");
}

/// sched_ext's own account of every CPU's runnable tasks (SysRq-D, kernel >= 6.12:
/// the tracepoint sched_ext_dump), for messages: it tells a lost task from one that
/// the kernel pins (`no_mig`).
#[must_use]
pub fn scx_dump() -> String {
    let dump = || -> Result<String> {
        write("/proc/sysrq-trigger", "D")?;
        pause(0.2);
        let trace = fs::read_to_string(format!("{TRACING}/trace"))?;
        let lines = trace.lines().filter_map(|l| Some(l.split_once("sched_ext_dump: ")?.1));
        Ok(lines.fold(String::new(), |all, l| all + l + "\n"))
    };
    dump().unwrap_or_else(|e| format!("no dump of sched_ext: {e:#}"))
}

/// Is a thread or process of this id still there (and no zombie)?
#[must_use]
pub fn alive(pid: u32) -> bool {
    line(&format!("/proc/{pid}/stat"))
        .is_ok_and(|s| !s.rsplit(')').next().unwrap_or("").starts_with(" Z"))
}
