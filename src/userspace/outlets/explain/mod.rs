// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis explain PID`: one task in plain sentences, or as JSON.

mod advice;
mod class;
mod forecast;
mod story;
#[cfg(test)]
mod tests;
mod watch;

use std::sync::Arc;

use textwrap::Options;

pub use forecast::{Clock, Forecast};
pub use story::{Paragraph, SCHEMA, Story};
pub use watch::execute;

use crate::model::{Begin, Snapshot, Task};
use class::Class;

/// What was seen of one task.
pub struct Seen<'a> {
    /// The machine and its policy.
    pub begin: Arc<Begin>,
    /// The last interval; the task is in it unless it has ended.
    pub snapshot: &'a Snapshot,
    /// The task.
    pub task: Arc<Task>,
    /// It came to an end while it was watched.
    pub exited: bool,
    /// The prediction for it; none is made of tasks that scx_artis does not move.
    pub forecast: Option<Forecast>,
}

impl<'a> Seen<'a> {
    /// Of `task`, which may be gone from `snapshot`.
    pub fn new(snapshot: &'a Snapshot, task: Arc<Task>) -> Self {
        let begin = Arc::clone(&snapshot.begin);
        let asked = Class::of(&task.metrics) == Class::Nrt && task.metrics.may_rt > 0;
        let forecast = asked.then(|| Forecast::of(&begin.policy, &task.history, task.read_ns));
        Self {
            exited: !snapshot.tasks.contains_key(&task.metrics.pid),
            forecast: forecast.flatten(),
            begin,
            snapshot,
            task,
        }
    }

    /// Seconds since the scheduler began.
    pub fn now_s(&self) -> f64 {
        self.snapshot.machine.uptime_s
    }
}

/// The story as text of lines up to `width` letters, each ended by a line feed.
pub fn render(story: &Story, width: usize) -> String {
    let margin = story.paragraphs.iter().map(|p| p.about.len()).max().unwrap_or(0) + 2;
    let blank = " ".repeat(margin);
    let bullet = format!("{blank}- ");
    let below = format!("{blank}  ");
    let mut text = story.heading.clone() + "\n";
    for paragraph in &story.paragraphs {
        let head = format!("{:margin$}", paragraph.about);
        let lines = Options::new(width.max(margin + 20));
        text.push('\n');
        let mut said = String::new();
        if !paragraph.text.is_empty() {
            let first = lines.clone().initial_indent(&blank).subsequent_indent(&blank);
            said += &(textwrap::fill(&paragraph.text.join(" "), first) + "\n");
        }
        for fact in &paragraph.list {
            let fact_lines = lines.clone().initial_indent(&bullet).subsequent_indent(&below);
            said += &(textwrap::fill(fact, fact_lines) + "\n");
        }
        text += &said.replacen(&blank, &head, 1);
    }
    // they have done their work: people search for what they see
    text.replace('\u{a0}', " ")
}
