// SPDX-License-Identifier: GPL-2.0-only
//! What a running daemon is asked by its socket, without a start of `scx_artis ctl`, which takes seconds
//! where many tasks compete for a CPU that is emulated.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::auditor;
use crate::cpus::Cpus;
use crate::guest::PATIENCE;

/// Where it listens.
pub const SOCKET: &str = "/run/scx_artis/control";

/// The RT CPUs and the NRT CPUs.
///
/// # Errors
/// When no daemon answers, or not with a partition.
pub fn partition() -> Result<(Cpus, Cpus)> {
    let all = ask(&json!("get"))?;
    let cpus = |name: &str| -> Result<Cpus> {
        let list = all["state"][name].as_str().with_context(|| format!("no {name} in {all}"))?;
        list.parse()
    };
    Ok((cpus("rt_cpus")?, cpus("nrt_cpus")?))
}

/// Makes these the RT CPUs.
///
/// # Errors
/// When no daemon answers, or does not do it.
pub fn set_rt_cpus(rt: Cpus) -> Result<()> {
    let list = rt.to_string();
    auditor::will_run(&["ctl", "rt-cpus", &list]);
    let answer = ask(&json!({"rt_cpus": {"cpus": list}}))?;
    let done = answer.get("done").is_some();
    auditor::has_run(&["ctl", "rt-cpus", &list], done);
    anyhow::ensure!(done, "RT CPUs {list}: {answer}");
    Ok(())
}

fn ask(request: &Value) -> Result<Value> {
    let mut stream = UnixStream::connect(SOCKET).context(SOCKET)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    writeln!(stream, "{request}")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).context("an answer of the daemon")?;
    serde_json::from_str(&line).with_context(|| format!("the daemon answers {line:?}"))
}
