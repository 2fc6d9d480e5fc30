// SPDX-License-Identifier: GPL-2.0-only
//! lollobrigida: runs the same scene of tasks under any scheduler and shows how it behaved.
//! The data flows down this list.

pub mod actor;
pub mod cli;
pub mod compare;
pub mod execute;
pub mod measure;
pub mod outlets;
pub mod plan;
pub mod result;
pub mod scene;
