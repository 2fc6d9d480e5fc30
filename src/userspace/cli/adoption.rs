// SPDX-License-Identifier: GPL-2.0-only
//! What to do with real-time tasks that are not bound to RT CPUs.

use crate::daemon::AdoptionWanted;

/// See docs/adoption.md.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Real-time tasks that are not bound to RT CPUs")]
pub struct AdoptionOpts {
    /// Make SCHED_FIFO and SCHED_RR tasks RT1+ with their priority, until the end
    #[arg(long, conflicts_with_all = ["question", "check"])]
    pub adopt: bool,

    /// Bind those that are not adopted to NRT CPUs, until the end
    #[arg(long, conflicts_with_all = ["question", "check"])]
    pub confine: bool,
}

impl AdoptionOpts {
    /// The same, for the daemon. Whoever is left to run on RT CPUs is named.
    pub fn wanted(self) -> AdoptionWanted {
        AdoptionWanted { adopt: self.adopt, confine: self.confine, name: true }
    }
}
