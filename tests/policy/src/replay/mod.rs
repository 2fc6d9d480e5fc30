// SPDX-License-Identifier: GPL-2.0-only
//! Recorded or made-up lives of tasks, run through the prediction rules of `policy/predict.h`.

pub mod judge;
pub mod rules;
pub mod synthetic;
pub mod trace;
