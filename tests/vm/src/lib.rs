// SPDX-License-Identifier: GPL-2.0-only
//! The in-VM tests of scx_artis.
//!
//! `artis-guest` (src/main.rs) runs in a guest that `scripts/vm` booted; `tests/matrix.rs` on
//! the host boots a guest for each kernel and set of options and has it run scenarios one after
//! the other ([`host`] and [`serve`]). Both read the list in [`scenarios`].

pub mod auditor;
pub mod besiege;
pub mod cgroup;
pub mod classes;
pub mod control;
pub mod cpus;
pub mod daemon;
pub mod entries;
pub mod event;
pub mod faults;
pub mod figure;
pub mod forge;
pub mod guest;
pub mod hold;
pub mod hooked;
pub mod host;
pub mod idling;
pub mod kernel_log;
pub mod kernel_threads;
pub mod leaving;
pub mod load;
pub mod locks;
pub mod moves;
pub mod observe;
pub mod occupancy;
pub mod parent;
pub mod periodic;
pub mod places;
pub mod plain;
pub mod policy;
pub mod programs;
pub mod progress;
pub mod residue;
pub mod scenarios;
pub mod serve;
pub mod shared;
pub mod skeleton;
pub mod spinning;
pub mod spread;
pub mod stuck;
pub mod switch;
pub mod systemd;
pub mod times;
pub mod verifier;
pub mod wakes;
pub mod work;
pub mod worker;
