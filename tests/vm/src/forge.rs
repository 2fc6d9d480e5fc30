// SPDX-License-Identifier: GPL-2.0-only
//! An ordinary user's process that claims by each attribute of its own to have been real time.

use std::fs;
use std::io;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

use crate::policy::{EXT, Policy, gettid};

/// Who forges: nobody.
pub const UID: u32 = 65534;
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
        set_slice(EXT, SLICE_NS + code)?;
        ensure_ordinary(own, code)?;
        let mut child = Command::new("sleep").arg("0.05").stdin(Stdio::null()).spawn()?;
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

/// Sets the caller's policy, which has no priority, and the slice that it asks for.
pub fn set_slice(policy: u32, slice_ns: u64) -> Result<()> {
    let attr = libc::sched_attr {
        size: u32::try_from(size_of::<libc::sched_attr>())?,
        sched_policy: policy,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: slice_ns,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads as many bytes as attr.size says, which is that of its type.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    ensure!(done == 0, "policy {policy}, slice {slice_ns}: {}", io::Error::last_os_error());
    Ok(())
}

/// Ids and policies of all threads of user [`UID`], as root sees them.
pub fn seen() -> Result<Vec<(i32, Policy)>> {
    let mut all = Vec::new();
    for process in fs::read_dir("/proc")?.flatten() {
        // whoever ends meanwhile is none of them
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
