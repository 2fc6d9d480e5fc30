// SPDX-License-Identifier: GPL-2.0-only
//! What a task is, by which rule, and where it may run.

use super::Seen;
use crate::config::CpuSet;
use crate::model::TaskMetrics;
use crate::outlets::words::{count, number, pct, policy};

/// How a task is treated; the labels of [`TaskMetrics::class`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Hard real-time.
    Rt0,
    /// Real-time, not bound to RT CPUs.
    RtFree,
    /// Firm real-time.
    Rt1,
    /// Ordinary.
    Nrt,
    /// Ordinary, may not leave its CPUs.
    Bound,
    /// Kernel thread of an ordinary policy.
    Kernel,
    /// Kernel thread of a real-time policy.
    KernelRt,
}

impl Class {
    /// Of a task. A label that is not known here counts as ordinary.
    pub fn of(task: &TaskMetrics) -> Self {
        match task.class.as_str() {
            "RT0" => Self::Rt0,
            "RT" => Self::RtFree,
            "RT1+" => Self::Rt1,
            "bound" => Self::Bound,
            "kernel" => Self::Kernel,
            "kernel RT" => Self::KernelRt,
            _ => Self::Nrt,
        }
    }

    /// Is it scheduled by the kernel's real-time classes, and only seen by scx_artis?
    pub fn is_realtime(self) -> bool {
        matches!(self, Self::Rt0 | Self::RtFree | Self::KernelRt)
    }

    /// The class and the rule by which the task has it.
    pub fn sentences(self, seen: &Seen) -> Vec<String> {
        let (task, begin) = (&seen.task.metrics, &seen.begin);
        let (policy, rt) = (policy(task), &begin.rt_cpus);
        let said: Vec<String> = match self {
            Self::Rt0 => vec![
                format!(
                    "Hard real-time (RT0): {policy}, and its affinity holds RT CPUs only, of {rt}."
                ),
                "The kernel's real-time scheduler runs it; scx_artis keeps other tasks' kernel \
                 work off its CPU and never moves it."
                    .to_owned(),
            ],
            Self::RtFree => vec![
                format!(
                    "Real-time, but not bound to RT CPUs: {policy}, and its affinity holds NRT CPUs."
                ),
                "That is unwise where its answer has to come in time: the kernel may run it on \
                 any of its CPUs, and on NRT CPUs nothing keeps others' kernel work out of its way."
                    .to_owned(),
            ],
            Self::Rt1 => vec![
                format!(
                    "Firm real-time (RT1+) of priority {}, under {policy}: scx_artis runs it before \
                     all NRT tasks and all RT1+ tasks of lower priority.",
                    task.rt1
                ),
                "It prefers RT CPUs, and leaves them for as long as it is in an endangering call \
                 or page fault."
                    .to_owned(),
            ],
            Self::Nrt if task.may_rt == 0 => vec![format!(
                "NRT: an ordinary task ({policy}) whose affinity holds NRT CPUs only. It never \
                 meets an RT CPU, so nothing evicts it."
            )],
            Self::Nrt => vec![
                format!("NRT: an ordinary task ({policy}) whose affinity holds NRT CPUs."),
                "It may compute on RT CPUs; when it enters the kernel there, it is evicted to an \
                 NRT CPU before the body of the call runs."
                    .to_owned(),
            ],
            Self::Bound if task.may_nrt == 0 => vec![
                format!(
                    "Bound: an ordinary task ({policy}) whose affinity holds RT CPUs only, of {rt}."
                ),
                "Nothing evicts it, since it has nowhere to go: its kernel work runs on RT CPUs \
                 and may delay real-time tasks there."
                    .to_owned(),
            ],
            Self::Bound => vec![format!(
                "Bound: an ordinary task ({policy}) that may run on one CPU only, an NRT CPU. It \
                 waits in that CPU's own queue."
            )],
            Self::Kernel => vec![format!(
                "Kernel thread ({policy}): its work is the kernel's, so it is never evicted. Unless \
                 it is bound to an RT CPU, it is placed on NRT CPUs."
            )],
            Self::KernelRt => vec![format!(
                "Kernel thread of a real-time policy ({policy}): the kernel's real-time scheduler \
                 runs it, scx_artis only sees it."
            )],
        };
        said
    }
}

/// Where it may run, where it runs, and how much.
pub fn place(seen: &Seen) -> Vec<String> {
    let (task, begin) = (&seen.task.metrics, &seen.begin);
    let allowed = count(seen.task.cpus_allowed, "CPU");
    let kinds = match (task.may_nrt > 0, task.may_rt > 0) {
        (true, true) => format!("NRT ones ({}) and RT ones ({})", begin.nrt_cpus, begin.rt_cpus),
        (true, false) => format!("NRT ones only, of {}", begin.nrt_cpus),
        (false, true) => format!("RT ones only, of {}", begin.rt_cpus),
        (false, false) => "none of them in charge of scx_artis".to_owned(),
    };
    let mut said = vec![match seen.task.cpus_allowed {
        1 => format!("Its affinity holds one CPU, {} one.", kind(seen, task.cpu)),
        _ => format!("Its affinity holds {allowed}: {kinds}."),
    }];
    let here = format!("CPU {}, {} one", task.cpu, kind(seen, task.cpu));
    said.push(match (seen.exited, task.runnable > 0) {
        (true, _) => format!("It has ended; it ran last on {here}."),
        (false, true) => format!("Now it runs on, or waits for, {here}."),
        (false, false) => format!("Now it sleeps; it ran last on {here}."),
    });
    if !seen.task.section.is_empty() {
        // only a switch tells: one that runs may have returned since
        let section = &seen.task.section;
        said.push(match task.runnable > 0 {
            true => format!("It was in the middle of {section} when it last stopped running."),
            false => format!("It is in the middle of {section}."),
        });
    }
    let weight = match Class::of(task) {
        Class::Rt1 | Class::Nrt | Class::Bound => {
            format!(" Its weight is {} (nice 0 is 100).", number(task.weight))
        }
        _ => String::new(),
    };
    said.push(format!(
        "In the last interval it had {} of one CPU, {} of it on RT CPUs.{weight}",
        pct(task.cpu_pct),
        pct(task.on_rt_pct),
    ));
    said
}

/// `an RT` or `an NRT`.
pub fn kind(seen: &Seen, cpu: u64) -> &'static str {
    let rt = seen.begin.rt_cpus.parse::<CpuSet>().ok();
    let is_rt = rt.zip(usize::try_from(cpu).ok()).is_some_and(|(rt, cpu)| rt.contains(cpu));
    if is_rt { "an RT" } else { "an NRT" }
}
