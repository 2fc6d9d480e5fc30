// SPDX-License-Identifier: GPL-2.0-only
//! Which step of how many: a line on the terminal's stderr, nothing on a pipe.

use indicatif::{ProgressBar, ProgressStyle};

use crate::compare::order::Step;
use crate::execute::{Purpose, Under};

/// The line.
pub struct Progress(ProgressBar);

impl Progress {
    /// Of so many steps. Hidden where stderr is no terminal, and if `quiet`.
    #[must_use]
    pub fn new(steps: usize, quiet: bool) -> Self {
        if quiet {
            return Self(ProgressBar::hidden());
        }
        // It is drawn between the runs only: a line that ticks would run on the CPUs that
        // are measured.
        let bar = ProgressBar::new(steps as u64);
        let style = ProgressStyle::with_template("[{pos}/{len}] {wide_msg}");
        Self(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    /// A step begins.
    pub fn step(&self, at: usize, step: Step, under: &Under) {
        self.0.set_position(at as u64 + 1);
        self.0.set_message(match step.purpose {
            Purpose::WarmUp => format!("{}: warm-up", under.title),
            Purpose::Measure(run) => format!("{}: run {}", under.title, run + 1),
        });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
