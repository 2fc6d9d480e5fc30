// SPDX-License-Identifier: GPL-2.0-only
//! What the kernel knows about a run, each source in a file of its own. Interfaces and
//! errors: docs/measures.md. Nothing here touches a task; all is read before the start
//! signal and after the last task is done, but for rings of switch records that are half
//! full: these are emptied meanwhile.

pub mod calls;
pub mod cpu_stat;
pub mod descriptors;
pub mod energy;
pub mod evictions;
pub mod groups;
pub mod machine;
pub mod meters;
pub mod migrations;
pub mod notes;
pub mod on_cpu;
pub mod perf;
pub mod rings;
pub mod shares;
pub mod spans;
pub mod stats;
pub mod task_stat;
pub mod trouble;
