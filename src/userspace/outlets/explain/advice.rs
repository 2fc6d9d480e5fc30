// SPDX-License-Identifier: GPL-2.0-only
//! What the user might do better, where the figures say so.

use super::Seen;
use super::class::Class;
use crate::model::Task;
use crate::outlets::words::{count, number, pct, policy, us};

/// Evictions below which nothing is said about them: chance.
const FEW_EVICTIONS: u64 = 20;
/// Moves to RT CPUs, of which less than this share was worth it, are too many: percent.
const WORTH_IT_PCT: u64 = 50;
/// A longest wait of so many times the median is worth a word.
const FAR_OFF: f64 = 4.0;
/// And one that is at least so long, us.
const LONG_US: f64 = 20.0;

/// In sentences; empty: there is nothing to do.
pub fn sentences(seen: &Seen) -> Vec<String> {
    let class = Class::of(&seen.task.metrics);
    let all =
        [binding(seen, class), wait(seen, class), prediction(seen, class), cause(seen, class)];
    all.into_iter().flatten().collect()
}

/// An affinity that does not fit the task.
fn binding(seen: &Seen, class: Class) -> Option<String> {
    let (task, begin) = (&seen.task.metrics, &seen.begin);
    match class {
        Class::RtFree => Some(format!(
            "Bind it to RT CPUs if its answers have to come in time: taskset -pc {} {}. Otherwise \
             an ordinary policy does.",
            begin.rt_cpus, task.pid
        )),
        Class::Bound if task.may_nrt == 0 => Some(format!(
            "Let it run on NRT CPUs, too, or there only, so that its kernel work stays off RT \
             CPUs: taskset -pc {} {}.",
            begin.nrt_cpus, task.pid
        )),
        _ => None,
    }
}

/// A real-time task that waited long once.
fn wait(seen: &Seen, class: Class) -> Option<String> {
    let task = &seen.task.metrics;
    let median_us = seen.task.waits.quantile_ns(0.5) / 1e3;
    let stands_out = task.wait_max_us >= LONG_US && task.wait_max_us >= FAR_OFF * median_us;
    if class != Class::Rt0 || !stands_out || task.wait_max_after.is_empty() {
        return None;
    }
    let (name, pid) = task.wait_max_after.rsplit_once('/').unwrap_or((&task.wait_max_after, ""));
    if pid == "0" {
        return Some(format!(
            "Before its longest wait, {}, ended, the CPU was idle: a deep idle state takes long to \
             leave (hold /dev/cpu_dma_latency open with 0 in it, or cpupower idle-set -D 0); in a \
             virtual machine the host may have been late.",
            us(task.wait_max_us)
        ));
    }
    let before = pid.parse().ok().and_then(|pid: u64| seen.snapshot.tasks.get(&pid));
    let (worst, name) = (us(task.wait_max_us), format!("{name} ({pid})"));
    Some(match before.map(|before| (before, Class::of(&before.metrics))) {
        Some((before, Class::Rt0 | Class::RtFree)) => {
            let rank = rank(task.rt_prio, before);
            format!(
                "Its longest wait, {worst}, was for another real-time task, {name}, {rank}. Give \
                 the two different CPUs, or the more urgent one the higher priority."
            )
        }
        Some((_, Class::KernelRt | Class::Kernel)) => format!(
            "Before its longest wait, {worst}, ended, kernel thread {name} had the CPU: see what \
             it does, and whether its interrupts or its affinity can be put on NRT CPUs \
             (/proc/irq/*/smp_affinity_list)."
        ),
        Some((before, Class::Bound)) if before.metrics.may_nrt == 0 => format!(
            "Before its longest wait, {worst}, ended, {name} had the CPU, an ordinary task that is \
             bound to RT CPUs and cannot be evicted: let it run on NRT CPUs ({}).",
            seen.begin.nrt_cpus
        ),
        _ => return None,
    })
}

/// How another real-time task stands to one of priority `prio`.
fn rank(prio: u64, other: &Task) -> String {
    let policy = policy(&other.metrics);
    match other.metrics.rt_prio {
        0 => format!("which is {policy} and goes before any priority"),
        p if p > prio => format!("which has the higher priority ({policy})"),
        p if p == prio => format!("which has the same priority ({policy})"),
        _ => format!("although it has the lower priority ({policy}): perhaps it held a lock"),
    }
}

/// Moves to RT CPUs that were not worth it.
fn prediction(seen: &Seen, class: Class) -> Option<String> {
    let task = &seen.task.metrics;
    let judged = task.hits + task.misses;
    if class != Class::Nrt || judged < FEW_EVICTIONS || task.hits * 100 >= WORTH_IT_PCT * judged {
        return None;
    }
    let c_us = seen.forecast.as_ref().map_or(0, |f| f.c_ns / 1_000);
    Some(format!(
        "Of {} from RT CPUs only {} came after it had computed there for C: its moves there are \
         mostly wasted. Bind it to NRT CPUs (taskset -pc {} {}), or raise C for all \
         (scx_artis ctl set predict-c-us {}).",
        count(judged, "eviction"),
        number(task.hits),
        seen.begin.nrt_cpus,
        task.pid,
        (2 * c_us).max(1_000)
    ))
}

/// One cause of most evictions.
fn cause(seen: &Seen, class: Class) -> Option<String> {
    let task = &seen.task.metrics;
    let most = seen.task.causes.iter().max_by_key(|cause| cause.evictions)?;
    let share_pct = most.evictions as f64 * 100.0 / task.evictions.max(1) as f64;
    if class != Class::Nrt || task.evictions < FEW_EVICTIONS || share_pct < 50.0 {
        return None;
    }
    let remedy = match most.cause.as_str() {
        "fault" => {
            "Page faults go away when its memory is touched before it computes: \
             mlockall(MCL_CURRENT | MCL_FUTURE), MAP_POPULATE, an allocator that keeps its memory."
        }
        "call read" | "call write" | "call pread64" | "call pwrite64" | "call readv"
        | "call writev" => "Larger buffers make fewer of them.",
        "call mmap" | "call munmap" | "call brk" | "call madvise" => {
            "An allocator that keeps its memory makes fewer of them (glibc: M_TRIM_THRESHOLD, \
             M_MMAP_THRESHOLD of mallopt)."
        }
        "call futex" => "Fewer wake-ups of other threads while it computes would leave it there.",
        "call other" | "other" => return None,
        _ => "Fewer of them, in batches, would leave it on RT CPUs for longer.",
    };
    Some(format!("{} of its evictions have one cause, {}. {remedy}", pct(share_pct), most.cause))
}
