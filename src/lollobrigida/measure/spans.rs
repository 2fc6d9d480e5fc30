// SPDX-License-Identifier: GPL-2.0-only
//! From the kernel's switch records to who ran where.

use std::collections::HashMap;

use crate::result::Span;

/// The kernel put a task on a CPU, or took it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// CLOCK_MONOTONIC, ns.
    pub at_ns: u64,
    /// The task's process id.
    pub pid: i32,
    /// Put on, or taken off.
    pub on: bool,
}

/// The spans of one CPU, from its records in their order. `start_ns` and `end_ns` bound the
/// run: what is outside is cut off, a task that is still on at the end is on until then.
/// `task_of` gives a process's index in the plan. A record whose other half was lost is
/// left out.
#[must_use]
pub fn of_cpu(
    cpu: u32,
    switches: &[Switch],
    task_of: &HashMap<i32, u32>,
    start_ns: u64,
    end_ns: u64,
) -> Vec<Span> {
    let mut on_since: Option<(i32, u64)> = None;
    let mut spans = Vec::new();
    let mut close = |pid: i32, from_ns: u64, to_ns: u64| {
        let from_ns = from_ns.clamp(start_ns, end_ns) - start_ns;
        let to_ns = to_ns.clamp(start_ns, end_ns) - start_ns;
        if let (Some(&task), true) = (task_of.get(&pid), from_ns < to_ns) {
            spans.push(Span { task, cpu, from_ns, to_ns });
        }
    };
    for switch in switches {
        match (switch.on, on_since) {
            (true, _) => on_since = Some((switch.pid, switch.at_ns)),
            (false, Some((pid, from_ns))) => {
                if pid == switch.pid {
                    close(pid, from_ns, switch.at_ns);
                }
                on_since = None;
            }
            (false, None) => {}
        }
    }
    if let Some((pid, from_ns)) = on_since {
        close(pid, from_ns, end_ns);
    }
    spans
}

/// How often each of `tasks` tasks began on another CPU than the one it had been on, by the
/// timeline, which is in order of begin.
#[must_use]
pub fn migrations(timeline: &[Span], tasks: usize) -> Vec<u64> {
    let mut last: Vec<Option<u32>> = vec![None; tasks];
    let mut moves = vec![0; tasks];
    for span in timeline {
        let task = span.task as usize;
        if let (Some(last), Some(moves)) = (last.get_mut(task), moves.get_mut(task)) {
            *moves += u64::from(last.replace(span.cpu).is_some_and(|cpu| cpu != span.cpu));
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(switches: &[(u64, i32, bool)]) -> Vec<(u32, u64, u64)> {
        let switch = |&(at_ns, pid, on): &(u64, i32, bool)| Switch { at_ns, pid, on };
        let switches: Vec<Switch> = switches.iter().map(switch).collect();
        let task_of = HashMap::from([(70, 0), (71, 1)]);
        let spans = of_cpu(3, &switches, &task_of, 1000, 2000);
        assert!(spans.iter().all(|span| span.cpu == 3));
        spans.iter().map(|span| (span.task, span.from_ns, span.to_ns)).collect()
    }

    #[test]
    fn each_stay_is_a_span_from_the_start() {
        let seen =
            spans(&[(1100, 70, true), (1200, 70, false), (1250, 71, true), (1300, 71, false)]);
        assert_eq!(seen, [(0, 100, 200), (1, 250, 300)]);
    }

    #[test]
    fn what_is_outside_of_the_run_is_cut_off() {
        let seen = spans(&[(900, 70, true), (950, 70, false), (990, 71, true), (1300, 71, false)]);
        assert_eq!(seen, [(1, 0, 300)]);
        assert_eq!(spans(&[(1900, 70, true), (2500, 70, false)]), [(0, 900, 1000)]);
    }

    #[test]
    fn who_is_still_on_is_on_until_the_end() {
        assert_eq!(spans(&[(1400, 70, true)]), [(0, 400, 1000)]);
    }

    #[test]
    fn halves_of_lost_records_and_strangers_are_left_out() {
        assert_eq!(spans(&[(1100, 70, false), (1200, 71, true), (1300, 70, false)]), []);
        assert_eq!(spans(&[(1100, 99, true), (1200, 99, false)]), []);
        let seen = spans(&[(1100, 70, true), (1200, 71, true), (1300, 71, false)]);
        assert_eq!(seen, [(1, 200, 300)]);
    }

    #[test]
    fn a_migration_is_a_begin_elsewhere() {
        let span = |task, cpu, from_ns| Span { task, cpu, from_ns, to_ns: from_ns + 1 };
        let timeline = [span(0, 0, 0), span(1, 1, 0), span(0, 0, 5), span(0, 1, 9), span(0, 0, 12)];
        assert_eq!(migrations(&timeline, 3), [2, 0, 0]);
    }
}
