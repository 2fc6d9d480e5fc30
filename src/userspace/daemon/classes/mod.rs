// SPDX-License-Identifier: GPL-2.0-only
//! Which task is of which class: rules, and adoption of real-time tasks. BPF tells what happens
//! ([`super::scheduler::news`]), this decides, BPF does as it is told.

pub mod adoption;
pub mod facts;
