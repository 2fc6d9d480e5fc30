// SPDX-License-Identifier: GPL-2.0-only
//! The observer that is not the scheduler (observer/observer.bpf.c): where do
//! the bodies of system calls and user page faults of movable, non-real-time
//! tasks run?

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{MapCore, MapFlags};
use serde::Serialize;

use crate::classes;
use crate::cpus::Cpus;
use crate::shared;
use crate::skeleton;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/observer_skel.rs"));
}
#[allow(missing_docs, dead_code, non_camel_case_types, non_upper_case_globals, clippy::all)]
#[allow(clippy::undocumented_unsafe_blocks)]
mod intf {
    include!(concat!(env!("OUT_DIR"), "/observer_intf.rs"));
}
use skel::{ObserverSkel, ObserverSkelBuilder};

/// Where the preemptirq tracepoints are, on kernels that have them.
const PREEMPT_EVENTS: &str = "/sys/kernel/tracing/events/preemptirq/preempt_disable";

/// What happened on the CPUs of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// Bodies of endangering calls that began.
    pub endangering: u64,
    /// Bodies of other calls that began.
    pub other: u64,
    /// Faults of user mode that were handled.
    pub faults: u64,
    /// Times that a task inside an endangering body was switched in (RT CPUs only).
    pub resumed: u64,
    /// Those of them that were inside a fault (RT CPUs only).
    pub resumed_faults: u64,
    /// Preempt-off sections inside endangering bodies (RT CPUs only).
    pub sections: u64,
    /// Endangering bodies of tasks that may run on no NRT CPU.
    pub pinned: u64,
    /// Endangering bodies of real-time tasks.
    pub realtime: u64,
}

/// Who did on an RT CPU what must not be there.
#[derive(Clone, Debug, Serialize)]
pub struct Offender {
    /// How often.
    pub times: u64,
    /// What it was seen at.
    pub cause: &'static str,
    /// The system call, or a fault.
    pub call: String,
    /// Name of the thread.
    pub comm: String,
    /// Its id, the last time.
    pub pid: u32,
    /// Where, the last time.
    pub cpu: u32,
}

/// What was seen in a time span.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Its length.
    pub secs: f64,
    /// On RT CPUs.
    pub rt: Seen,
    /// On all others.
    pub nrt: Seen,
    /// The worst first, at most 20.
    pub offenders: Vec<Offender>,
}

impl Report {
    /// Bodies and faults on RT CPUs that must not be there.
    #[must_use]
    pub fn offences(&self) -> u64 {
        self.rt.endangering + self.rt.faults + self.rt.resumed
    }

    /// Fails if a body or a fault began on an RT CPU, or a task was resumed inside one there.
    pub fn ensure_clean(&self) -> Result<()> {
        ensure!(
            self.offences() == 0,
            "on RT CPUs {} bodies, {} faults, {} resumed\n{}",
            self.rt.endangering,
            self.rt.faults,
            self.rt.resumed,
            self.culprits()
        );
        Ok(())
    }

    /// The offenders, a line each.
    #[must_use]
    pub fn culprits(&self) -> String {
        self.offenders.iter().fold(String::new(), |mut s, o| {
            let _ = writeln!(
                s,
                "  {:>7} x {} {} by {} (last: pid {} on CPU {})",
                o.times, o.cause, o.call, o.comm, o.pid, o.cpu
            );
            s
        })
    }
}

/// The attached programs. They count from [`Observer::begin`] on.
pub struct Observer {
    skel: ObserverSkel<'static>,
    rt: Cpus,
    began: Instant,
    missed_before: u64,
}

impl Observer {
    /// Loads and attaches; counts nothing yet.
    pub fn attach(rt: Cpus, strict: bool) -> Result<Self> {
        Self::attach_with(rt, strict, false)
    }

    /// The same, and with `sections` the preempt-off sections too.
    pub fn attach_with(rt: Cpus, strict: bool, sections: bool) -> Result<Self> {
        let skel = skeleton::attach(ObserverSkelBuilder::default(), |open| {
            let ro = open.maps.rodata_data.as_deref_mut().context("the observer has no rodata")?;
            ro.poll_fds_max = classes::POLL_FDS_MAX;
            ro.call_class = classes::table(strict)?;
            if sections {
                ensure!(has_preempt_events(), "this kernel has no preemptirq tracepoints");
                open.progs.section.set_autoload(true);
            }
            Ok(())
        })
        .context("the observer (does the kernel have CONFIG_FPROBE?)")?;
        let mut observer = Self { skel, rt, began: Instant::now(), missed_before: 0 };
        observer.set_rt(rt)?;
        Ok(observer)
    }

    /// Takes these for the RT CPUs from the next [`Observer::begin`] on.
    pub fn set_rt(&mut self, rt: Cpus) -> Result<()> {
        self.set_counting(0)?;
        let nrt = Cpus::online()?.without(rt);
        let bss = self.bss()?;
        shared::set(&mut bss.rt_mask, rt.0);
        shared::set(&mut bss.nrt_mask, nrt.0);
        self.rt = rt;
        Ok(())
    }

    /// Forgets all and counts from now on.
    pub fn begin(&mut self) -> Result<()> {
        self.set_counting(0)?;
        let offenders = &self.skel.maps.offenders;
        let keys: Vec<Vec<u8>> = offenders.keys().collect();
        for k in keys {
            offenders.delete(&k).context("forget an offender")?;
        }
        let bss = self.bss()?;
        bss.seen.fill_with(Default::default);
        self.missed_before = self.missed()?;
        self.began = Instant::now();
        self.set_counting(1)
    }

    /// Stops counting; an error if the programs that see calls and faults were left out for one
    /// because another ran already on that CPU: that one may have been an offence.
    pub fn end(&mut self) -> Result<Report> {
        let secs = self.began.elapsed().as_secs_f64();
        self.set_counting(0)?;
        let missed = self.missed()? - self.missed_before;
        ensure!(
            missed == 0,
            "the observer missed {missed} calls or faults: what it has seen shows nothing"
        );
        let rt_cpus = self.rt;
        let (mut rt, mut nrt) = (Seen::default(), Seen::default());
        for (cpu, c) in (0u32..).zip(self.bss()?.seen.iter()) {
            let to = if rt_cpus.0 >> cpu & 1 == 1 { &mut rt } else { &mut nrt };
            to.endangering += c.endangering;
            to.other += c.other;
            to.faults += c.faults;
            to.resumed += c.resumed;
            to.resumed_faults += c.resumed_faults;
            to.sections += c.sections;
            to.pinned += c.pinned;
            to.realtime += c.realtime;
        }
        Ok(Report { secs, rt, nrt, offenders: self.offenders()? })
    }

    /// Counts for so long.
    pub fn watch(&mut self, secs: f64) -> Result<Report> {
        self.begin()?;
        crate::guest::pause(secs);
        self.end()
    }

    fn bss(&mut self) -> Result<&mut skel::types::bss> {
        self.skel.maps.bss_data.as_deref_mut().context("the observer has no data")
    }

    fn set_counting(&mut self, on: u32) -> Result<()> {
        shared::set(&mut self.bss()?.counting, on);
        Ok(())
    }

    fn missed(&self) -> Result<u64> {
        let progs = &self.skel.progs;
        Ok(misses(progs.body.name())? + misses(progs.fault.name())?)
    }

    fn offenders(&self) -> Result<Vec<Offender>> {
        let map = &self.skel.maps.offenders;
        let mut all = Vec::new();
        for key in map.keys() {
            let Some(value) = map.lookup(&key, MapFlags::ANY)? else { continue };
            all.push(offender(&key, &value)?);
        }
        all.sort_by_key(|o| std::cmp::Reverse(o.times));
        all.truncate(20);
        Ok(all)
    }
}

/// How often the kernel skipped a program because it ran on that CPU already.
fn misses(name: &OsStr) -> Result<u64> {
    let found = ProgInfoIter::default().find(|p| p.name == name);
    Ok(found.context("the kernel does not list the observer")?.recursion_misses)
}

/// The bytes of struct obs_offender and struct obs_offence.
fn offender(key: &[u8], value: &[u8]) -> Result<Offender> {
    ensure!(
        key.len() == size_of::<intf::obs_offender>()
            && value.len() == size_of::<intf::obs_offence>(),
        "the observer's map is of another size"
    );
    let word =
        |b: &[u8], i: usize| -> Result<u32> { Ok(u32::from_ne_bytes(b[i..i + 4].try_into()?)) };
    let call = match word(key, 4)? {
        intf::observer_limits_OBS_NR_FAULT => "a page fault".to_string(),
        nr => classes::name(nr),
    };
    let cause = match word(key, 0)? {
        intf::observer_cause_OBS_CAUSE_CALL => "body of",
        intf::observer_cause_OBS_CAUSE_RESUMED => "resumed inside",
        intf::observer_cause_OBS_CAUSE_RESUMED_BOOSTED => "resumed after a PI boost inside",
        intf::observer_cause_OBS_CAUSE_SECTION => "preempt off in",
        intf::observer_cause_OBS_CAUSE_FAULT_AGAIN => "second handling of",
        _ => "handling of",
    };
    let comm = key[8..].split(|b| *b == 0).next().unwrap_or_default();
    Ok(Offender {
        times: u64::from_ne_bytes(value[..8].try_into()?),
        cause,
        call,
        comm: String::from_utf8_lossy(comm).into_owned(),
        pid: word(value, 12)?,
        cpu: word(value, 8)?,
    })
}

/// Does this kernel have the preemptirq tracepoints?
#[must_use]
pub fn has_preempt_events() -> bool {
    Path::new(PREEMPT_EVENTS).exists()
}
