// SPDX-License-Identifier: GPL-2.0-only
//! How many instructions a task takes to wake up, from the interrupt of its timer to user mode.
//! Virtual time counts instructions in these guests.

use anyhow::{Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::figure::{compared, figure};
use crate::guest::{PATIENCE, has_symbol, pause, puts_back_late, until};
use crate::load::Workers;
use crate::policy::{EXT, Policy};
use crate::wakes::{Took, Wakes};
use crate::worker::{Kind, Spec};

/// Catches: what the scheduler adds to the wake-up of a hard real-time task; an ordinary task that waits
/// for a tick because the one on its CPU, which is to make way, could not migrate just then.
pub const RT0_WAKES: Scenario = Scenario {
    name: "rt0_wakes",
    what: "a FIFO task on an RT CPU wakes up in few more instructions than on a shielded CPU \
           where one task computes",
    scope: Scope::Everywhere,
    boot: &["--icount", "--cpus", "2"],
    secs: 36,
    host: Host::Shared,
    complaints: &[],
    run: rt0_wakes,
};

/// Catches: an RT1+ task that wakes up late, as one that waits for the end of a slice.
pub const RT1_WAKES: Scenario = Scenario {
    name: "rt1_wakes",
    what: "an adopted periodic task wakes up as it does in SCHED_FIFO, on RT CPUs",
    scope: Scope::First,
    boot: &["--icount"],
    secs: 37,
    host: Host::Shared,
    complaints: &[],
    run: rt1_wakes,
};

/// Of the busy shield's instructions: 0.98 were seen on 7.0 PREEMPT_RT, 1.02 on 7.3.
const RT0_MOST: f64 = 1.03;
/// To 6.18, where it calls ops.enqueue and ops.cpu_release, too (docs/decisions/0003-put-back.md); 1.065 to
/// 1.068 were seen.
const RT0_RELEASE_MOST: f64 = 1.08;
/// To 6.13, which lacks scx_bpf_now() as well; 1.104 to 1.113 were seen on 6.12.
const RT0_NO_NOW_MOST: f64 = 1.13;
/// Of an ordinary task at the 99th percentile, ns: 13,000 to 25,500 were seen, 3,875,000 where it waits for
/// a tick (7.3), and 2,017,000 where the task that a kernel thread of PREEMPT_RT has preempted, which serves
/// the timer, goes on to the end of its slice.
const ORDINARY_MOST: u64 = 300_000;
/// How many times the instructions of a SCHED_FIFO task under the kernel's default.
const RT1_MOST: f64 = 2.2;
/// Of the turns that are compared.
const ORDER: &str = "ABBA, 256 wake-ups each";
/// The CPU on which the task wakes up.
const RT_CPU: u32 = 1;

fn rt0_wakes(ctx: &Ctx) -> Result<Outcome> {
    let ctx = &ctx.with_rt(Cpus::one(RT_CPU))?;
    let mut observer = Wakes::attach()?;
    let s1 = shield(ctx, &mut observer)?;
    let ([a1, a2], ordinary) = artis(ctx, &mut observer)?;
    let s2 = shield(ctx, &mut observer)?;
    let (artis, shield) = (Took::usual_ns(&[a1, a2]), Took::usual_ns(&[s1, s2]));
    let ratio = artis / shield;
    say(&format!("usual wake-ups: {ratio:.3} of the busy shield's instructions"));
    compared("usual", format!("{artis:.0}"), "instructions", ORDER);
    compared("usual_default", format!("{shield:.0}"), "instructions", ORDER);
    compared("usual_ratio", format!("{ratio:.2}"), "×", ORDER);
    let most = match (puts_back_late()?, has_symbol("scx_bpf_now")?) {
        (true, _) => RT0_MOST,
        (false, true) => RT0_RELEASE_MOST,
        (false, false) => RT0_NO_NOW_MOST,
    };
    ensure!(ratio <= most, "wake-ups take {ratio:.3} of the busy shield's instructions");
    let late_ns = ordinary.percentile_ns(99);
    figure("ordinary_99", late_ns, "instructions");
    ensure!(
        late_ns <= ORDINARY_MOST,
        "an ordinary task bound to the CPU wakes up {late_ns} ns late"
    );
    Ok(Outcome::Passed)
}

/// Under the kernel's default, all but one computing task is bound away from the CPU.
fn shield(ctx: &Ctx, observer: &mut Wakes) -> Result<Took> {
    rt0("shield", ctx, observer, |spec| spec.on(ctx.nrt), |spec| spec.on(ctx.rt))
}

/// All tasks may run on the CPU: two turns. Then an ordinary one that is bound to it, and beside it one
/// that enters the kernel all the time, and is in the hook of calls at a part of the wake-ups.
fn artis(ctx: &Ctx, observer: &mut Wakes) -> Result<([Took; 2], Took)> {
    let mut daemon = ctx.load(&[])?;
    let mut turn = || rt0("artis", ctx, observer, |spec| spec, |spec| spec);
    let took = [turn()?, turn()?];
    let bound = [Kind::Sleep, Kind::Call].map(|kind| Spec::new(kind).on(ctx.rt));
    let mut workers = Workers::start("ordinary", bound)?;
    workers.wait_begun()?;
    let ordinary = observer.watch(workers.pid(0), ctx.nrt)?;
    say(&format!("ordinary: {ordinary}"));
    drop(workers);
    daemon.ensure_loaded("after the wake-ups")?;
    daemon.finish()?;
    Ok((took, ordinary))
}

fn rt0(
    what: &str,
    ctx: &Ctx,
    observer: &mut Wakes,
    others: impl Fn(Spec) -> Spec,
    beside: impl Fn(Spec) -> Spec,
) -> Result<Took> {
    use Kind::{Call, Fork, Mixed, Sleep, Spin, Touch};
    let sleeper = Spec::new(Sleep).on(ctx.rt).fifo(70);
    let loads = [Spin, Mixed, Mixed, Call, Fork, Touch].map(|kind| others(Spec::new(kind)));
    let specs = [sleeper, beside(Spec::new(Spin))].into_iter().chain(loads);
    let mut workers = Workers::start("background", specs)?;
    workers.wait_begun()?;
    pause(0.5);
    let took = observer.watch(workers.pid(0), ctx.nrt)?;
    say(&format!("{what}: {took}"));
    Ok(took)
}

/// As often where the task may run on NRT CPUs only, and another CPU than its own is interrupted for it:
/// 3.2 and 3.3 were seen, and 15 and 45 where none is interrupted.
const RT1_NRT_MOST: f64 = 4.0;
/// After the adoption, s: a task is new to the scheduler then, and wakes up on NRT CPUs two to four times.
const SETTLE: f64 = 0.1;
/// The task that may run on any CPU, and the one that may on NRT CPUs only.
const FREE: usize = 0;
const BOUND: usize = 1;
/// Where an RT1+ task wakes up, percent.
const RT1_ON_RT_MIN_PCT: usize = 99;

fn rt1_wakes(ctx: &Ctx) -> Result<Outcome> {
    use Kind::{Call, Enter, Mixed, Periodic, Spin};
    let mut observer = Wakes::attach()?;
    let firm = Spec::new(Periodic).fifo(50);
    let firm = [firm.clone(), firm.on(ctx.nrt)];
    let nrt = [Spin, Spin, Spin, Spin, Enter, Enter, Call, Mixed].map(Spec::new);
    let mut workers = Workers::start("waking", firm.into_iter().chain(nrt))?;
    workers.wait_begun()?;
    let mut turn = |one: usize, what: &str| -> Result<Took> {
        workers.freeze_one(FREE + BOUND - one, true)?;
        let took = observer.watch(workers.pid(one), ctx.nrt)?;
        workers.freeze_one(FREE + BOUND - one, false)?;
        let where_to = if one == BOUND { "on NRT CPUs" } else { "anywhere" };
        say(&format!("{what}, {where_to}: {took}, {} % on RT CPUs", took.on_pct(ctx.rt)));
        Ok(took)
    };
    let (free, bound) = (turn(FREE, "SCHED_FIFO")?, turn(BOUND, "SCHED_FIFO")?);
    workers.freeze(true)?;
    let mut daemon = ctx.load(&["--adopt"])?;
    workers.freeze(false)?;
    ctx.nrt.bind(0)?;
    for one in [FREE, BOUND] {
        let tid = workers.pid(one).cast_signed();
        until(
            "an RT1+ task",
            PATIENCE,
            || Ok(Policy::of(tid)?.is_some_and(|is| is.policy == EXT)),
        )?;
    }
    pause(SETTLE);
    let free_adopted = [turn(FREE, "adopted")?, turn(FREE, "adopted")?];
    let bound_adopted = [turn(BOUND, "adopted")?, turn(BOUND, "adopted")?];
    daemon.ensure_loaded("after the wake-ups")?;
    daemon.finish()?;
    let free = [free, turn(FREE, "SCHED_FIFO")?];
    let bound = [bound, turn(BOUND, "SCHED_FIFO")?];
    for (name, most, adopted, default) in [
        ("usual_ratio", RT1_MOST, &free_adopted, free),
        ("usual_ratio_nrt", RT1_NRT_MOST, &bound_adopted, bound),
    ] {
        let ratio = Took::usual_ns(adopted) / Took::usual_ns(&default);
        compared(name, format!("{ratio:.2}"), "×", ORDER);
        ensure!(ratio <= most, "{name}: {ratio:.3} of SCHED_FIFO's instructions");
    }
    let on_rt_pct = free_adopted.map(|took| took.on_pct(ctx.rt));
    figure("on_rt_cpus", on_rt_pct[0].min(on_rt_pct[1]), "%");
    let there = on_rt_pct.iter().all(|pct| *pct >= RT1_ON_RT_MIN_PCT);
    ensure!(there, "of a hundred wake-ups, so many were on RT CPUs: {on_rt_pct:?}");
    Ok(Outcome::Passed)
}
