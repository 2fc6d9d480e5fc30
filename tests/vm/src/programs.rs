// SPDX-License-Identifier: GPL-2.0-only
//! The observer of BPF programs (observer/programs.bpf.c): how long each run of those of the
//! scheduler is.

use std::fmt::Write;
use std::os::fd::AsRawFd;

use anyhow::{Context, Result, ensure};
use libbpf_rs::query::{ProgInfoIter, ProgramInfo};
use libbpf_rs::skel::Skel;
use libbpf_rs::{Program, libbpf_sys};

use crate::guest::pause;
use crate::shared;
use crate::skeleton;
use crate::times::Times;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/programs_skel.rs"));
}
use skel::{ProgramsSkel, ProgramsSkelBuilder};

/// Those on the way of switches, wake-ups and kernel entries.
const NAMES: [&str; 7] = [
    "artis_select_cpu",
    "artis_enqueue",
    "artis_dispatch",
    "artis_running",
    "artis_stopping",
    "artis_sys_enter",
    "artis_update_idle",
];
/// That of which runs that move a task from another CPU are told apart.
const MOVES: &str = "artis_dispatch";
/// The kernel keeps so many letters of a name.
const KEPT: usize = 15;

/// Input of artis_set_class (src/bpf/abi/task.h).
#[repr(C)]
#[derive(Default)]
struct SetClass {
    start_ticks: u64,
    tid: u32,
    rest: [u32; 5],
}

/// Has BPF make an NRT task of the one that has this thread id and began at `start_ticks`. Returns what
/// the program does: 0, or a negative error number.
///
/// # Errors
/// When the program is not loaded, or does not run.
pub fn make_nrt(tid: u32, start_ticks: u64) -> Result<i32> {
    let args = SetClass { start_ticks, tid, ..Default::default() };
    run("artis_set_class", args)
}

/// Has BPF kick all CPUs, so that each looks for a task.
///
/// # Errors
/// When the program is not loaded, or does not run.
pub fn look_again() -> Result<()> {
    run("artis_look_again", ()).map(drop)
}

/// Runs this program of the scheduler, by BPF_PROG_RUN. Returns what it does.
fn run<T>(name: &str, mut input: T) -> Result<i32> {
    // the kernel keeps the first letters of a name
    let kept = &name[..name.len().min(KEPT)];
    let named = |program: &ProgramInfo| program.name.to_string_lossy() == kept;
    let program = ProgInfoIter::default().find(named);
    let fd = Program::fd_from_id(program.with_context(|| format!("no {name} is loaded"))?.id)?;
    let size = size_of::<T>();
    let mut opts = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
        ctx_in: if size > 0 { (&raw mut input).cast() } else { std::ptr::null_mut() },
        ctx_size_in: size as _,
        ..Default::default()
    };
    // SAFETY: `input` is live, of the size that is told, and nothing else refers to it.
    let code = unsafe { libbpf_sys::bpf_prog_test_run_opts(fd.as_raw_fd(), &raw mut opts) };
    ensure!(code == 0, "{name} does not run: {code}");
    Ok(opts.retval.cast_signed())
}

/// Attached to the entry and the return of each of [`NAMES`] that is loaded.
pub struct Observer(Vec<(&'static str, ProgramsSkel<'static>)>);

impl Observer {
    /// Attaches; counts nothing yet.
    ///
    /// # Errors
    /// When no scheduler of ours is loaded, or the kernel does not take it.
    pub fn attach() -> Result<Self> {
        let mut all = Vec::new();
        for program in ProgInfoIter::default() {
            let kept = program.name.to_string_lossy();
            let is_it = |name: &&&str| name.get(..KEPT).unwrap_or(name) == kept;
            let mut named = NAMES.iter().filter(is_it);
            let Some(name) = named.next() else { continue };
            let fd = Program::fd_from_id(program.id)?;
            // two names may begin alike
            let attached = std::iter::once(name).chain(named).find_map(|name| {
                let mut skel = skeleton::load(ProgramsSkelBuilder::default(), |open| {
                    let to = Some((*name).to_owned());
                    open.progs.task_moves.set_autoload(*name == MOVES);
                    open.progs.run_begins.set_attach_target(fd.as_raw_fd(), to.clone())?;
                    Ok(open.progs.run_ends.set_attach_target(fd.as_raw_fd(), to)?)
                })
                .ok()?;
                skel.attach().ok()?;
                Some((*name, skel))
            });
            all.push(attached.with_context(|| format!("the observer does not attach to {kept}"))?);
        }
        ensure!(!all.is_empty(), "no program of scx_artis is loaded");
        Ok(Self(all))
    }

    /// Counts for so long. A line of words separated by tabs for each program: its name, runs in
    /// which the turn of the emulator's CPUs came to others, then of the other runs their number,
    /// sum, median, 99 %, longest and 99.9 %, ns. Of `artis_dispatch` also a line for the runs that moved a
    /// task from another CPU (`…:moving`).
    ///
    /// # Errors
    /// When what was counted cannot be read.
    pub fn report(&mut self, secs: f64) -> Result<String> {
        for on in [1, 0] {
            for (_, skel) in &mut self.0 {
                let bss = skel.maps.bss_data.as_deref_mut().context("the observer has no data")?;
                if on == 1 {
                    bss.cpus.fill_with(Default::default);
                }
                shared::set(&mut bss.counting, on);
            }
            if on == 1 {
                pause(secs);
            }
        }
        let mut text = String::new();
        for (name, skel) in &self.0 {
            let bss = skel.maps.bss_data.as_deref().context("the observer has no data")?;
            let (mut runs, mut moving, mut turned) = (Times::default(), Times::default(), 0);
            for cpu in &bss.cpus {
                for (sum, t) in [(&mut runs, &cpu.runs), (&mut moving, &cpu.moving)] {
                    sum.add(&Times::of(t.times, t.sum_ns, t.max_ns, &t.buckets));
                }
                turned += cpu.turned;
            }
            writeln!(text, "{name}\t{turned}\t{runs}\t{}", runs.quantile_ns(0.999))?;
            if *name == MOVES {
                writeln!(text, "{name}:moving\t0\t{moving}")?;
            }
        }
        Ok(text)
    }
}
