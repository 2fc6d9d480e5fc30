// SPDX-License-Identifier: GPL-2.0-only
//! lollobrigida: runs the same scene of tasks under any scheduler and shows how it behaved.
//!
//! The data's way: a [`scene`] becomes a [`plan`]; [`execute`] runs it, with an [`actor`] for
//! each task, while [`measure`] asks the kernel; the [`result`] goes to the [`outlets`].
//! [`compare`] lets schedulers take turns; [`cli`] is in front of all.

pub mod actor;
pub mod cli;
pub mod compare;
pub mod execute;
#[doc(hidden)]
pub mod fuzzing;
pub mod measure;
pub mod outlets;
pub mod plan;
pub mod result;
pub mod scene;
