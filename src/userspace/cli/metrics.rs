// SPDX-License-Identifier: GPL-2.0-only
//! The options of the metrics.

use clap::Args;

use crate::config::{Address, ConfigError};

/// Where to serve metrics, and how many.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Metrics")]
pub struct MetricsOpts {
    /// Serve OpenMetrics over HTTP: 127.0.0.1:9464, [::1]:9464 or unix:/run/scx_artis/metrics.sock
    ///
    /// For Prometheus and what understands its format; docs/statistics.md names all metrics.
    /// While this is on somebody watches: the figures of each task are taken once a second.
    #[arg(long, value_name = "ADDR", conflicts_with_all = ["question", "check"])]
    pub metrics: Option<Address>,

    /// Serve them at an address that other machines reach, too, to anybody and in clear
    #[arg(long, requires = "metrics")]
    pub metrics_anywhere: bool,

    /// Tasks that have metrics besides the hard real-time ones: the busiest of two minutes
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub metrics_tasks: usize,
}

impl MetricsOpts {
    /// Where to serve, if at all.
    ///
    /// # Errors
    /// When others reach that, and nobody said that they may.
    pub fn address(&self) -> Result<Option<&Address>, ConfigError> {
        match &self.metrics {
            Some(address) if !address.is_local() && !self.metrics_anywhere => {
                Err(ConfigError::MetricsForAll { address: address.clone() })
            }
            address => Ok(address.as_ref()),
        }
    }
}
