// SPDX-License-Identifier: GPL-2.0-only
//! Where tasks stand when a scenario does not end: the host ends the guest soon, and what it waited
//! for would be gone with it.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use walkdir::WalkDir;

use crate::guest::describe;
use crate::policy::Policy;

/// Above the thread that runs a scenario.
const PRIORITY: u32 = 90;
/// Of each stack, the innermost frames.
const FRAMES: usize = 8;

/// Prints to stderr, once this time is over, each thread of this program and of scx_artis, and each other
/// one that is runnable or waits uninterruptibly: name, thread id, what [`describe`] says, policy, and where it
/// is in the kernel. Nothing, if this process ends before.
///
/// # Errors
/// When there is no thread for that.
pub fn tell_after(time: Duration) -> Result<()> {
    let wait = move || {
        // without it, it tells only what does not keep a normal task from running
        let _ = Policy::new(libc::SCHED_FIFO, PRIORITY).set(0);
        thread::sleep(time);
        eprintln!("stuck: {} s are over", time.as_secs());
        standing().iter().for_each(|task| eprintln!("stuck: {task}"));
    };
    thread::Builder::new().name("stuck".into()).spawn(wait).context("a thread").map(drop)
}

/// A line for each such thread.
fn standing() -> Vec<String> {
    let tasks = WalkDir::new("/proc").min_depth(3).max_depth(3).into_iter().filter_entry(|entry| {
        let number = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
        let name = entry.file_name().to_string_lossy();
        if entry.depth() == 2 { name == "task" } else { number(&name) || entry.depth() == 0 }
    });
    tasks.flatten().filter_map(|entry| stand(&entry.path().to_string_lossy())).collect()
}

fn stand(dir: &str) -> Option<String> {
    let read = |file: &str| fs::read_to_string(format!("{dir}/{file}")).ok();
    let (comm, process) = (read("comm")?, read("../../comm")?);
    let tid: u32 = dir.rsplit('/').next()?.parse().ok()?;
    let state = describe(tid);
    if !matches!(process.trim(), "artis-guest" | "scx_artis") && !state.starts_with(['R', 'D']) {
        return None;
    }
    let stack = read("stack").unwrap_or_default();
    let frames = stack.lines().filter_map(|line| line.split_whitespace().last());
    Some(format!(
        "{} {tid} {state} {:?} {}",
        comm.trim(),
        Policy::of(tid.cast_signed()).ok().flatten(),
        frames.take(FRAMES).collect::<Vec<_>>().join(" < ")
    ))
}
