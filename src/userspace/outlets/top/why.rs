// SPDX-License-Identifier: GPL-2.0-only
//! Why a task is where it is, in a sentence or two.

use super::text;
use crate::model::{COUNTERS, Snapshot, Task};

/// What sent a task to a CPU, in a word or two.
pub fn short(why: &str) -> &'static str {
    let counter = COUNTERS.iter().find(|counter| counter.name == why);
    counter.map_or("by the kernel", |counter| counter.title)
}

/// Why the task is where it is.
pub fn sentences(task: &Task, snapshot: &Snapshot) -> String {
    let metrics = &task.metrics;
    let cpu = metrics.cpu as usize;
    let kind = snapshot.machine.cpus.get(&cpu).map_or("other", |cpu| cpu.kind.as_str());
    let verb = if metrics.runnable == 1 { "It is on" } else { "It sleeps; it ran last on" };
    let mut text = format!("{verb} CPU {cpu} ({kind})");
    match metrics.class.as_str() {
        "RT0" => text += ": a hard real-time task, bound to RT CPUs; it is never moved, only seen.",
        "RT" => text += ": a real-time task that is not bound to RT CPUs; the kernel places it.",
        "kernel RT" => text += ": a real-time thread of the kernel; it is never moved, only seen.",
        _ => text += &format!(". {}", outlook(task, kind)),
    }
    text
}

/// Where it may go from there.
fn outlook(task: &Task, kind: &str) -> String {
    let metrics = &task.metrics;
    if metrics.may_nrt == 0 {
        return "It may not leave the RT CPUs: its affinity holds no NRT CPU, so nothing evicts it."
            .into();
    }
    if metrics.may_rt == 0 {
        return "Its affinity holds no RT CPU.".into();
    }
    if metrics.class == "kernel" {
        return "As a thread of the kernel it is not sent to RT CPUs.".into();
    }
    if kind == "RT" {
        let next = "its next endangering call or page fault makes it leave";
        return format!("There it only computes: {next}.");
    }
    if !task.section.is_empty() {
        return format!(
            "It was in the middle of {} when it last stopped, which keeps it off the RT CPUs.",
            task.section
        );
    }
    match (metrics.calm, metrics.attempts_per_s) {
        (1, _) => "It is calm, so an RT CPU with room may get it.".into(),
        (_, rate) if rate > 0.0 => format!(
            "It enters the kernel {} times a second, so a move to an RT CPU would be wasted.",
            text::count(rate)
        ),
        _ => "It has not computed for long enough without entering the kernel to be sent to an RT \
              CPU."
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn said(pid: u64) -> String {
        let snapshot = sample::snapshot();
        sentences(&snapshot.tasks[&pid], &snapshot)
    }

    #[test]
    fn each_class_is_told_its_own() {
        assert!(said(900).contains("CPU 2 (RT): a hard real-time task"), "{}", said(900));
        let hog = said(1200);
        assert!(hog.contains("CPU 3 (RT). There it only computes: its next"), "{hog}");
        assert!(said(1300).contains("4321 times a second"), "{}", said(1300));
        assert!(said(1500).contains("holds no NRT CPU"), "{}", said(1500));
        assert!(said(40).contains("thread of the kernel"), "{}", said(40));
    }

    #[test]
    fn an_unknown_reason_is_the_kernels() {
        assert_eq!((short(""), short("taken_rt")), ("by the kernel", "taken by RT"));
    }
}
