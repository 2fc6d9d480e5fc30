// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis run`: a program with a class of its own.

use std::ffi::OsString;

use clap::Args;

use super::ctl::ClassOpts;

/// Run a program as a firm real-time task
///
/// The program and its children are of that class until they end. Only root may do this.
#[derive(Debug, Args)]
pub struct Run {
    #[allow(missing_docs)]
    #[command(flatten)]
    pub class: ClassOpts,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
