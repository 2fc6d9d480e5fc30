// SPDX-License-Identifier: GPL-2.0-only
//! Diagnostics on stderr: warnings always, the rest with `--verbose`. The daemon does not wait for
//! whoever reads them: a thread writes, and what finds no room is lost.

use std::fmt::Display;
use std::io::{LineWriter, Write, stderr};
use std::sync::OnceLock;

use libbpf_rs::{PrintLevel, set_print};
use log::LevelFilter;
use simplelog::{ColorChoice, ConfigBuilder, TermLogger, TerminalMode, WriteLogger};
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

/// Messages that may wait to be written.
const WAITING: usize = 1_000;
/// The way to the thread that writes, if there is one.
static WRITER: OnceLock<NonBlocking> = OnceLock::new();

/// Starts the logger and puts it between libbpf and the user. `is_daemon`: a thread writes what is
/// said until the value is dropped, which waits for it for about a second.
pub fn start(verbose: bool, is_daemon: bool) -> Option<WorkerGuard> {
    let level = if verbose { LevelFilter::Debug } else { LevelFilter::Warn };
    let config = ConfigBuilder::new()
        .set_time_level(if verbose { LevelFilter::Error } else { LevelFilter::Off })
        .set_time_format_rfc3339()
        .set_thread_level(LevelFilter::Off)
        .set_target_level(LevelFilter::Off)
        .set_location_level(LevelFilter::Off)
        .build();
    set_print(Some((PrintLevel::Debug, if verbose { pass } else { pass_news })));
    // both fail only if a logger is there already: then that one serves
    if !is_daemon {
        let _ = TermLogger::init(level, config, TerminalMode::Stderr, ColorChoice::Auto);
        return None;
    }
    let builder = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(WAITING);
    let (writer, guard) = builder.thread_name("stderr").finish(stderr());
    let _ = WriteLogger::init(level, config, LineWriter::new(writer.clone()));
    let _ = WRITER.set(writer);
    Some(guard)
}

/// Writes a line to stderr, as it is.
pub fn say(line: impl Display) {
    match WRITER.get().cloned() {
        Some(mut writer) => _ = writer.write_all(format!("{line}\n").as_bytes()), // never fails
        None => eprintln!("{line}"),
    }
}

/// How many messages were lost, since stderr took nothing.
pub fn lost() -> usize {
    WRITER.get().map_or(0, |writer| writer.error_counter().dropped_lines())
}

fn pass(level: PrintLevel, message: String) {
    let message = message.trim_end();
    match level {
        PrintLevel::Warn => log::warn!("{message}"),
        PrintLevel::Info => log::info!("{message}"),
        PrintLevel::Debug => log::debug!("{message}"),
    }
}

fn pass_news(level: PrintLevel, message: String) {
    if !is_noise(&message) {
        pass(level, message);
    }
}

/// What libbpf warns of although all is well: members of struct sched_ext_ops
/// that are zero and that an older kernel does not know, and that the struct's
/// link is not among those of the skeleton, where libbpf-rs never puts it.
fn is_noise(message: &str) -> bool {
    message.contains("not found in kernel, skipping")
        || message.contains("BPF map skeleton link is uninitialized")
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_harmless_is_noise() {
        let noise = "libbpf: struct_ops init_kern artis_ops: member sub_attach not found in kernel, skipping it as it's set to zero\n";
        assert!(super::is_noise(noise));
        assert!(!super::is_noise("libbpf: failed to load BPF skeleton 'bpf': -22\n"));
    }
}
