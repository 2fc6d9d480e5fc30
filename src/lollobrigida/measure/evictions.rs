// SPDX-License-Identifier: GPL-2.0-only
//! How often scx_artis moved a task off an RT CPU, and why: asked at its statistics socket.

use std::collections::BTreeMap;
use std::path::Path;

use scx_stats::prelude::StatsClient;
use serde::Deserialize;

/// scx_artis listens here while it is in charge.
pub const SOCKET: &str = "/var/run/scx/root/stats";

/// A scheduler that does not answer for so long is not waited for.
const PATIENCE_MS: u64 = 1000;

#[derive(Deserialize)]
struct Answer {
    evictions: BTreeMap<String, u64>,
}

/// By task: evictions by cause since the task was there. Ask while the tasks live.
///
/// # Errors
/// In words: the scheduler in charge (`ops`) is another, or does not answer.
pub fn read(
    socket: &Path,
    ops: Option<&str>,
    pids: &[i32],
) -> Result<Vec<BTreeMap<String, u64>>, String> {
    let ops = ops.unwrap_or("the kernel's own scheduler");
    if !ops.contains("artis") {
        return Err(format!("{ops} is in charge, and only scx_artis evicts"));
    }
    let unheard = |err: anyhow::Error| {
        format!(
            "scx_artis does not tell its evictions by task ({err:#}): its statistics socket {} \
             must answer the request \"task\"",
            socket.display()
        )
    };
    let client = StatsClient::new().set_path(socket).connect(Some(PATIENCE_MS));
    let mut client = client.map_err(unheard)?;
    let mut ask = |pid: &i32| {
        let answer: Answer = client.request("task", vec![("pid".into(), pid.to_string())])?;
        Ok(answer.evictions)
    };
    pids.iter().map(&mut ask).collect::<anyhow::Result<_>>().map_err(unheard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use std::thread;

    /// Answers each line in turn, as scx_stats's server does, and gives back what was asked.
    fn server(socket: &Path, answers: Vec<&'static str>) -> thread::JoinHandle<Vec<String>> {
        let listener = UnixListener::bind(socket).expect("socket");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("client");
            let mut lines = BufReader::new(stream.try_clone().expect("clone")).lines();
            let mut turn = |answer| {
                let asked = lines.next().expect("a request").expect("a line");
                writeln!(stream, "{answer}").expect("answered");
                asked
            };
            answers.into_iter().map(&mut turn).collect()
        })
    }

    #[test]
    fn asks_for_each_task() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let socket = dir.path().join("stats");
        let server = server(
            &socket,
            vec![
                r#"{"errno":0,"args":{"resp":{"evictions":{"call open":3,"fault":1}}}}"#,
                r#"{"errno":0,"args":{"resp":{"evictions":{}}}}"#,
            ],
        );
        let seen = read(&socket, Some("artis_1.0"), &[41, 42]).expect("answers");
        let first = BTreeMap::from([("call open".to_owned(), 3), ("fault".to_owned(), 1)]);
        assert_eq!(seen, [first, BTreeMap::new()]);
        let asked = server.join().expect("server");
        assert!(asked[0].contains(r#""req":"task""#) && asked[0].contains(r#""pid":"41""#));
        assert!(asked[1].contains(r#""pid":"42""#), "{asked:?}");
    }

    #[test]
    fn an_unknown_request_is_told() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let socket = dir.path().join("stats");
        let server = server(&socket, vec![r#"{"errno":22,"args":{"resp":"unknown command"}}"#]);
        let why = read(&socket, Some("artis_1.0"), &[41]).expect_err("unknown");
        assert!(why.contains("unknown command") && why.contains("\"task\""), "{why}");
        server.join().expect("server");
    }

    #[test]
    fn others_are_not_asked() {
        let why = read(Path::new("/nowhere"), Some("bpfland"), &[41]).expect_err("another");
        assert!(why.starts_with("bpfland is in charge"), "{why}");
        let why = read(Path::new("/nowhere"), None, &[41]).expect_err("none");
        assert!(why.starts_with("the kernel's own scheduler"), "{why}");
    }
}
