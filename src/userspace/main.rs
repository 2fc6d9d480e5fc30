// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis`: CPUs for real-time tasks that are kept free of others' kernel work and still compute for
//! everyone. Exit codes: see [`scx_artis::exit::Failure`].

use std::process::ExitCode;

use clap::Parser;
use scx_artis::{cli::Opts, daemon, daemon::signals::HeldHangup, exit};

fn main() -> ExitCode {
    // before anything else; both fail for a mask that does not exist only
    let held = HeldHangup::hold();
    let opts = Opts::parse();
    if !opts.starts_scheduler() {
        let _ = held.and_then(HeldHangup::release);
    }
    // capabilities are a thread's own: before there is a second one
    let limited = opts.starts_scheduler().then(|| daemon::privileges::limit(&opts));
    // written out when it is dropped
    let _told = daemon::log::start(opts.verbose, opts.command.is_none());
    if let Some(Err(error)) = limited {
        log::warn!("this daemon may do more than it needs: {error:#}");
    }
    exit::conclude(daemon::execute(&opts))
}
