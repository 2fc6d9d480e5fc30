// SPDX-License-Identifier: GPL-2.0-only
//! The daemon `scx_artis`: it decides the policy constants, loads the BPF
//! scheduler, attaches it, shows what it does, and gives the machine back.
//!
//! The rooms, in the order in which data flows through them:
//!
//! | room | from | to |
//! |---|---|---|
//! | [`abi`] | the C headers of src/bpf/abi | Rust types of the same bytes |
//! | [`cli`] | the command line | [`cli::Opts`] |
//! | [`config`] | options and the machine | a [`config::Partition`] and the policy constants |
//! | [`control`] | `scx_artis ctl` | a change of what the daemon decided |
//! | [`daemon`] | both | a running scheduler, and [`model::Reading`]s of it |
//! | [`feed`] | the ring buffer | a stream of frames, to viewers and recordings |
//! | [`model`] | two readings | [`model::Metrics`] |
//! | [`outlets`] | metrics | the view, a line, the statistics socket |
//!
//! `model` knows neither BPF nor a terminal; the outlets do not know each other.
//!
//! # Exit codes
//!
//! See [`exit::Failure`]; `scx_artis --help` prints them, too.

pub mod abi;
pub mod cli;
pub mod config;
pub mod control;
pub mod daemon;
pub mod exit;
pub mod feed;
#[doc(hidden)]
pub mod fuzzing;
pub mod model;
pub mod outlets;
mod socket;
