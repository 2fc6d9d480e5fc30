// SPDX-License-Identifier: GPL-2.0-only
//! All that is told of one task.

use serde::Serialize;

use super::class::{self, Class};
use super::{Seen, advice};
use crate::model::{CauseMetrics, TaskMetrics};
use crate::outlets::words::{ago, count, digits, ns, number, us};

use super::forecast::Forecast;

/// Moves with the meaning of what is below, for readers of the JSON form.
pub const SCHEMA: u32 = 2;

/// Sentences about one subject.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paragraph {
    /// What they are about, a word.
    pub about: &'static str,
    /// The sentences.
    pub text: Vec<String>,
    /// Single facts that follow.
    pub list: Vec<String>,
}

/// All that is told of one task; as JSON, the figures and the sentences.
#[derive(Clone, Debug, Serialize)]
pub struct Story<'a> {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name, ids, process.
    pub heading: String,
    /// When: seconds since the scheduler began.
    pub at_s: f64,
    /// Has it ended?
    pub exited: bool,
    /// Its figures.
    pub task: &'a TaskMetrics,
    /// The causes of its attempts, most attempts first.
    pub causes: &'a [CauseMetrics],
    /// The prediction; none is made of tasks that scx_artis does not move.
    pub prediction: Option<&'a Forecast>,
    /// The sentences.
    pub paragraphs: Vec<Paragraph>,
}

impl<'a> Story<'a> {
    /// Of what was seen; `how` says in a sentence how it was watched.
    pub fn of(seen: &'a Seen<'a>, how: &str) -> Self {
        let class = Class::of(&seen.task.metrics);
        let mut paragraphs = vec![
            plain("Class", class.sentences(seen)),
            plain("Place", class::place(seen)),
            attempts(seen, class),
            prediction(seen, class),
            waits(seen, class),
            Paragraph { about: "Advice", text: Vec::new(), list: advice::sentences(seen) },
            plain("Watched", watched(seen, how)),
        ];
        paragraphs.retain(|p| !(p.text.is_empty() && p.list.is_empty()));
        Self {
            schema: SCHEMA,
            heading: heading(seen),
            at_s: seen.now_s(),
            exited: seen.exited,
            task: &seen.task.metrics,
            causes: &seen.task.causes,
            prediction: seen.forecast.as_ref(),
            paragraphs,
        }
    }
}

fn plain(about: &'static str, text: Vec<String>) -> Paragraph {
    Paragraph { about, text, list: Vec::new() }
}

fn heading(seen: &Seen) -> String {
    let task = &seen.task.metrics;
    let (name, pid) = (&task.comm, task.pid);
    match Class::of(task) {
        Class::Kernel | Class::KernelRt => format!("{name}: kernel thread {pid}"),
        _ if task.pid == task.tgid => format!("{name}: process {pid}"),
        _ => {
            let leader = seen.snapshot.tasks.get(&task.tgid).map(|leader| &leader.metrics.comm);
            let of = leader.map(|name| format!(" ({name})")).unwrap_or_default();
            format!("{name}: thread {pid} of process {}{of}", task.tgid)
        }
    }
}

fn attempts(seen: &Seen, class: Class) -> Paragraph {
    let task = &seen.task.metrics;
    let text = match class {
        Class::Rt0 | Class::RtFree | Class::KernelRt => Vec::new(),
        Class::Kernel => {
            vec!["Kernel threads are in the kernel always: that is no attempt.".into()]
        }
        Class::Rt1 | Class::Nrt | Class::Bound if task.attempts == 0 => {
            vec![
                "While it was watched it did not enter the kernel by an endangering call or a \
                  page fault."
                    .into(),
            ]
        }
        Class::Rt1 | Class::Nrt | Class::Bound => vec![format!(
            "While it was watched it made {} (endangering kernel entries; {} per second in the \
             last interval), and was {}.",
            count(task.attempts, "attempt"),
            digits(task.attempts_per_s),
            match task.evictions {
                0 => "never evicted from an RT CPU".to_owned(),
                n => format!("evicted from an RT CPU {}", times(n)),
            },
        )],
    };
    let line = |cause: &CauseMetrics| {
        format!(
            "{}: {}, {}",
            cause.cause,
            count(cause.attempts, "attempt"),
            count(cause.evictions, "eviction")
        )
    };
    let list =
        if text.is_empty() { Vec::new() } else { seen.task.causes.iter().map(line).collect() };
    Paragraph { about: "Attempts", text, list }
}

fn times(n: u64) -> String {
    match n {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        n => format!("{} times", number(n)),
    }
}

fn prediction(seen: &Seen, class: Class) -> Paragraph {
    let task = &seen.task;
    let mut text = match (&seen.forecast, class) {
        (Some(forecast), _) => forecast.sentences(&task.history, task.read_ns),
        (None, Class::Nrt) if task.metrics.may_rt > 0 => {
            vec![
                "The policy in force is not known to this program: it is older than the scx_artis \
                  that runs."
                    .into(),
            ]
        }
        (None, _) => Vec::new(),
    };
    let (metrics, judged) = (&task.metrics, task.metrics.hits + task.metrics.misses);
    if seen.forecast.is_some() && judged > 0 {
        text.push(format!(
            "It moved to an RT CPU {}; of the {} that ended such a stay {} came after it had \
             computed there for C or longer.",
            times(metrics.moves_rt),
            count(judged, "eviction"),
            number(metrics.hits),
        ));
    }
    plain("Prediction", text)
}

fn waits(seen: &Seen, class: Class) -> Paragraph {
    let (task, waits) = (&seen.task.metrics, &seen.task.waits);
    let subject = if class.is_realtime() {
        "From its wake-up until it ran (wake-up latency)"
    } else {
        "From being ready until it ran"
    };
    if waits.count() == 0 {
        let never = format!("{subject} nothing was seen yet: it did not wait for a CPU.");
        return plain("Waits", vec![never]);
    }
    let mut text = vec![format!(
        "{subject} it took {} at the median, {} at the 99th percentile, {} at the longest, of {}.",
        ns(waits.quantile_ns(0.5)),
        ns(waits.quantile_ns(0.99).min(task.wait_max_us * 1e3)),
        us(task.wait_max_us),
        count(task.waits, "time"),
    )];
    let after = match task.wait_max_after.rsplit_once('/') {
        Some((_, "0")) => "; before it the CPU was idle".to_owned(),
        Some((name, pid)) => format!("; before it {name} ({pid}) had the CPU"),
        None => String::new(),
    };
    text.push(format!("The longest ended {}{after}.", ago(seen.now_s(), task.wait_max_at_s)));
    plain("Waits", text)
}

fn watched(seen: &Seen, how: &str) -> Vec<String> {
    let lost = &seen.snapshot.lost;
    let mut said = vec![how.to_owned()];
    if lost.ring + lost.feed > 0 {
        said.push(format!(
            "{} got lost on the way: what is told here may be old.",
            count(lost.ring + lost.feed, "record")
        ));
    }
    said
}
