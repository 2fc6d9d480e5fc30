// SPDX-License-Identifier: GPL-2.0-only
//! A snapshot made by hand, for the tests.

use std::sync::Arc;

use crate::model::{
    Begin, CauseMetrics, CpuMetrics, Event, Hist, History, Lost, Metrics, Point, Snapshot, Task,
    TaskMetrics, What,
};

fn cpu(kind: &str, rt_pct: f64, ext_pct: f64) -> CpuMetrics {
    CpuMetrics {
        kind: kind.into(),
        is_rt: u64::from(kind == "RT"),
        rt_pct,
        ext_pct,
        load: 2.5,
        attempts_per_s: 4_321.0,
        running_pid: 1_234_567,
        running_comm: "stress-ng-sysinf".into(),
        ..CpuMetrics::default()
    }
}

fn cpus() -> [CpuMetrics; 4] {
    let mut rt = cpu("RT", 24.9, 50.0);
    (rt.running_pid, rt.running_comm, rt.running_rt) = (900, "cyclictest".into(), 1);
    (rt.evictions_per_s, rt.residence_us_per_s, rt.residence_max_us) = (430.0, 812.0, 44.2);
    let idle = CpuMetrics { kind: "RT".into(), is_rt: 1, ..CpuMetrics::default() };
    [cpu("NRT", 0.0, 99.96), cpu("NRT", 1.0, 80.0), rt, idle]
}

fn task(pid: u64, comm: &str, class: &str, cpu: u64, cpu_pct: f64) -> TaskMetrics {
    TaskMetrics {
        pid,
        tgid: pid / 10 * 10,
        comm: comm.into(),
        class: class.into(),
        policy: "OTHER".into(),
        weight: 100,
        cpu,
        cpu_pct,
        may_nrt: 1,
        may_rt: 1,
        runnable: u64::from(cpu_pct > 0.0),
        run_s: cpu_pct,
        runs: 1_000 + pid,
        wait_p50_us: 12.0,
        wait_p99_us: 230.0 + pid as f64,
        wait_max_us: 4_400.0,
        ..TaskMetrics::default()
    }
}

fn metrics() -> Vec<TaskMetrics> {
    let hard = |pid, prio, pct| TaskMetrics {
        policy: "FIFO".into(),
        rt_prio: prio,
        may_nrt: 0,
        on_rt_pct: pct,
        wait_p50_us: 3.1,
        wait_p99_us: 7.9,
        wait_max_us: 38.0,
        wait_max_at_s: 1_200.5,
        wait_max_after: "hog/1200".into(),
        runs_per_s: 1_000.0,
        ..task(pid, "cyclictest", "RT0", 2, pct)
    };
    vec![
        hard(900, 80, 4.9),
        hard(901, 99, 20.0),
        TaskMetrics { calm: 1, on_rt_pct: 50.0, ..task(1200, "hog", "NRT", 3, 50.0) },
        TaskMetrics {
            attempts: 123_456,
            attempts_per_s: 4_321.0,
            evictions: 999,
            evictions_per_s: 430.0,
            hits: 90,
            misses: 9,
            top_cause: "call clock_nanosleep".into(),
            ..task(1300, "stress-ng-sysinf", "NRT", 0, 99.9)
        },
        TaskMetrics { nice: -5, ..task(1400, "Web Content", "NRT", 1, 12.5) },
        TaskMetrics { may_nrt: 0, ..task(1500, "pinned", "bound", 3, 1.0) },
        task(40, "kworker/1:2", "kernel", 1, 0.3),
        task(20, "migration/2", "kernel RT", 2, 0.0),
    ]
}

fn points(metrics: &TaskMetrics) -> impl Iterator<Item = Point> {
    (0..90u64).map(move |at| Point {
        cpu: if metrics.class == "NRT" { at / 7 % 4 } else { metrics.cpu },
        cpu_pct: metrics.cpu_pct * (0.5 + (at % 11) as f64 / 20.0),
        attempts_per_s: metrics.attempts_per_s * (at % 7) as f64 / 6.0,
        evictions_per_s: metrics.evictions_per_s * (at % 5) as f64 / 4.0,
        wait_p99_us: metrics.wait_p99_us * (0.4 + (at % 13) as f64 / 20.0),
    })
}

fn whole(metrics: TaskMetrics) -> Task {
    let cause = |cause: &str, attempts, evictions| CauseMetrics {
        cause: cause.into(),
        attempts,
        evictions,
    };
    let causes = match metrics.attempts {
        0 => vec![],
        _ => vec![
            cause("call clock_nanosleep", 100_000, 700),
            cause("fault", 20_000, 200),
            cause("call openat", 3_456, 99),
        ],
    };
    Task {
        causes,
        waits: Hist(vec![0, 10, 500, 20, 1]),
        history: History {
            last_ns: 9_999_000_000,
            quiet_run_ns: 750_000,
            period_ns: 231_000,
            period_run_ns: 118_000,
            least_run_ns: 90_000,
        },
        read_ns: 10_000_000_000,
        cpus_allowed: 4,
        points: points(&metrics).collect(),
        metrics,
        ..Task::default()
    }
}

fn events() -> Vec<Event> {
    let event = |n: u64, what| Event {
        at_s: 3_600.0 + n as f64 / 4.0,
        pid: 1300,
        comm: "stress-ng-sysinf".into(),
        what,
    };
    (0..60)
        .map(|n| match n % 4 {
            0 => event(
                n,
                What::Eviction {
                    cause: "call openat".into(),
                    from: 2,
                    to: n / 4 % 2,
                    left_us: 3.2,
                    arrived_us: 12.5 + n as f64,
                },
            ),
            1 => event(n, What::Move { why: "taken_rt".into(), from: 0, to: 2, wait_us: 33.0 }),
            2 => Event { pid: 7_000 + n, comm: "true".into(), ..event(n, What::Exit) },
            _ => {
                let text = "predict-c-us is 2000 us now, by ctl".into();
                Event { pid: 0, comm: String::new(), ..event(n, What::Note { text }) }
            }
        })
        .collect()
}

/// Four CPUs, two of them RT, and some of each class of tasks.
pub fn snapshot() -> Snapshot {
    let events = events();
    Snapshot {
        begin: Arc::new(Begin {
            ops_name: "artis_0.1.0_x86_64_unknown_linux_gnu".into(),
            kernel: "6.18.15+deb13-cloud-amd64".into(),
            preemption: "lazy".into(),
            rt_cpus: "2-3".into(),
            nrt_cpus: "0-1".into(),
            policy: [("predict", "least"), ("predict-c-us", "1000 µs"), ("predict-k", "8 periods")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            interval_s: 1.0,
            ..Begin::default()
        }),
        machine: Metrics {
            uptime_s: 3_723.4,
            interval_s: 1.0,
            attempts_per_s: 12_963.0,
            evictions_per_s: 430.0,
            residence_max_us: 44.2,
            residence_p99_us: 11.9,
            arrival_p50_us: 8.2,
            arrival_p99_us: 31.4,
            cpus: cpus().into_iter().enumerate().collect(),
            ..Metrics::default()
        },
        tasks: metrics().into_iter().map(|m| (m.pid, Arc::new(whole(m)))).collect(),
        nr_events: events.len() as u64,
        events: events.into(),
        lost: Lost::default(),
        ..Snapshot::default()
    }
}
