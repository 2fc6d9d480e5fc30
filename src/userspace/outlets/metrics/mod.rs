// SPDX-License-Identifier: GPL-2.0-only
//! OpenMetrics over HTTP: `--metrics`. A viewer inside the daemon's process
//! keeps the snapshot of the last interval, and a thread of its own serves it:
//! whoever reads metrics, however often, asks nothing of the scheduler.

mod http;
mod name;
mod text;

pub use http::{Answers, Server};
pub use name::Metric;
pub use text::encode;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::config::Address;
use crate::feed::{Hub, Source, Wanted};
use crate::model::Snapshot;

/// What the name of each metric begins with.
pub const PREFIX: &str = "artis";

/// How often the viewer looks whether it is to end, if the hub does not.
const LOOK: Duration = Duration::from_millis(500);
/// How long it waits before it tries to watch again.
const AGAIN: Duration = Duration::from_secs(10);

/// The last snapshot, if there is one.
#[derive(Debug, Default)]
pub struct Latest(Mutex<Option<Arc<Snapshot>>>);

impl Latest {
    /// What is served from now on.
    pub fn set(&self, snapshot: Option<Snapshot>) {
        *self.lock() = snapshot.map(Arc::new);
    }

    fn get(&self) -> Option<Arc<Snapshot>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Snapshot>>> {
        // whoever panicked with it left it whole
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches, and serves what it sees, until it is dropped.
#[derive(Debug)]
pub struct Exporter {
    server: Server,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Serves at `address` what `hub` tells, with the `tasks` busiest tasks besides the hard
    /// real-time ones; a UNIX socket is for root and the group `gid`.
    ///
    /// # Errors
    /// When the address cannot be listened at.
    pub fn launch(address: &Address, gid: u32, tasks: usize, hub: &Arc<Hub>) -> Result<Self> {
        let latest = Arc::new(Latest::default());
        let answers = Answers { latest: Arc::clone(&latest), tasks };
        let own = nix::unistd::geteuid().as_raw();
        let server = Server::launch(address, own, gid, answers)?;
        let (stop, stopped) = bounded(0);
        let hub = Arc::clone(hub);
        let watch = move || {
            // the daemon's own nice value is for what must be done in time
            let _ = rustix::process::setpriority_process(None, 0);
            watch(&hub, &latest, &stopped);
        };
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(watch);
        let thread = thread.context("watching for the metrics")?;
        Ok(Self { server, stop: Some(stop), thread: Some(thread) })
    }

    /// Who serves.
    pub fn server(&self) -> &Server {
        &self.server
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Keeps `latest` up to date until `stopped` has nobody at its other end.
fn watch(hub: &Arc<Hub>, latest: &Latest, stopped: &Receiver<()>) {
    let is_stopped = |within| {
        stopped.recv_timeout(within) == Err(crossbeam_channel::RecvTimeoutError::Disconnected)
    };
    loop {
        if let Some(mut source) = Source::inside(hub, Wanted::default()) {
            while !source.has_ended() && !is_stopped(Duration::ZERO) {
                match source.next(Some(Instant::now() + LOOK)) {
                    Ok(Some(snapshot)) => latest.set(Some(snapshot.clone())),
                    Ok(None) => {}
                    Err(error) => {
                        log::error!("the metrics cannot be read from the stream: {error}");
                        break;
                    }
                }
            }
        }
        // better none than old ones
        latest.set(None);
        if is_stopped(AGAIN) {
            return;
        }
    }
}
