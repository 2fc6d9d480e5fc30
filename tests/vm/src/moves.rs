// SPDX-License-Identifier: GPL-2.0-only
//! The observer of moves (observer/moves.bpf.c): who comes to RT CPUs, for how long, and how
//! they leave.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use libbpf_rs::RingBufferBuilder;
use scx_stats::prelude::StatsClient;
use serde_json::Value;

use crate::classes;
use crate::cpus::Cpus;
use crate::shared;
use crate::skeleton;
use crate::times::{Times, long, word};

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/moves_skel.rs"));
}
#[allow(missing_docs, dead_code, non_camel_case_types, non_upper_case_globals, clippy::all)]
#[allow(clippy::undocumented_unsafe_blocks)]
mod intf {
    include!(concat!(env!("OUT_DIR"), "/moves_intf.rs"));
}
use skel::{MovesSkel, MovesSkelBuilder};

/// Names of enum moves_what, in its order.
const WHAT: [&str; intf::moves_what_MOVES_NR as usize] =
    ["stay", "left", "rt_side", "put", "kick", "to_idle", "to_busy", "rt_idle", "body"];
/// Of evicted tasks, the time on the RT CPU from the entry into the kernel on.
pub const RT_SIDE: usize = intf::moves_what_MOVES_RT_SIDE as usize;
/// Of calls that returned on the RT CPU, the time from their entry on.
pub const BODY: usize = intf::moves_what_MOVES_BODY as usize;

/// Where a scheduler tells its own counters.
const STATS: &str = "/var/run/scx/root/stats";

/// Stays on an RT CPU that are counted as wasted up to this own run time, µs: yardsticks that
/// are the same whatever C the scheduler has.
const WASTED_US: [u64; 4] = [500, 1_000, 2_000, 4_000];

/// A waiting task is reconsidered so often, and a computing one after so much run time: the
/// scheduler's balance_ns and slice_nrt_ns, in whose places the replay asks its rules.
const PLACE_WAITING_NS: u64 = 4_000_000;
const PLACE_RUNNING_NS: u64 = 3_000_000;

#[derive(Clone, Copy)]
struct Event {
    tid: u32,
    now_ns: u64,
    run_ns: u64,
    what: u32,
    nr: u32,
}

impl Event {
    /// The bytes of struct moves_event.
    fn parse(b: &[u8]) -> Result<Self> {
        let last = word(b, 20)?;
        let (what, nr) = (last & 0xffff, last >> 16);
        Ok(Self { now_ns: long(b, 0)?, run_ns: long(b, 8)?, tid: word(b, 16)?, what, nr })
    }
}

/// The attached programs.
pub struct Observer {
    skel: MovesSkel<'static>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Observer {
    /// Loads and attaches; counts nothing yet. With `tracing` it records what lollobrigida's
    /// tasks do.
    pub fn attach(rt: Cpus, tracing: bool) -> Result<Self> {
        let skel = skeleton::attach(MovesSkelBuilder::default(), |open| {
            let ro = open.maps.rodata_data.as_deref_mut().context("the observer has no rodata")?;
            ro.rt_mask = rt.0;
            ro.nrt_mask = Cpus::online()?.without(rt).0;
            ro.tracing = tracing.into();
            Ok(())
        })?;
        Ok(Self { skel, events: Arc::default() })
    }

    /// Counts for so long and says what was seen, a line of words separated by tabs for each
    /// kind of time (name, times, sum, median, 99 %, maximum, ns), for the moves, and for how
    /// many of the stays were not longer than some run times.
    pub fn report(&mut self, secs: f64) -> Result<String> {
        // on a busy machine it may take longer
        let secs = self.watch(secs)?;
        let all = self.times()?;
        let bss = self.skel.maps.bss_data.as_deref_mut().context("the observer has no data")?;
        let mut text = format!("secs\t{secs}\nmoves\t{}\n", bss.moves);
        for (name, times) in WHAT.iter().zip(&all) {
            writeln!(text, "{name}\t{times}")?;
            if *name == "stay" {
                for us in WASTED_US {
                    writeln!(text, "wasted_{us}us\t{}", times.up_to(us * 1_000))?;
                }
            }
        }
        writeln!(text, "lost\t{}", bss.lost)?;
        if Path::new(STATS).exists() {
            let mut client = StatsClient::new().connect(Some(10_000)).context(STATS)?;
            let args = vec![("target".to_string(), "top".to_string())];
            let stats: Value = client.request("stats", args).context("ask for statistics")?;
            for counter in ["moved_rt", "wasted", "evictions"] {
                let n = stats.get(counter).and_then(Value::as_u64).unwrap_or_default();
                writeln!(text, "counter_{counter}\t{n}")?;
            }
        }
        Ok(text)
    }

    /// The times of each kind, in the order of enum moves_what, since the start; up to a stop, or
    /// up to now.
    pub fn times(&self) -> Result<Vec<Times>> {
        let bss = self.skel.maps.bss_data.as_deref().context("the observer has no data")?;
        let parse = |seen: &skel::types::times| {
            // SAFETY: a valid, aligned struct of ours; volatile, since the program may still count
            let seen = unsafe { std::ptr::from_ref(seen).read_volatile() };
            // SAFETY: plain numbers, as big as the slice says
            let bytes = unsafe {
                std::slice::from_raw_parts(std::ptr::from_ref(&seen).cast(), size_of_val(&seen))
            };
            Times::parse(bytes)
        };
        bss.seen.iter().map(parse).collect()
    }

    /// What the traced tasks did since the last call, as tests/policy/examples/replay.rs reads
    /// it: lines "task,run_ns,clock_ns,attempt|run|place". Calls that do not endanger are none.
    pub fn trace(&self) -> Result<String> {
        let classes = classes::table(false)?;
        let events =
            std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner));
        // by the clock: those of one moment as they came
        let mut lines: Vec<(u64, String)> = Vec::new();
        let mut before: BTreeMap<u32, Event> = BTreeMap::new();
        for e in events {
            let mut line = |run_ns: u64, now_ns: u64, what: &str| {
                lines.push((now_ns, format!("{},{run_ns},{now_ns},{what}", e.tid)));
            };
            if let Some(last) = before.insert(e.tid, e) {
                let span_ns = e.now_ns.saturating_sub(last.now_ns);
                if last.what == intf::moves_event_what_MOVES_WAITS {
                    for at in (0..span_ns).step_by(PLACE_WAITING_NS as usize) {
                        line(last.run_ns, last.now_ns + at, "place");
                    }
                } else if last.what != intf::moves_event_what_MOVES_SLEEPS {
                    let ran_ns = e.run_ns.saturating_sub(last.run_ns).min(span_ns);
                    for at in (0..ran_ns).step_by(PLACE_RUNNING_NS as usize).skip(1) {
                        line(last.run_ns + at, last.now_ns + at, "run");
                        line(last.run_ns + at, last.now_ns + at, "place");
                    }
                }
            }
            match e.what {
                intf::moves_event_what_MOVES_BEGINS => (),
                intf::moves_event_what_MOVES_ENTERS => {
                    let class = classes.get(e.nr as usize).copied().unwrap_or_default();
                    if class == 0 {
                        line(e.run_ns, e.now_ns, "attempt");
                    }
                }
                _ => line(e.run_ns, e.now_ns, "run"),
            }
        }
        lines.sort_by_key(|(now_ns, _)| *now_ns);
        let text = lines.into_iter().map(|(_, line)| line + "\n");
        Ok("# task,run_ns,clock_ns,event\n".to_string() + &text.collect::<String>())
    }

    /// Counts anew from now on.
    pub fn start(&mut self) -> Result<()> {
        let bss = self.skel.maps.bss_data.as_deref_mut().context("the observer has no data")?;
        bss.seen.fill_with(Default::default);
        bss.idle_since_ns.fill(0);
        bss.moves = 0;
        self.set_counting(1)
    }

    /// Counts no more.
    pub fn stop(&mut self) -> Result<()> {
        self.set_counting(0)
    }

    fn watch(&mut self, secs: f64) -> Result<f64> {
        self.start()?;
        let into = Arc::clone(&self.events);
        let mut ring = RingBufferBuilder::new();
        ring.add(&self.skel.maps.events, move |bytes| {
            if let Ok(event) = Event::parse(bytes) {
                into.lock().unwrap_or_else(PoisonError::into_inner).push(event);
            }
            0
        })?;
        let ring = ring.build()?;
        let began = Instant::now();
        let end = began + Duration::from_secs_f64(secs);
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            // seldom: whoever looks is a task that enters the kernel itself
            std::thread::sleep(left.min(Duration::from_millis(500)));
            ring.consume()?;
        }
        self.stop()?;
        Ok(began.elapsed().as_secs_f64())
    }

    fn set_counting(&mut self, on: u32) -> Result<()> {
        let bss = self.skel.maps.bss_data.as_deref_mut().context("the observer has no data")?;
        shared::set(&mut bss.counting, on);
        Ok(())
    }
}
