// SPDX-License-Identifier: GPL-2.0-only
//! The program `lollobrigida`: runs a scene of tasks and shows how the scheduler in charge
//! balanced it. Exit codes: see [`lollobrigida::cli::exit`].

use std::process::ExitCode;

use clap::Parser;
use lollobrigida::cli::{self, Opts};

fn main() -> ExitCode {
    cli::exit::conclude(cli::execute(Opts::parse()))
}
