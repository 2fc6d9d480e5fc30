// SPDX-License-Identifier: GPL-2.0-only
//! The observer of locks (observer/locks.bpf.c): which ones RT CPUs wait for,
//! and for how long others hold theirs.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs;

use anyhow::{Context, Result, ensure};
use libbpf_rs::skel::Skel;
use libbpf_rs::{MapCore, MapFlags, ProgramInput};

use crate::cpus::Cpus;
use crate::shared;
use crate::skeleton;
use crate::times::{Times, long, word};

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/locks_skel.rs"));
}
#[allow(missing_docs, dead_code, non_camel_case_types, non_upper_case_globals, clippy::all)]
#[allow(clippy::undocumented_unsafe_blocks)]
mod intf {
    include!(concat!(env!("OUT_DIR"), "/locks_intf.rs"));
}
use skel::{LocksSkel, LocksSkelBuilder};

const FRAMES: usize = intf::locks_limits_LOCKS_FRAMES as usize;
/// Callers that a row names, the inner one first.
const CALLERS: usize = 3;

/// What happened at one lock, from one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// "wait", "sleep" or "hold".
    pub what: &'static str,
    /// The lock, from the point of view of the RT CPU.
    pub lock: String,
    /// Who waited or held.
    pub who: String,
    /// Functions, the inner one first, joined by " < ".
    pub callers: String,
    /// How long.
    pub times: Times,
}

/// Tab-separated, for awk: what, lock, who, callers, times, sum, median, 99 %, maximum (ns).
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}\t{}\t{}\t{}", self.what, self.lock, self.who, self.callers, self.times)
    }
}

/// The attached programs.
pub struct Observer {
    skel: LocksSkel<'static>,
    rt: Cpus,
}

impl Observer {
    /// Loads and attaches; counts nothing yet. With `holds` also the holders of locks, at the
    /// cost of a probe at each spin lock that any CPU takes.
    pub fn attach(rt: Cpus, holds: bool) -> Result<Self> {
        let mut skel = skeleton::load(LocksSkelBuilder::default(), |open| {
            let ro = open.maps.rodata_data.as_deref_mut().context("the observer has no rodata")?;
            ro.rt_mask = rt.0;
            ro.nr_cpus = Cpus::online()?.last()? + 1;
            let progs = &mut open.progs;
            for p in [&mut progs.hold_begins, &mut progs.hold_tried, &mut progs.hold_ends] {
                p.set_autoload(holds);
            }
            Ok(())
        })?;
        let out = skel.progs.locks_of_cpus.test_run(ProgramInput::default())?;
        ensure!(out.return_value == 0, "the observer does not know the runqueues");
        skel.attach().context("attach the observer")?;
        Ok(Self { skel, rt })
    }

    /// Counts for so long and says what was seen, a row to a line, and how much was lost.
    pub fn report(&mut self, secs: f64) -> Result<String> {
        let rows = self.watch(secs)?;
        let mut text = format!("secs\t{secs}\n");
        for row in rows {
            writeln!(text, "{row}")?;
        }
        writeln!(text, "lost\t{}", self.bss()?.lost)?;
        Ok(text)
    }

    /// Counts for so long. What a row adds up has the same lock, holder and callers.
    pub fn watch(&mut self, secs: f64) -> Result<Vec<Row>> {
        let keys: Vec<Vec<u8>> = self.skel.maps.places.keys().collect();
        for k in keys {
            self.skel.maps.places.delete(&k).context("forget a place")?;
        }
        self.set_counting(1)?;
        crate::guest::pause(secs);
        self.set_counting(0)?;
        self.rows()
    }

    fn bss(&mut self) -> Result<&mut skel::types::bss> {
        self.skel.maps.bss_data.as_deref_mut().context("the observer has no data")
    }

    fn set_counting(&mut self, on: u32) -> Result<()> {
        shared::set(&mut self.bss()?.counting, on);
        Ok(())
    }

    fn rows(&self) -> Result<Vec<Row>> {
        let map = &self.skel.maps.places;
        // each time: the scheduler's programs come and go
        let names = Names::read()?;
        let mut rows: BTreeMap<(&str, String, String, String), Row> = BTreeMap::new();
        for key in map.keys() {
            let Some(value) = map.lookup(&key, MapFlags::ANY)? else { continue };
            let (place, times) = (Place::parse(&key)?, Times::parse(&value)?);
            let frames = names.callers(&place.ip);
            let what = place.what()?;
            let lock = self.lock(&place, frames.first().map_or("", String::as_str), &names);
            let who = self.who(&place);
            let callers = frames[..frames.len().min(CALLERS)].join(" < ");
            rows.entry((what, lock.clone(), who.clone(), callers.clone()))
                .or_insert_with(|| Row { what, lock, who, callers, times: Times::default() })
                .times
                .add(&times);
        }
        let mut rows: Vec<Row> = rows.into_values().collect();
        rows.sort_by_key(|r| std::cmp::Reverse(r.times.times));
        Ok(rows)
    }

    fn cpu(&self, cpu: u64, own: u32) -> &'static str {
        match () {
            () if cpu == u64::from(own) => "its own CPU",
            () if self.is_rt(cpu) => "another RT CPU",
            () => "an NRT CPU",
        }
    }

    fn is_rt(&self, cpu: u64) -> bool {
        cpu < 64 && self.rt.0 >> cpu & 1 == 1
    }

    fn lock(&self, p: &Place, caller: &str, names: &Names) -> String {
        match p.kind {
            // holds: of an RT CPU's lock, by whom `who` tells
            intf::lock_kind_LOCK_RQ if p.what == intf::lock_what_LOCK_HOLD => {
                "runqueue of an RT CPU".into()
            }
            intf::lock_kind_LOCK_RQ => format!("runqueue of {}", self.cpu(p.which, p.cpu)),
            intf::lock_kind_LOCK_DSQ_LOCAL => {
                format!("local queue of {}", self.cpu(p.which, p.cpu))
            }
            intf::lock_kind_LOCK_DSQ => match own_queue_of(p.which) {
                Some(cpu) if self.is_rt(cpu) => "own queue of an RT CPU".into(),
                Some(_) => "own queue of an NRT CPU".into(),
                None if p.which >> 16 == 2 => "queue that NRT CPUs share".into(),
                None => format!("queue {:#x}", p.which),
            },
            _ if caller == "try_to_wake_up" => "pi_lock".into(),
            _ => names.data(p.which).unwrap_or_else(|| "another lock".into()),
        }
    }

    fn who(&self, p: &Place) -> String {
        let who = match p.who {
            intf::lock_who_LOCK_BY_KTHREAD => "kernel thread",
            intf::lock_who_LOCK_BY_REALTIME => "real-time task",
            intf::lock_who_LOCK_BY_IDLE => "idle",
            _ => "task",
        };
        if p.what != intf::lock_what_LOCK_HOLD {
            return who.into();
        }
        let own = p.kind == intf::lock_kind_LOCK_RQ && p.which == u64::from(p.cpu);
        let at = match () {
            () if own => "that CPU",
            () if self.is_rt(u64::from(p.cpu)) => "an RT CPU",
            () => "an NRT CPU",
        };
        at.into()
    }
}

/// The CPU whose own queue that is, by the ids of scx_artis (src/bpf/ledger/cpu.bpf.h).
fn own_queue_of(id: u64) -> Option<u64> {
    (id >> 16 == 1).then_some(id & 0xffff)
}

struct Place {
    what: u32,
    kind: u32,
    which: u64,
    who: u32,
    cpu: u32,
    ip: Vec<u64>,
}

impl Place {
    /// The bytes of struct lock_place.
    fn parse(b: &[u8]) -> Result<Self> {
        ensure!(b.len() == size_of::<intf::lock_place>(), "a key of another size");
        Ok(Self {
            what: word(b, 0)?,
            kind: word(b, 4)?,
            which: long(b, 8)?,
            who: word(b, 16)?,
            cpu: word(b, 20)?,
            ip: (0..FRAMES).map(|i| long(b, 24 + 8 * i)).collect::<Result<_>>()?,
        })
    }

    fn what(&self) -> Result<&'static str> {
        Ok(match self.what {
            intf::lock_what_LOCK_WAIT => "wait",
            intf::lock_what_LOCK_SLEEP => "sleep",
            intf::lock_what_LOCK_HOLD => "hold",
            other => anyhow::bail!("the observer noted a {other}"),
        })
    }
}

/// The kernel's symbols by address, with a mark at variables.
struct Names(BTreeMap<u64, (String, bool)>);

impl Names {
    fn read() -> Result<Self> {
        let text = fs::read_to_string("/proc/kallsyms").context("/proc/kallsyms")?;
        let mut all = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(at), Some(kind), Some(name)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let data = kind.eq_ignore_ascii_case("d") || kind.eq_ignore_ascii_case("b");
            all.insert(u64::from_str_radix(at, 16)?, (name.to_string(), data));
        }
        ensure!(all.len() > 1, "/proc/kallsyms hides the addresses: root is needed");
        Ok(Self(all))
    }

    fn at(&self, address: u64) -> Option<&(String, bool)> {
        self.0.range(..=address).next_back().map(|(_, named)| named)
    }

    /// The variable there, if it is a static one.
    fn data(&self, address: u64) -> Option<String> {
        self.at(address).filter(|(_, data)| *data).map(|(name, _)| name.clone())
    }

    /// The functions outside of the observer and of the locks themselves, inner ones first.
    fn callers(&self, ip: &[u64]) -> Vec<String> {
        ip.iter()
            .take_while(|ip| **ip != 0)
            .filter_map(|ip| self.at(*ip))
            .map(|(name, _)| plain(name))
            .skip_while(|name| is_inner(name))
            .filter(|name| !name.starts_with("bpf_trampoline_"))
            .collect()
    }
}

/// Without what the compiler and BPF put around a name.
fn plain(name: &str) -> String {
    let name = name.strip_prefix("bpf_prog_").map_or(name, |rest| {
        // a tag of 16 digits comes before the name
        rest.get(17..).unwrap_or(rest)
    });
    name.split('.').next().unwrap_or(name).to_string()
}

/// Of the observer, or of the lock itself?
fn is_inner(name: &str) -> bool {
    const INNER: [&str; 18] = [
        "note",
        "bpf_tra",
        "__traceiter_",
        "__bpf_trace_",
        "rwsem_",
        "down_",
        "__down_",
        "mutex_",
        "__mutex_",
        "percpu_",
        "native_queued_spin_",
        "queued_",
        "raw_spin_rq_",
        "_raw_",
        "wait_begins",
        "wait_ends",
        "hold_ends",
        "sleep_ends",
    ];
    INNER.iter().any(|p| name.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_beyond_the_lock() {
        let at = |i: u64, name: &str| (i, (name.to_string(), false));
        let names = Names(BTreeMap::from([
            at(10, "bpf_prog_0123456789abcdef_wait_ends"),
            at(20, "bpf_trampoline_6442"),
            at(30, "native_queued_spin_lock_slowpath"),
            at(40, "_raw_spin_lock"),
            at(50, "consume_dispatch_q"),
            at(60, "bpf_prog_fedcba9876543210_artis_dispatch"),
            at(70, "balance_one.isra.0"),
        ]));
        let ip = [11, 21, 31, 41, 51, 61, 71, 0, 11];
        let callers = names.callers(&ip);
        assert_eq!(callers, ["consume_dispatch_q", "artis_dispatch", "balance_one"]);
    }
}
