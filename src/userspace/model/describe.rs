// SPDX-License-Identifier: GPL-2.0-only
//! Each figure that the outlets show, described once: the statistics server,
//! `--help-stats`, the view and tests/documents/contract.rs all read it here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use scx_stats_derive::Stats;
use serde::{Deserialize, Serialize};

use super::field::{Described, Field, Kind, Value, described};
use crate::abi::{NR_STATS, bindings as abi};

/// An event counter: `enum artis_stat` of src/bpf/abi/abi.h.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// Its value in `enum artis_stat`.
    pub id: usize,
    /// Name of its field in [`Metrics`].
    pub name: &'static str,
    /// Which paragraph of the view's totals it is in.
    pub group: Group,
    /// A few words for the view.
    pub title: &'static str,
    /// What is counted.
    pub desc: &'static str,
}

/// What the counters are about; each is a paragraph of the view's totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Endangering kernel entries, and what became of them.
    Attempts,
    /// Tasks that are not evicted.
    Exempt,
    /// Where runnable tasks were sent.
    Placed,
    /// What a CPU took, and who had to make way.
    Moved,
    /// Whether the prediction of kernel entries was right.
    Predicted,
}

/// Declares [`Metrics`] from its own figures, described as by `described!`, and from the
/// counters, and [`COUNTERS`] from the latter.
macro_rules! metrics {
    (
        $(#[$attr:meta])*
        struct Metrics ($about:literal) {
            $($(#[$for_scx:meta])* $field:ident: $ty:ident =
                $kind:ident $unit:literal $title:literal, $desc:literal;)*
        }
        counters { $($group:ident $id:ident $name:ident $counted:literal: $what:literal;)* }
    ) => {
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats, JsonSchema)]
        #[stat(top, desc = $about, _om_prefix = "artis_")]
        #[serde(default)]
        $(#[$attr])*
        pub struct Metrics {
            $(#[doc = $desc] #[stat(desc = $desc)] $(#[$for_scx])* pub $field: $ty,)*
            $(#[doc = $what] #[stat(desc = $what)] pub $name: u64,)*
            #[doc = "The CPUs by id"]
            #[stat(desc = "The CPUs by id")]
            pub cpus: BTreeMap<usize, CpuMetrics>,
        }

        /// Without the CPUs: their figures are those of [`CpuMetrics`].
        impl Described for Metrics {
            const ABOUT: &'static str = $about;
            const FIELDS: &'static [Field] = &[
                $(Field {
                    name: stringify!($field),
                    title: $title,
                    unit: $unit,
                    kind: Kind::$kind,
                    desc: $desc,
                },)*
                $(Field {
                    name: stringify!($name),
                    title: $counted,
                    unit: "",
                    kind: Kind::Counter,
                    desc: $what,
                },)*
            ];

            fn values(&self) -> Vec<Value<'_>> {
                vec![$(Value::from(&self.$field),)* $(Value::from(&self.$name),)*]
            }
        }

        scx_utils::paste! {
            /// All event counters, by their value in `enum artis_stat`.
            pub const COUNTERS: [Counter; NR_STATS] = [$(
                Counter {
                    id: abi::[<artis_stat_ $id>] as usize,
                    name: stringify!($name),
                    group: Group::$group,
                    title: $counted,
                    desc: $what,
                },
            )*];

            impl Metrics {
                /// Takes over the totals of all event counters, by `enum artis_stat`.
                pub(super) fn set_counters(&mut self, totals: &[u64; NR_STATS]) {
                    $(self.$name = totals[abi::[<artis_stat_ $id>] as usize];)*
                }

                /// The total of one counter.
                pub fn counter(&self, counter: &Counter) -> u64 {
                    $(if counter.id == abi::[<artis_stat_ $id>] as usize { return self.$name; })*
                    0
                }
            }
        }
    };
}

metrics! {
    /// The whole machine, between two readings. Counters are totals since the
    /// scheduler began; everything else is about the interval.
    struct Metrics ("scx_artis: the whole machine") {
        uptime_s: f64 = Gauge "s" "up", "Seconds since the scheduler began";
        interval_s: f64 = Gauge "s" "interval", "Seconds that the rates and shares are about";
        policy_seq: u64 = Counter "" "changes", "Number of changes of the policy by ctl since the daemon began";
        #[stat(_om_skip)]
        rt_cpu_list: String = Label "" "RT CPUs", "The RT CPUs as a list";
        rt_cpus: u64 = Gauge "" "nr RT", "Number of RT CPUs";
        nrt_cpus: u64 = Gauge "" "nr NRT", "Number of NRT CPUs";
        attempts_per_s: f64 = Gauge "1/s" "att/s", "Attempts per second, on all CPUs: endangering kernel entries by tasks that could migrate";
        evictions_per_s: f64 = Gauge "1/s" "evic/s", "Evictions per second: attempts that made a task leave an RT CPU";
        rt_pct: f64 = Gauge "%" "RT%", "Share of the RT CPUs' time in real-time tasks, percent";
        loose_pct: f64 = Gauge "%" "loose%", "Share of the RT CPUs' time in loose real-time tasks: not bound to RT CPUs, and not adopted (docs/adoption.md), percent";
        loose_calls_per_s: f64 = Gauge "1/s" "loose/s", "Endangering calls of these tasks on RT CPUs per second, where nothing keeps them from it";
        ext_pct: f64 = Gauge "%" "ext%", "Share of the RT CPUs' time in ext tasks, percent: what isolation would have wasted";
        idle_pct: f64 = Gauge "%" "idle%", "Share of the RT CPUs' time in neither, percent: idle, but for the kernel's own work between tasks";
        residence_us_per_s: f64 = Gauge "us/s" "us/s", "Time of tasks that could leave in kernel sections on RT CPUs, us per second";
        residence_p99_us: f64 = Gauge "us" "p99", "The 99th percentile of these sections' lengths in the interval, or since the begin if there was none in it, us";
        residence_max_us: f64 = Counter "us" "worst", "The longest such section since the scheduler began, us";
        arrival_p50_us: f64 = Gauge "us" "arr p50", "Median time of evictions from the attempt to running on the NRT CPU in the interval, or of all if there was none in it, us; known while somebody watches tasks";
        arrival_p99_us: f64 = Gauge "us" "arr p99", "The 99th percentile of these times";
        wasted_pct: f64 = Gauge "%" "wasted%", "Share of the moves to RT CPUs since the begin that an eviction ended within C of own run time, percent";
        shared_queued: u64 = Gauge "" "queued", "Tasks that wait in the queues of the groups of CPUs";
        records: u64 = Counter "" "records", "Records of tasks and events that were written into the ring buffer";
        records_lost: u64 = Counter "" "lost", "Records that found no room there (--ring-kb): the figures of tasks lack them";
        records_over: u64 = Counter "" "over", "Events that were not written because their CPU's budget for the second was spent (--record-budget)";
    }
    counters {
        Attempts ARTIS_STAT_ATTEMPT_CALL attempts_call "calls":
            "Attempts by system call: endangering calls, on any CPU, but of tasks that may not leave their RT CPU";
        Attempts ARTIS_STAT_ATTEMPT_FAULT attempts_fault "faults":
            "Attempts by page fault: faults on user memory, on any CPU, but of tasks that may not leave their RT CPU";
        Attempts ARTIS_STAT_ATTEMPT_SIGNAL attempts_signal "signals":
            "Attempts by signal: signals that end the task or have a handler, on any CPU, but of tasks that may not leave their RT CPU";
        Attempts ARTIS_STAT_EVICTION evictions "evictions":
            "Migrations asked for because of an attempt on an RT CPU";
        Attempts ARTIS_STAT_BODY_ON_RT bodies_on_rt "bodies on RT":
            "Endangering calls, faults, and deaths that ran to their end, or slept, on an RT CPU although the task could leave: must be 0";
        Predicted ARTIS_STAT_MOVE_RT moved_rt "moves to RT":
            "Moves of a task that may leave from an NRT CPU to an RT CPU";
        Exempt ARTIS_STAT_EXEMPT_MIGRATION_DISABLED exempt_migration_disabled "migration off":
            "Exempt for now: tasks that had migration disabled; they leave as soon as it is enabled";
        Exempt ARTIS_STAT_EXEMPT_PINNED exempt_pinned "pinned":
            "Exempt: endangering entries on RT CPUs by tasks whose affinity holds no NRT CPU";
        Predicted ARTIS_STAT_WASTED wasted "wasted":
            "Moves to an RT CPU that an eviction ended before the task had run for C (--predict-c-us)";
        Moved ARTIS_STAT_REENQUEUE reenqueued "put back":
            "Tasks put back because a real-time task took their CPU";
        Moved ARTIS_STAT_PREEMPT preempted "preempted":
            "Preemptions for a woken or evicted task";
        Placed ARTIS_STAT_PLACE_IDLE place_idle "idle NRT":
            "Placed straight on an idle NRT CPU";
        Placed ARTIS_STAT_PLACE_BOUND place_bound "bound queue":
            "Placed in the queue of a group for tasks in the kernel or about to enter it";
        Placed ARTIS_STAT_PLACE_CALM place_calm "calm queue":
            "Placed in the queue of a group for tasks that are expected to compute on";
        Placed ARTIS_STAT_PLACE_OWN place_own "own CPU":
            "Placed in the queue of the only CPU where it may run";
        Moved ARTIS_STAT_TAKE_RT taken_rt "taken by RT":
            "Tasks that an RT CPU took from a queue for calm tasks";
        Moved ARTIS_STAT_TAKE_GROUP taken_group "from a group":
            "Tasks that a CPU took from a queue of another group";
        Moved ARTIS_STAT_RT1_PREEMPT rt1_preempted "for RT1+":
            "Preemptions for an RT1+ task";
        Moved ARTIS_STAT_RT1_THROTTLE rt1_throttled "throttled":
            "Times that RT1+ tasks used up their share of a second of a CPU (--rt1-budget-pct)";
    }
}

described! {
    /// One CPU, between two readings.
    #[stat(_om_prefix = "artis_cpu_", _om_label = "cpu")]
    struct CpuMetrics ("One CPU") {
        #[stat(_om_skip)]
        kind: String = Label "" "set", "RT or NRT";
        is_rt: u64 = Gauge "" "RT?", "1 if it is an RT CPU, else 0";
        rt_pct: f64 = Gauge "%" "RT%", "Share of its time in real-time tasks, percent";
        loose_pct: f64 = Gauge "%" "loose%", "Share of this RT CPU's time in loose real-time tasks: not bound to RT CPUs, and not adopted (docs/adoption.md), percent";
        loose_calls_per_s: f64 = Gauge "1/s" "loose/s", "Endangering calls of these tasks on this RT CPU per second, where nothing keeps them from it";
        ext_pct: f64 = Gauge "%" "ext%", "Share of its time in ext tasks, percent";
        idle_pct: f64 = Gauge "%" "idle%", "Share of its time in neither, percent: idle, but for the kernel's own work between tasks";
        load: f64 = Gauge "" "load", "Load: weight / 100 x M, M = 1 / (compute capacity x (1 - real-time share))";
        weight: u64 = Gauge "" "weight", "Weight of the runnable ext tasks that may run here only, and this CPU's share of those of its group by what real-time tasks leave of each of its CPUs, without scx_artis itself; 100 is one task of nice 0";
        attempts_per_s: f64 = Gauge "1/s" "att/s", "Attempts per second: endangering kernel entries by tasks that could migrate";
        evictions_per_s: f64 = Gauge "1/s" "evic/s", "Evictions per second: attempts that made a task leave this RT CPU";
        bodies_on_rt: u64 = Counter "" "body", "Endangering bodies on this RT CPU, since the begin: must be 0";
        #[stat(_om_skip)]
        body_cause: String = Label "" "of", "What the latest of these was: call NAME, fault, signal; empty when there was none";
        residence_us_per_s: f64 = Gauge "us/s" "us/s", "Time of tasks that could leave in kernel sections on this RT CPU, us per second";
        residence_p99_us: f64 = Gauge "us" "p99", "The 99th percentile of these sections' lengths in the interval, or since the begin if there was none in it, us";
        residence_max_us: f64 = Counter "us" "worst", "The longest such section since the begin, us";
        arrival_p50_us: f64 = Gauge "us" "arr p50", "Median time of evictions to this NRT CPU from the attempt to running here in the interval, or of all if there was none in it, us; known while somebody watches tasks";
        arrival_p99_us: f64 = Gauge "us" "arr p99", "The 99th percentile of these times";
        queued: u64 = Gauge "" "q", "Tasks that wait in its own queue";
        records_lost: u64 = Counter "" "lost", "Records by this CPU that found no room in the ring buffer";
        records_over: u64 = Counter "" "over", "Events of this CPU that were over its budget";
        #[stat(_om_skip)]
        running_pid: u64 = Label "" "pid", "Thread id of the task that runs here, 0 when idle";
        #[stat(_om_skip)]
        running_comm: String = Label "" "running", "Name of the task that runs here, empty when idle";
        #[stat(_om_skip)]
        running_rt: u64 = Label "" "RT task", "1 if the task that runs here is of a real-time class, else 0";
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn counters_are_in_the_order_of_the_enum() {
        for (id, counter) in COUNTERS.iter().enumerate() {
            assert_eq!(counter.id, id, "{}", counter.name);
        }
    }

    #[test]
    fn every_figure_has_a_value() {
        fn check<T: Described>(figures: &T) {
            assert_eq!(figures.values().len(), T::FIELDS.len());
            let names: BTreeSet<_> = T::FIELDS.iter().map(|field| field.name).collect();
            assert_eq!(names.len(), T::FIELDS.len(), "a name is taken twice");
            for (field, value) in T::FIELDS.iter().zip(figures.values()) {
                let is_label = field.kind == Kind::Label;
                assert!(is_label || !matches!(value, Value::Text(_)), "{}", field.name);
                assert!(!field.title.is_empty() && field.desc.len() > 5, "{}", field.name);
            }
        }
        check(&Metrics::default());
        check(&CpuMetrics::default());
        check(&super::super::TaskMetrics::default());
        check(&super::super::CauseMetrics::default());
        let metrics = Metrics { evictions: 7, ..Metrics::default() };
        let place = Metrics::FIELDS.iter().position(|field| field.name == "evictions");
        assert_eq!(metrics.values()[place.expect("there")], Value::Int(7));
    }

    #[test]
    fn totals_reach_their_fields() {
        let totals = std::array::from_fn(|id| id as u64 + 100);
        let mut metrics = Metrics::default();
        metrics.set_counters(&totals);
        for counter in &COUNTERS {
            assert_eq!(metrics.counter(counter), counter.id as u64 + 100, "{}", counter.name);
        }
    }
}
