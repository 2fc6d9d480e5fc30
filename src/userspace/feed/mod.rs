// SPDX-License-Identifier: GPL-2.0-only
//! The stream of what the scheduler does: from the ring buffer to whoever
//! watches, in the daemon's process, through its socket, or from a recording.
//!
//! It is one format everywhere: frames (src/bpf/abi/abi.h). A stream begins
//! with a BEGIN, and each interval ends with a READING; what lies between is
//! about that interval. The daemon only forwards bytes; what they mean is found
//! out by [`crate::model::Model`], at the viewer's expense.

mod client;
pub mod frame;
mod hub;
mod queue;
pub mod record;
mod recording;
mod server;
mod stream;

pub use client::{Source, connect, source};
pub use frame::{Frame, FrameError, Record};
pub use hub::{Hub, To, Viewer};
pub(crate) use recording::open_from;
pub use recording::{Recorder, open as replay};
pub use server::Server;
pub(crate) use server::has_seat;
pub use stream::{Next, Stream};

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where the daemon serves the stream.
pub const SOCKET: &str = "/run/scx_artis/feed";

/// What a viewer wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Time between two READINGs; more are sent if another viewer wants more.
    #[serde(rename = "interval_s", with = "seconds")]
    pub interval: Duration,
    /// Each eviction and each move, too.
    #[serde(default)]
    pub events: bool,
    /// Each run, too.
    #[serde(default)]
    pub runs: bool,
}

impl Wanted {
    /// The shortest interval.
    pub const INTERVAL_MIN: Duration = Duration::from_millis(100);
    /// The longest interval.
    pub const INTERVAL_MAX: Duration = Duration::from_secs(60);

    /// Totals once every `interval`.
    pub fn every(interval: Duration) -> Self {
        Self { interval, events: false, runs: false }
    }

    /// The same with an interval that can be.
    fn within_bounds(self) -> Self {
        let interval = self.interval.clamp(Self::INTERVAL_MIN, Self::INTERVAL_MAX);
        Self { interval, ..self }
    }
}

impl Default for Wanted {
    /// Totals once a second.
    fn default() -> Self {
        Self::every(Duration::from_secs(1))
    }
}

mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
