// SPDX-License-Identifier: GPL-2.0-only
//! How often scx_artis moved a task off an RT CPU, and why: asked at its statistics socket.

use std::collections::BTreeMap;
use std::path::Path;

use scx_stats::prelude::*;
use serde::Deserialize;

/// scx_artis listens here while it is in charge.
pub const SOCKET: &str = "/var/run/scx/root/stats";

/// A scheduler that does not answer for so long is not waited for. (Its daemon may wait for a CPU
/// itself: 1 s was too short on a busy machine.)
const PATIENCE_MS: u64 = 5000;

#[derive(Deserialize)]
struct Answer {
    evictions: BTreeMap<String, u64>,
}

/// By task, by its index in `pids`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evictions {
    /// By cause, since the task was there. `None`: the scheduler does not know the task.
    pub by_task: Vec<Option<BTreeMap<String, u64>>>,
    /// What it said of the last task that it does not know.
    pub unknown: Option<String>,
}

/// Ask while the tasks live.
///
/// # Errors
/// In words: the scheduler in charge (`ops`) is another, or does not answer.
pub fn read(socket: &Path, ops: Option<&str>, pids: &[i32]) -> Result<Evictions, String> {
    let ops = ops.unwrap_or("the kernel's own scheduler");
    if !ops.contains("artis") {
        return Err(format!("{ops} is in charge, and only scx_artis evicts"));
    }
    let ask = || {
        let mut client = StatsClient::new().set_path(socket).connect(Some(PATIENCE_MS))?;
        let mut evictions = Evictions::default();
        for pid in pids {
            let args = vec![("target".into(), "task".into()), ("pid".into(), pid.to_string())];
            let answer = match client.request::<Answer>("stats", args) {
                Ok(answer) => Some(answer.evictions),
                // it answered: the others may be known
                Err(err) if err.downcast_ref::<StatsErrno>().is_some() => {
                    evictions.unknown = Some(format!("{err:#}"));
                    None
                }
                Err(err) => return Err(err),
            };
            evictions.by_task.push(answer);
        }
        anyhow::Ok(evictions)
    };
    ask().map_err(|err| {
        format!(
            "scx_artis cannot be asked for the evictions of each task at its statistics socket {} \
             ({err:#}): run as root",
            socket.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server as scx_artis's: it knows task 41.
    fn server(socket: &Path, target: &str) -> StatsServer<(), ()> {
        let open: Box<dyn StatsOpener<(), ()>> = Box::new(|_| {
            let read: Box<dyn StatsReader<(), ()>> = Box::new(|args, _| {
                anyhow::ensure!(args["pid"] == "41", "no such ext task");
                let evictions = serde_json::json!({ "call open": 3, "fault": 1 });
                Ok(serde_json::json!({ "evictions": evictions }))
            });
            Ok(read)
        });
        let data = StatsServerData::new().add_ops(target, StatsOps { open, close: None });
        StatsServer::new(data).set_path(socket).launch().expect("launched")
    }

    #[test]
    fn asks_for_each_task_and_takes_that_one_is_unknown() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let socket = dir.path().join("stats");
        let _server = server(&socket, "task");
        let seen = read(&socket, Some("artis_1.0"), &[41, 42, 41]).expect("answers");
        let known = BTreeMap::from([("call open".to_owned(), 3), ("fault".to_owned(), 1)]);
        assert_eq!(seen.by_task, [Some(known.clone()), None, Some(known)]);
        assert!(seen.unknown.expect("told").contains("no such ext task"));
    }

    #[test]
    fn a_server_that_does_not_know_the_request_is_told() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let socket = dir.path().join("stats");
        let _server = server(&socket, "other");
        let seen = read(&socket, Some("artis_1.0"), &[41]).expect("an answer");
        assert_eq!(seen.by_task, [None]);
        assert!(seen.unknown.expect("told").contains("unknown stat target"));
    }

    #[test]
    fn others_are_not_asked() {
        let why = read(Path::new("/nowhere"), Some("bpfland"), &[41]).expect_err("another");
        assert!(why.starts_with("bpfland is in charge"), "{why}");
        let why = read(Path::new("/nowhere"), None, &[41]).expect_err("none");
        assert!(why.starts_with("the kernel's own scheduler"), "{why}");
        let why = read(Path::new("/nowhere"), Some("artis"), &[41]).expect_err("no socket");
        assert!(why.contains("/nowhere"), "{why}");
    }
}
