// SPDX-License-Identifier: GPL-2.0-only
//! An ordinary user's process that claims by each attribute of its own to have been real time.

use std::fs;
use std::io;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use nix::unistd::{Gid, Uid, chown, setgid, setgroups, setuid};

use crate::policy::{EXT, Policy, gettid, start_ticks};

/// The user that forges: nobody.
pub const UID: u32 = 65534;
/// Where scx_artis has its records and their keeper pinned.
pub const PINNED: &str = "/sys/fs/bpf/scx_artis";
const NAMES: [&str; 3] = ["changes", "keeper", "aim"];
const VERSION: u32 = 2;
/// What is added to a slice of 3 ms, ns: until 2026-11-22 scx_artis read a policy and a priority
/// from it (1 to 99: SCHED_FIFO, 101 to 199: SCHED_RR).
const CODES: [u64; 6] = [1, 50, 99, 101, 150, 199];
const SLICE_NS: u64 = 3_000_000;

/// Drops all privilege, forges attributes in a thread for each code, and looks whether one of
/// these, or a child of theirs, has become a real-time task; each forks and executes meanwhile.
/// Calls `tell` after as many rounds as there are threads. Returns only with an error.
pub fn run(mut tell: impl FnMut()) -> Result<()> {
    setgroups(&[])?;
    setgid(Gid::from_raw(UID))?;
    setuid(Uid::from_raw(UID))?;
    let refused = Policy::new(libc::SCHED_FIFO, 1).set(0);
    ensure!(refused.is_err(), "control: uid {UID} may make itself SCHED_FIFO");
    let (done, rounds) = mpsc::channel();
    for code in CODES {
        let done = done.clone();
        std::thread::spawn(move || {
            let ended = forger(code, &done);
            let _ = done.send(ended);
        });
    }
    loop {
        for _ in CODES {
            rounds.recv().context("the forgers are gone")??;
        }
        tell();
    }
}

fn forger(code: u64, done: &mpsc::Sender<Result<()>>) -> Result<()> {
    let own = gettid();
    loop {
        // anew in each round: the scheduler may have given it another one meanwhile
        claim(code)?;
        ensure_ordinary(own, code)?;
        let mut child = Command::new("sleep").arg("0.4").stdin(Stdio::null()).spawn()?;
        while child.try_wait()?.is_none() {
            ensure_ordinary(child.id().cast_signed(), code)?;
            ensure_ordinary(own, code)?;
            std::thread::sleep(Duration::from_millis(5));
        }
        done.send(Ok(()))?;
    }
}

fn ensure_ordinary(tid: i32, code: u64) -> Result<()> {
    match Policy::of(tid)? {
        Some(now) if now.priority > 0 => bail!("code {code} has made task {tid} {now:?}"),
        _ => Ok(()),
    }
}

/// Has the caller look as the adopted task of this code did.
fn claim(code: u64) -> Result<()> {
    let attr = libc::sched_attr {
        size: u32::try_from(size_of::<libc::sched_attr>())?,
        sched_policy: EXT,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: SLICE_NS + code,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads as many bytes as attr.size says, which is that of its type.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    ensure!(done == 0, "SCHED_EXT with code {code}: {}", io::Error::last_os_error());
    Ok(())
}

/// Fills the map of records, so that there is no room for another one.
pub fn fill_records() -> Result<()> {
    let records = MapHandle::from_pinned_path(format!("{PINNED}/{}", NAMES[0]))?;
    let nothing = vec![0; records.value_size() as usize];
    // no task is at such an address
    for key in 1..=u64::from(records.max_entries()) {
        if records.update(&key.to_ne_bytes(), &nothing, MapFlags::ANY).is_ok() {
            continue;
        }
        let error = io::Error::last_os_error(); // libbpf sets errno
        ensure!(error.raw_os_error() == Some(libc::E2BIG), "record {key}: {error}");
        return Ok(());
    }
    bail!("control: the map of records is not full")
}

/// The task, by thread id and start in clock ticks, that the keeper of the records last aimed at.
pub fn aimed_at() -> Result<(i32, u64)> {
    let aim = MapHandle::from_pinned_path(format!("{PINNED}/{}", NAMES[2]))?;
    let value = aim.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?.context("no aim")?;
    let [tid @ .., _, _, _, _] = *value.first_chunk::<8>().context("a short aim")?;
    let start = *value.last_chunk::<8>().context("a short aim")?;
    Ok((i32::from_ne_bytes(tid), u64::from_ne_bytes(start)))
}

/// Marks the records as those of a scx_artis with a layout of them that is `by` versions newer.
pub fn newer_by(by: u32) -> Result<()> {
    let keeper = MapHandle::from_pinned_path(format!("{PINNED}/{}", NAMES[1]))?;
    let first = 0_u32.to_ne_bytes();
    let mut value = keeper.lookup(&first, MapFlags::ANY)?.context("no keeper")?;
    let version = value.first_chunk_mut().context("a short keeper")?;
    *version = (VERSION + by).to_ne_bytes();
    Ok(keeper.update(&first, &value, MapFlags::ANY)?)
}

/// Makes a process the keeper of the records, as scx_artis is (0: none is), and aims at this task.
pub fn aim_at(keeper: u32, tid: i32, start_ticks: u64) -> Result<()> {
    let keeper = [VERSION, keeper, 0, 0].map(u32::to_ne_bytes).concat();
    let aim = [u64::from(tid.cast_unsigned()), start_ticks].map(u64::to_ne_bytes).concat();
    for (name, value) in [(NAMES[1], keeper), (NAMES[2], aim)] {
        let map = MapHandle::from_pinned_path(format!("{PINNED}/{name}"))?;
        map.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY)?;
    }
    Ok(())
}

/// Maps as scx_artis pins them (src/bpf/abi/abi.h), in a directory of user [`UID`], with a record
/// that the process was SCHED_FIFO 99. Removed when dropped.
pub struct Squatter {
    maps: [MapHandle; 3],
}

impl Squatter {
    /// Pins them.
    pub fn new(pid: u32) -> Result<Self> {
        const KIND_ADOPTED: u32 = 1;
        let mut record = Vec::new();
        record.extend([pid, KIND_ADOPTED].map(u32::to_ne_bytes).concat());
        record.extend(start_ticks(pid.cast_signed())?.to_ne_bytes());
        record.extend([libc::SCHED_FIFO.cast_unsigned(), 99, 0, 0].map(u32::to_ne_bytes).concat());
        record.resize(record.len() + 1024 / 8, 0);
        let keeper = [VERSION, 0, 0, 0].map(u32::to_ne_bytes).concat();
        fs::create_dir(PINNED)?;
        chown(PINNED, Some(Uid::from_raw(UID)), None)?;
        let mut maps = [
            map(MapType::Hash, "changes", 8, record.len())?,
            map(MapType::Array, "keeper", 4, keeper.len())?,
            map(MapType::Array, "aim", 4, 16)?,
        ];
        maps[0].update(&1_u64.to_ne_bytes(), &record, MapFlags::ANY)?;
        maps[1].update(&0_u32.to_ne_bytes(), &keeper, MapFlags::ANY)?;
        for (map, name) in maps.iter_mut().zip(NAMES) {
            map.pin(format!("{PINNED}/{name}"))?;
        }
        Ok(Self { maps })
    }
}

impl Drop for Squatter {
    fn drop(&mut self) {
        for (map, name) in self.maps.iter_mut().zip(NAMES) {
            let _ = map.unpin(format!("{PINNED}/{name}"));
        }
        let _ = fs::remove_dir(PINNED);
    }
}

fn map(kind: MapType, name: &str, key: u32, value: usize) -> Result<MapHandle> {
    let opts = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    Ok(MapHandle::create(kind, Some(name), key, u32::try_from(value)?, 1, &opts)?)
}

/// Ids and policies of all threads of user [`UID`], as root sees them.
pub fn seen() -> Result<Vec<(i32, Policy)>> {
    let mut all = Vec::new();
    for process in fs::read_dir("/proc")?.flatten() {
        // a task that ends meanwhile is none of them
        for thread in fs::read_dir(process.path().join("task")).into_iter().flatten().flatten() {
            let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
            let ours = uid.and_then(|uid| uid.split_whitespace().next()?.parse().ok()) == Some(UID);
            let tid = thread.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some(tid) = tid.filter(|_| ours) {
                all.extend(Policy::of(tid)?.map(|policy| (tid, policy)));
            }
        }
    }
    Ok(all)
}
