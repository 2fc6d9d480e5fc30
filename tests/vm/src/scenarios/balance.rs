// SPDX-License-Identifier: GPL-2.0-only
//! The balance between CPUs that real-time tasks use in part: the worked examples of the
//! model (section 5), by an observer of its own.
//!
//! Occupancy is defined in [`crate::spread`]. What is demanded is about run time as the
//! guest's kernel sees it: four virtual CPUs on two shared cores do not run at equal
//! speed, and no scheduler in the guest can know. The work done is printed beside it.
//! The real-time share is the one that the observer measured, not the one asked for.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::figure::figure;
use crate::guest::pause;
use crate::load::Workers;
use crate::occupancy::{Occupancy, Stand};
use crate::spread::{Snapshot, mean_cv};
use crate::worker::{Kind, Spec};

/// Catches: a balancer that counts tasks and not what real-time tasks leave of a CPU, or
/// counts it without fractions; a computing task that stays where it was put.
pub const TWO_CPUS: Scenario = Scenario {
    name: "two_cpus",
    what: "a FIFO task of duty 3/4 on one of two CPUs: five tasks are spread 4:1, each gets 1/4",
    scope: Scope::First,
    boot: &["--icount=1", "--cpus", "2"],
    secs: 16,
    host: Host::Shared,
    complaints: &[],
    run: two_cpus,
};

/// After a change of the machine, before what counts.
const SETTLE: f64 = 2.0;
/// Between two looks at where the tasks wait.
const LOOK: Duration = Duration::from_millis(25);
/// Run time on an RT CPU below which an eviction is a wasted move; printed only, here.
const WASTED_NS: u64 = 1_000_000;

/// What was seen in a time span.
struct Span {
    spread: Snapshot,
    /// Units of computing of each task.
    work: Vec<f64>,
    /// Mean number of tasks in each place.
    stands: BTreeMap<Stand, f64>,
}

impl Span {
    /// Looks for so long. The caller's thread keeps to the NRT CPUs meanwhile.
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    fn of(ctx: &Ctx, observer: &mut Occupancy, workers: &Workers, secs: f64) -> Result<Self> {
        ctx.nrt.bind(0)?;
        let (before, counts, began) = (observer.snapshot()?, workers.counts(), Instant::now());
        let (mut stands, mut looks) = (BTreeMap::<Stand, f64>::new(), 0.0);
        while began.elapsed().as_secs_f64() < secs {
            std::thread::sleep(LOOK);
            for stand in observer.stands()? {
                *stands.entry(stand).or_default() += 1.0;
            }
            looks += 1.0;
        }
        let work = workers.counts().iter().zip(counts).map(|(a, b)| (a - b) as f64).collect();
        let spread = observer.snapshot()?.since(&before);
        ctx.all().bind(0)?;
        stands.values_mut().for_each(|n| *n /= looks);
        Ok(Self { spread, work, stands })
    }

    fn tell(&self, who: &str) {
        let (parts, cv) = mean_cv(&self.spread.parts());
        say(&format!("{who}: {}", self.spread.table()));
        say(&format!(
            "  run time {parts:.3} of a CPU each, CV {cv:.3}; work CV {:.3}",
            mean_cv(&self.work).1
        ));
        let stands: Vec<String> = self
            .stands
            .iter()
            .map(|(stand, n)| match stand {
                Stand::Runs(cpu) => format!("on CPU {cpu} {n:.2}"),
                Stand::Queued(queue) => format!("in queue {queue:#x} {n:.2}"),
                Stand::Waits(cpu) => format!("waiting on CPU {cpu} {n:.2}"),
                Stand::Sleeps => format!("asleep {n:.2}"),
                Stand::Absent => format!("gone {n:.2}"),
            })
            .collect();
        say(&format!("  looked at: {}", stands.join(", ")));
    }
}

/// FIFO tasks of this duty, one bound to each of these CPUs.
fn duties(cpus: Cpus, priority: i32, percent: u32) -> Result<Workers> {
    let spec = |c| Spec { duty: percent, ..Spec::new(Kind::Duty).on(Cpus::one(c)).fifo(priority) };
    let mut workers = Workers::start("duty", cpus.iter().map(spec))?;
    workers.wait_begun()?;
    Ok(workers)
}

/// Of the tasks' number on CPU 1, which is 1 at a duty of 3/4; 1.00 was seen. A balancer that only
/// counts tasks puts two or three there.
const TWO_CPUS_OFF: f64 = 0.2;
/// Of each task's part of a CPU, relative.
const PART_OFF: f64 = 0.05;

fn two_cpus(ctx: &Ctx) -> Result<Outcome> {
    let ctx = &ctx.with_rt(Cpus::one(1))?;
    let mut observer = Occupancy::attach(ctx.rt, WASTED_NS)?;
    let mut workers = Workers::start("five", [Kind::Spin; 5].map(Spec::new))?;
    workers.wait_begun()?;
    observer.watch((0..workers.len()).map(|i| workers.pid(i)))?;
    let rt = duties(ctx.rt, 50, 75)?;
    pause(SETTLE);
    Span::of(ctx, &mut observer, &workers, 4.0)?.tell("kernel's default");

    let mut daemon = ctx.load(&[])?;
    pause(SETTLE);
    let seen = Span::of(ctx, &mut observer, &workers, 10.0)?;
    seen.tell("artis");
    daemon.ensure_loaded("after the window")?;
    drop((rt, workers));
    daemon.finish()?;

    let s = &seen.spread;
    let share = s.rt_share(1);
    ensure!((0.55..=0.95).contains(&share), "the FIFO task took {share:.2} of CPU 1");
    let (found, expected) = (s.occupancy(1), s.expected(1));
    figure("tasks_on_rt_cpu", format!("{found:.2}"), "tasks");
    ensure!(
        (found - expected).abs() <= TWO_CPUS_OFF,
        "{found:.2} tasks on CPU 1, expected {expected:.2}"
    );
    let fair = (s.free(0) + s.free(1)) / 5.0;
    for (i, part) in s.parts().iter().enumerate() {
        ensure!(
            (part / fair - 1.0).abs() <= PART_OFF,
            "task {i} got {part:.3} of a CPU, a fifth of what was left is {fair:.3}"
        );
    }
    Ok(Outcome::Passed)
}

/// Catches: the same for several RT CPUs and shares; tasks that progress unequally because
/// whole tasks do not fit (13 on four CPUs) and nobody moves on.
pub const ANNEX_B: Scenario = Scenario {
    name: "annex_b",
    what: "13 tasks, a FIFO task on each of CPUs 1-3: L(RT) is 13/(M+3) at each duty, all progress equally",
    scope: Scope::Nightly,
    boot: &["--icount"],
    secs: 75,
    host: Host::Shared,
    complaints: &[],
    run: annex_b,
};

/// Of the tasks' number on each RT CPU. At duty 90 %, 3 are there instead of 1 where loads do not count
/// real-time tasks.
const ANNEX_B_OFF: f64 = 0.35;
/// Coefficient of variation of the tasks' run time. 0.087, 0.030, 0.064 and 0.004 were seen on 2026-11-23
/// at the four duties, so this fails: 13 tasks do not fit on four CPUs, and those that do not are not
/// moved on evenly. 1.0 at duty 90 % where loads do not count real-time tasks.
const VARIATION: f64 = 0.05;
/// Duties of the FIFO tasks, percent.
const DUTIES: [u32; 4] = [0, 50, 75, 90];

fn annex_b(ctx: &Ctx) -> Result<Outcome> {
    let ctx = &ctx.with_rt(Cpus(0b1110))?;
    let mut observer = Occupancy::attach(ctx.rt, WASTED_NS)?;
    let mut workers = Workers::start("annexb", [Kind::Spin; 13].map(Spec::new))?;
    workers.wait_begun()?;
    observer.watch((0..workers.len()).map(|i| workers.pid(i)))?;
    let one = |duty| -> Result<Snapshot> {
        let on = if duty == 0 { Cpus(0) } else { ctx.rt };
        let rt = duties(on, 99, duty)?;
        pause(SETTLE);
        let seen = Span::of(ctx, &mut observer, &workers, 10.0)?;
        drop(rt);
        seen.tell(&format!("duty {duty} %"));
        Ok(seen.spread)
    };
    let mut daemon = ctx.load(&[])?;
    let seen: Vec<Snapshot> = DUTIES.into_iter().map(one).collect::<Result<_>>()?;
    daemon.ensure_loaded("after the windows")?;
    drop(workers);
    daemon.finish()?;
    for (duty, s) in DUTIES.into_iter().zip(seen) {
        let (_, cv) = mean_cv(&s.parts());
        let off = |cpu| (s.occupancy(cpu) - s.expected(cpu)).abs();
        let off = ctx.rt.iter().map(off).fold(0.0, f64::max);
        figure(&format!("off_duty_{duty}"), format!("{off:.2}"), "tasks");
        figure(&format!("variation_duty_{duty}"), format!("{:.1}", cv * 100.0), "%");
        for cpu in ctx.rt.iter() {
            let (found, expected) = (s.occupancy(cpu), s.expected(cpu));
            ensure!(
                (found - expected).abs() <= ANNEX_B_OFF,
                "duty {duty} %: {found:.2} tasks on CPU {cpu}, expected {expected:.2}"
            );
        }
        ensure!(cv <= VARIATION, "duty {duty} %: run time varies by {cv:.3}");
    }
    Ok(Outcome::Passed)
}
