// SPDX-License-Identifier: GPL-2.0-only
//! An ordinary user's process that gives the daemon as much to do as it can.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

use crate::forge::UID;

/// The group that may watch, of which the process is a member.
pub const GROUP: u32 = 4242;
/// Where it connects to: what viewers do, and what collects metrics.
pub const FEED: &str = "/run/scx_artis/feed";
/// See [`FEED`].
pub const METRICS: &str = "/tmp/siege.sock";

/// Drops all privilege and, in a thread for each, without a pause: names itself anew, executes a program,
/// connects to the feed, subscribes to it, and connects to the metrics. Counts rounds in `done`. Returns
/// only with an error.
pub fn run(done: &AtomicU64) -> Result<()> {
    setgroups(&[Gid::from_raw(GROUP)])?;
    setgid(Gid::from_raw(GROUP))?;
    setuid(Uid::from_raw(UID))?;
    let acts: [fn(u64) -> Result<()>; 5] = [
        rename,
        execute,
        |_| connect(FEED, b"\n"),
        subscribe,
        |_| connect(METRICS, b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
    ];
    std::thread::scope(|scope| {
        let threads = acts.map(|act| scope.spawn(move || repeat(act, done)));
        let ended = threads.map(|thread| thread.join());
        ended.into_iter().find_map(|ended| ended.ok()?.err()).map_or(Ok(()), Err)
    })
}

fn repeat(act: fn(u64) -> Result<()>, done: &AtomicU64) -> Result<()> {
    for n in 0.. {
        act(n)?;
        done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn rename(n: u64) -> Result<()> {
    let name = if n.is_multiple_of(2) { c"siege-a" } else { c"siege-b" };
    nix::sys::prctl::set_name(name).context("a name")
}

fn execute(_: u64) -> Result<()> {
    let status = Command::new("true").stdin(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { bail!("true: {status}") }
}

/// Says something and reads a little of the answer. A connection that is refused is one, too.
fn connect(path: &str, text: &[u8]) -> Result<()> {
    let Ok(mut socket) = UnixStream::connect(path) else { return Ok(()) };
    let _ = socket.write_all(text).and_then(|()| socket.read(&mut [0; 512]));
    Ok(())
}

/// Wants to be told what the feed has, and takes nothing of it for a while.
fn subscribe(_: u64) -> Result<()> {
    let Ok(mut socket) = UnixStream::connect(FEED) else { return Ok(()) };
    let wanted = b"{\"interval_s\": 0.1}\n";
    if socket.write_all(wanted).is_ok() {
        std::thread::sleep(Duration::from_millis(500));
    }
    Ok(())
}
