// SPDX-License-Identifier: GPL-2.0-only
//! The auditor (observer/auditor.bpf.c): beside every scenario it looks whether a CPU is idle while
//! a task waits, whether a task stands still, and whether movable tasks enter the kernel on RT CPUs
//! by doors other than calls and their own faults. See docs/decisions/0020-auditor.md.

use std::cell::RefCell;
use std::fmt;
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use libbpf_rs::libbpf_sys::PERF_COUNT_SW_CPU_CLOCK;
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{KprobeMultiOpts, Link, MapCore, MapFlags};

use crate::classes;
use crate::cpus::Cpus;
use crate::event::software;
use crate::guest::{self, PATIENCE, until};
use crate::shared;
use crate::skeleton;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/auditor_skel.rs"));
}
#[allow(missing_docs, dead_code, non_camel_case_types, non_upper_case_globals, clippy::all)]
#[allow(clippy::undocumented_unsafe_blocks)]
mod intf {
    include!(concat!(env!("OUT_DIR"), "/auditor_intf.rs"));
}
use skel::{AuditorSkel, AuditorSkelBuilder};

/// Time between two looks of all CPUs together. Each CPU looks so many times more seldom as there
/// are CPUs: a look takes some µs.
const LOOK: Duration = Duration::from_millis(1);
/// A CPU that is idle beside a waiting task for so long, told in looks of every CPU, is a finding.
/// Seen of scx_artis: 10 looks of 4 ms (`everyone_runs`); of a scheduler that leaves CPUs idle: 49 and
/// 426 (`auditor`).
const IDLE: Duration = Duration::from_millis(150);
/// A task of weight 100 or more that does not run for so long, told in looks of a CPU that it may
/// use, is a finding; one that weighs less, after as much longer. Seen: 1.4 s (`rt0_wakes`), and 11.9 s
/// of 12 by a known fault (`bound`).
const STANDSTILL: Duration = Duration::from_secs(3);
/// A task that has made no call and no fault for so long (own run time) is one that computes.
const COMPUTES: Duration = Duration::from_millis(200);
/// Nothing is judged for so long after a scheduler was enabled, CPUs came or went, or were given
/// another kind.
const GRACE: Duration = Duration::from_millis(100);

/// What changes policy, priority, or CPUs of the task that is its first argument.
const CHANGES: [&str; 3] = ["__sched_setscheduler", "rt_mutex_setprio", "__set_cpus_allowed_ptr"];

/// What the auditor checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Rule {
    /// An NRT CPU is idle while a task waits that may run there.
    Idle = intf::aud_rule_AUD_IDLE,
    /// An RT CPU is idle while a task waits that computes and may run there.
    IdleRt = intf::aud_rule_AUD_IDLE_RT,
    /// A runnable task does not run, though a CPU of its mask is not held by real-time tasks.
    Standstill = intf::aud_rule_AUD_STANDSTILL,
    /// A fault of kernel mode at an address of user mode, on an RT CPU.
    KernelFault = intf::aud_rule_AUD_FAULT,
    /// do_exit() on an RT CPU.
    Exit = intf::aud_rule_AUD_EXIT,
    /// exit_mmap() on an RT CPU.
    ExitMmap = intf::aud_rule_AUD_EXIT_MMAP,
    /// The frame for a signal's handler is made on an RT CPU.
    Signal = intf::aud_rule_AUD_SIGNAL,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Idle,
        Self::IdleRt,
        Self::Standstill,
        Self::KernelFault,
        Self::Exit,
        Self::ExitMmap,
        Self::Signal,
    ];

    /// Its name, a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::IdleRt => "idle_rt",
            Self::Standstill => "standstill",
            Self::KernelFault => "kernel_fault",
            Self::Exit => "exit",
            Self::ExitMmap => "exit_mmap",
            Self::Signal => "signal",
        }
    }

    /// The rule of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == name)
    }
}

/// What was found of the tasks of one name.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule that was broken.
    pub rule: Rule,
    /// How often; a wait counts once.
    pub times: u64,
    /// Name of the tasks.
    pub comm: String,
    /// The task that waited longest, or was seen last.
    pub pid: u32,
    /// Where: the idle CPU, the RT CPU, or the CPU in whose run queue the task stood still.
    pub cpu: u32,
    /// Its wait, if the rule is about one.
    pub waited: Duration,
    /// CPUs that it could use.
    pub mask: Cpus,
    /// The id of the dispatch queue that it waits in, if the rule is about waits; 0: none.
    pub dsq: u64,
    /// If the rule is about waits: the CPU of the run queue, and the name of its current task.
    pub behind: (u32, String),
    /// The number of the call that it was inside, negative outside of calls; of
    /// [`Rule::Signal`] the signal.
    pub inside: i32,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, times, comm, pid, cpu, waited, mask, dsq, behind, inside } = self;
        write!(f, "{}: {times} x {comm} (pid {pid}, CPUs {mask}), CPU {cpu}", rule.name())?;
        if !waited.is_zero() {
            let ((at, curr), ms) = (behind, waited.as_millis());
            write!(f, ", up to {ms} ms in queue {dsq:#x}, on CPU {at} behind {curr}")?;
        }
        match u32::try_from(*inside) {
            Ok(signal) if *rule == Rule::Signal => write!(f, ", signal {signal}"),
            Ok(nr) => write!(f, ", inside {}", classes::name(nr)),
            Err(_) => Ok(()),
        }
    }
}

/// All that was seen of a scenario.
#[derive(Clone, Debug)]
pub struct Report {
    /// What broke a rule.
    pub findings: Vec<Finding>,
    /// Looks of the CPU that looked least often; 0: nothing was judged.
    pub looks: u32,
    /// By rule of waiting: looks and time of the longest wait, be it a finding or none.
    pub longest: Vec<(Rule, u32, Duration)>,
}

impl Report {
    /// For the output: a line with the looks and the longest waits, and one for each finding.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut text = format!("audit: {} looks of each CPU; longest wait", self.looks);
        for (rule, looks, time) in &self.longest {
            text += &format!(", {} {looks} looks ({} ms)", rule.name(), time.as_millis());
        }
        let findings = self.findings.iter().map(|f| format!("audit: {f}"));
        std::iter::once(text).chain(findings).collect()
    }
}

struct Auditor {
    skel: AuditorSkel<'static>,
    rt: Cpus,
    online: Cpus,
    _links: Vec<Link>,
}

thread_local! {
    /// That of the scenario that runs.
    static AUDITOR: RefCell<Option<Auditor>> = const { RefCell::new(None) };
}

/// Begins, with the RT CPUs of a scheduler that a scenario starts by other means than
/// [`crate::daemon::Daemon`].
///
/// # Errors
/// When the kernel does not take the programs.
pub fn begin(rt: Cpus) -> Result<()> {
    let auditor = Auditor::attach(rt).context("the auditor")?;
    // libbpf's probes of what the kernel can do are freed a little later: a scenario's inventory
    // of what there was before it must not have them
    until("libbpf's probes are gone", PATIENCE, || {
        Ok(!MapInfoIter::default().any(|m| m.name.to_string_lossy().starts_with("libbpf_")))
    })?;
    AUDITOR.with_borrow_mut(|a| *a = Some(auditor));
    Ok(())
}

/// Ends it; None if there is none.
///
/// # Errors
/// When its maps are not as they have to be.
pub fn end() -> Result<Option<Report>> {
    AUDITOR.with_borrow_mut(Option::take).map(|a| a.report()).transpose()
}

/// Learns the RT CPUs from arguments of scx_artis that is about to run. While it changes them,
/// nothing is judged.
pub fn will_run(args: &[&str]) {
    with(|a| match args {
        ["ctl", "rt-cpus", _] => a.set_rt(Cpus(0)),
        _ => match option(args) {
            Some(rt) => {
                a.rt = rt;
                a.set_rt(rt)
            }
            None => Ok(()),
        },
    });
}

/// Learns whether scx_artis did what these arguments ask for.
pub fn has_run(args: &[&str], done: bool) {
    with(|a| {
        if let ["ctl", "rt-cpus", list] = args {
            if done && let Ok(rt) = list.parse() {
                a.rt = rt;
            }
            a.set_rt(a.rt)?;
        }
        Ok(())
    });
}

fn with(what: impl FnOnce(&mut Auditor) -> Result<()>) {
    AUDITOR.with_borrow_mut(|a| {
        if let Some(Err(e)) = a.as_mut().map(what) {
            eprintln!("the auditor: {e:#}");
        }
    });
}

/// The RT CPUs that these arguments name.
fn option(args: &[&str]) -> Option<Cpus> {
    let at = args.iter().position(|a| *a == "--rt-cpus")?;
    args.get(at + 1)?.parse().ok()
}

impl Auditor {
    fn attach(rt: Cpus) -> Result<Self> {
        let online = Cpus::online()?;
        ensure!(online.last()? < intf::aud_limits_AUD_CPUS, "too many CPUs: {online}");
        let period = LOOK * u32::try_from(online.iter().count())?;
        let looks_in = |time: Duration| u32::try_from(time.as_nanos() / period.as_nanos());
        let mut skel = skeleton::attach(AuditorSkelBuilder::default(), |open| {
            let ro = open.maps.rodata_data.as_deref_mut().context("no rodata")?;
            for (to, from) in ro.ops_prefix.iter_mut().zip(guest::ops_prefix().bytes()) {
                *to = from.try_into()?;
            }
            ro.idle_looks = looks_in(IDLE)?;
            ro.standstill_looks = looks_in(STANDSTILL)?;
            ro.computes_ns = COMPUTES.as_nanos().try_into()?;
            ro.grace_ns = GRACE.as_nanos().try_into()?;
            Ok(())
        })?;
        // an event that comes more often than this between two ticks is stopped until the next tick,
        // and idle CPUs have none
        guest::write("/proc/sys/kernel/perf_event_max_sample_rate", "1000000000")?;
        let mut links = vec![
            skel.progs.aud_changes.attach_kprobe_multi_with_opts(changes(false))?,
            skel.progs.aud_changed.attach_kprobe_multi_with_opts(changes(true))?,
        ];
        for cpu in online.iter() {
            // also while the CPU is idle
            let clock = software(PERF_COUNT_SW_CPU_CLOCK, cpu, period.as_nanos().try_into()?)?;
            links.push(skel.progs.look.attach_perf_event(clock.as_raw_fd())?);
            std::mem::forget(clock); // the link closes it
        }
        let bss = skel.maps.bss_data.as_deref_mut().context("no data")?;
        shared::set(&mut bss.online_mask, online.0);
        let mut auditor = Self { skel, rt, online, _links: links };
        auditor.set_rt(rt)?;
        Ok(auditor)
    }

    /// The empty set: they are not known.
    fn set_rt(&mut self, rt: Cpus) -> Result<()> {
        let bss = self.skel.maps.bss_data.as_deref_mut().context("no data")?;
        let now_ns = crate::work::monotonic_ns()?;
        if rt.0 != bss.rt_mask {
            shared::set(&mut bss.era_ns, now_ns);
            shared::set(&mut bss.rt_mask, rt.0);
            let era = bss.era.wrapping_add(1);
            shared::set(&mut bss.era, era);
        }
        Ok(())
    }

    fn report(self) -> Result<Report> {
        let bss = self.skel.maps.bss_data.as_deref().context("no data")?;
        let waits = [Rule::Idle, Rule::IdleRt, Rule::Standstill];
        let longest = waits.map(|rule| {
            let most = &bss.most[rule as usize];
            (rule, most.looks, Duration::from_nanos(most.ns))
        });
        let looks = self.online.iter().map(|cpu| bss.cpus[cpu as usize].looks).min();
        let map = &self.skel.maps.findings;
        let mut findings = Vec::new();
        for key in map.keys() {
            let Some(value) = map.lookup(&key, MapFlags::ANY)? else { continue };
            findings.push(finding(&key, &value)?);
        }
        findings.sort_by_key(|f| (f.rule, std::cmp::Reverse(f.times)));
        Ok(Report { findings, looks: looks.unwrap_or(0), longest: longest.to_vec() })
    }
}

/// The begin of a change of a task, or its end.
fn changes(retprobe: bool) -> KprobeMultiOpts {
    let symbols = CHANGES.map(String::from).to_vec();
    KprobeMultiOpts { symbols, retprobe, ..Default::default() }
}

/// The bytes of struct aud_key and struct aud_finding.
fn finding(key: &[u8], value: &[u8]) -> Result<Finding> {
    ensure!(
        key.len() == size_of::<intf::aud_key>() && value.len() == size_of::<intf::aud_finding>(),
        "the auditor's map is of another size"
    );
    let word =
        |b: &[u8], i: usize| -> Result<u32> { Ok(u32::from_ne_bytes(b[i..i + 4].try_into()?)) };
    let long = |i: usize| -> Result<u64> { Ok(u64::from_ne_bytes(value[i..i + 8].try_into()?)) };
    let number = word(key, 0)?;
    let rule = Rule::ALL.into_iter().find(|r| *r as u32 == number);
    let text = |b: &[u8]| {
        String::from_utf8_lossy(b.split(|b| *b == 0).next().unwrap_or_default()).into_owned()
    };
    Ok(Finding {
        rule: rule.with_context(|| format!("rule {number}"))?,
        comm: text(&key[4..]),
        times: long(0)?,
        waited: Duration::from_nanos(long(8)?),
        mask: Cpus(long(16)?),
        dsq: long(24)?,
        pid: word(value, 32)?,
        cpu: word(value, 36)?,
        inside: word(value, 40)?.cast_signed(),
        behind: (word(value, 44)?, text(&value[48..])),
    })
}

#[cfg(test)]
mod tests {
    use super::{Cpus, option};

    #[test]
    fn rt_cpus_are_read_from_the_arguments() {
        assert_eq!(option(&["--adopt", "--rt-cpus", "2-3"]), Some(Cpus(0b1100)));
        assert_eq!(option(&["--rt-cpus"]), None);
        assert_eq!(option(&["ctl", "get", "predict-c-us"]), None);
    }
}
