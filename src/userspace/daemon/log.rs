// SPDX-License-Identifier: GPL-2.0-only
//! Diagnostics on stderr: warnings always, the rest with `--verbose`.

use libbpf_rs::{PrintLevel, set_print};
use log::LevelFilter;
use simplelog::{ColorChoice, ConfigBuilder, TermLogger, TerminalMode};

/// Starts the logger and puts it between libbpf and the user.
pub fn start(verbose: bool) {
    let level = if verbose { LevelFilter::Debug } else { LevelFilter::Warn };
    let config = ConfigBuilder::new()
        .set_time_level(if verbose { LevelFilter::Error } else { LevelFilter::Off })
        .set_time_format_rfc3339()
        .set_thread_level(LevelFilter::Off)
        .set_target_level(LevelFilter::Off)
        .set_location_level(LevelFilter::Off)
        .build();
    // fails only if a logger is there already: then that one serves
    let _ = TermLogger::init(level, config, TerminalMode::Stderr, ColorChoice::Auto);
    set_print(Some((PrintLevel::Debug, if verbose { pass } else { pass_news })));
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
