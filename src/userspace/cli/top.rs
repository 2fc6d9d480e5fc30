// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis top`: the command line of the view.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::interval_secs;
use crate::feed::Wanted;
use crate::outlets::top::columns;
use crate::outlets::top::store::SPEEDS;

const EXAMPLES: &str = "\
Examples:
  scx_artis top                                what goes on; ? explains the keys
  scx_artis top --sort evictions_per_s         whom the RT CPUs lose most often
  scx_artis top --filter RT0 --interval 0.5    hard real-time tasks, twice a second
  scx_artis top --replay run.artis --speed 4   a recording (scx_artis record)
  scx_artis top --json --count 1 | jq .machine once, for a program";

/// Watch a running scx_artis, or a recording
///
/// Shows CPUs, hard real-time tasks, all tasks, and what happens to them. Watching does not
/// disturb the scheduler, and several may watch at a time. Root may, and who is in the group
/// that the daemon's --feed-group names. Where the terminal cannot move its cursor (TERM=dumb)
/// or the output is no terminal, a line for each interval is printed instead.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Top {
    /// Seconds between two intervals, 0.1 to 60; of a recording they are what they are
    #[arg(long, value_name = "SECS", default_value = "1", value_parser = interval)]
    #[arg(conflicts_with = "replay")]
    pub interval: Duration,

    /// Show this recording
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,

    /// Play the recording so many times faster than it was made
    #[arg(long, value_name = "TIMES", default_value = "1", value_parser = speed)]
    #[arg(requires = "replay", conflicts_with_all = ["json", "csv"])]
    pub speed: f64,

    /// Print one JSON object a line for each interval; of a recording at once
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,

    /// Print CSV: a row for each task and interval; of a recording at once
    #[arg(long)]
    pub csv: bool,

    /// End after so many intervals
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Sort the tasks by this figure: its name in JSON or the title of its column
    #[arg(long, value_name = "FIELD", default_value = "cpu_pct", value_parser = columns::named)]
    #[arg(conflicts_with_all = ["json", "csv"])]
    pub sort: usize,

    /// Show only tasks with this in their name, with this class, or whose id begins like this
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    #[arg(conflicts_with_all = ["json", "csv"])]
    pub filter: String,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = Duration::from_secs_f64(interval_secs(text)?);
    if interval > Wanted::INTERVAL_MAX {
        let max_s = Wanted::INTERVAL_MAX.as_secs();
        return Err(format!("{text} seconds are too long; {max_s} at most, please"));
    }
    Ok(interval)
}

fn speed(text: &str) -> Result<f64, String> {
    let (least, most) = SPEEDS;
    match text.parse::<f64>() {
        Ok(times) if (least..=most).contains(&times) => Ok(times),
        Ok(times) => Err(format!("{times} is out of range; between {least} and {most}, please")),
        Err(_) => Err("not a number".to_owned()),
    }
}
