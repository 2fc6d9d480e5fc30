// SPDX-License-Identifier: GPL-2.0-only
//! From a scene to a plan: amounts become steps, choices are made, tasks are numbered.

use anyhow::{Context, Result, bail, ensure};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{Call, Phase, Plan, Rhythm, Scale, Task, links};
use crate::scene::{self, Amount, CallKind, Cpus, Group, Scene, Sched};

/// Above this an amount is a mistake: three centuries of computing, and room to add.
const MOST_STEPS: f64 = 9e18;

/// Makes the plan of a scene for a machine with these CPUs online. Pure: equal arguments
/// give equal plans.
///
/// # Errors
/// When the scene cannot be run here: a group without a CPU, work without an end, items
/// that nobody makes or takes, an amount that is no amount. Names the group.
pub fn build(scene: &Scene, scale: &Scale, online: &Cpus) -> Result<Plan> {
    check_scale(scale)?;
    ensure!(
        !scene.groups.is_empty(),
        "the scene has no group: nothing would run; give it at least one"
    );
    let mut tasks = Vec::new();
    for (index, group) in scene.groups.iter().enumerate() {
        let in_group = || format!("group {}", group.name);
        let cpus = cpus_here(group, online).with_context(in_group)?;
        let phases = phases(group, scene.limit_ms.is_some(), scale).with_context(in_group)?;
        ensure!(
            group.jitter_pct <= 100,
            "group {}: a jitter of {} % would make bursts negative; give 0 to 100",
            group.name,
            group.jitter_pct
        );
        for nth in 0..group.count {
            let (start_us, seed) = choices(scene.seed, tasks.len() as u64, group);
            tasks.push(Task {
                group: index,
                nth,
                sched: group.sched,
                cpus: cpus.clone(),
                cgroup: group.cgroup.clone(),
                start_us,
                memory_kb: group.memory_kb,
                jitter_pct: group.jitter_pct,
                seed,
                takes: Vec::new(),
                posts: Vec::new(),
                phases: phases.clone(),
            });
        }
    }
    let links = links::join(&scene.groups, &mut tasks)?;
    Ok(Plan {
        scene: scene.name.clone(),
        why: scene.why.clone(),
        good: scene.good.clone(),
        scale: *scale,
        limit_us: scene.limit_ms.map(|ms| ms.saturating_mul(1000)),
        rt_cpus: scene.rt_cpus.clone(),
        groups: scene.groups.iter().map(|g| g.name.clone()).collect(),
        tasks,
        links,
    })
}

fn check_scale(scale: &Scale) -> Result<()> {
    for (what, value) in [
        ("steps per microsecond", scale.steps_per_us),
        ("steps per iteration", scale.steps_per_loop),
        ("scale of work", scale.work),
    ] {
        ensure!(
            value.is_finite() && value > 0.0,
            "the {what} is {value}: no work can be measured by it; give a number above 0"
        );
    }
    Ok(())
}

/// The group's CPUs that exist; `None` where it may run on all of them, so that a mask
/// that is merely wide is no affinity at all.
fn cpus_here(group: &Group, online: &Cpus) -> Result<Option<Cpus>> {
    let Some(wanted) = &group.cpus else { return Ok(None) };
    let here = Cpus(wanted.0.intersection(&online.0).copied().collect());
    ensure!(
        !here.0.is_empty(),
        "may run on CPUs {wanted} only, but this machine has CPUs {online} online: \
         it could not run at all; change the group's CPUs or run on a wider machine"
    );
    Ok((here != *online).then_some(here))
}

/// Start and seed of the task with this index.
fn choices(seed: u64, index: u64, group: &Group) -> (u64, u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(index);
    let spread_us = below(random.next_u64(), group.spread_us);
    (group.start_us.saturating_add(spread_us), random.next_u64())
}

/// A random word, evenly below `bound`; 0 for 0.
fn below(word: u64, bound: u64) -> u64 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

fn phases(group: &Group, limited: bool, scale: &Scale) -> Result<Vec<Phase>> {
    ensure!(!group.phases.is_empty(), "has no phase: its tasks would do nothing; give it one");
    let forks = group.phases.iter().any(|p| p.call.is_some_and(|c| c.kind == CallKind::Fork));
    ensure!(
        !forks || !matches!(group.sched, Sched::Deadline { .. }),
        "makes children with `fork`, which the kernel refuses to DEADLINE tasks; \
         take another policy or another call"
    );
    group
        .phases
        .iter()
        .enumerate()
        .map(|(i, p)| phase(p, limited, scale).with_context(|| format!("phase {}", i + 1)))
        .collect()
}

fn phase(phase: &scene::Phase, limited: bool, scale: &Scale) -> Result<Phase> {
    let by_items = matches!(phase.rhythm, scene::Rhythm::Items { .. });
    ensure!(
        limited || by_items || phase.work.is_some() || phase.duration_ms.is_some(),
        "has neither work nor duration, and the scene has no limit: it would never end; \
         give one of the three"
    );
    let work_steps = match phase.work {
        Some(work) => steps(work, scale, scale.work)?,
        None => u64::MAX,
    };
    let rhythm = match phase.rhythm {
        scene::Rhythm::Steady => Rhythm::Steady,
        scene::Rhythm::Sleep { every, sleep_us } => {
            Rhythm::Sleep { every_steps: steps(every, scale, 1.0)?, sleep_us }
        }
        scene::Rhythm::Periodic { period_us, burst, deadline_us } => {
            ensure!(period_us > 0, "has a period of 0; give its length");
            Rhythm::Periodic { period_us, burst_steps: steps(burst, scale, 1.0)?, deadline_us }
        }
        scene::Rhythm::Items { burst } => Rhythm::Items { burst_steps: steps(burst, scale, 1.0)? },
    };
    let call = match phase.call {
        Some(call) => Some(Call { kind: call.kind, every_steps: steps(call.every, scale, 1.0)? }),
        None => None,
    };
    Ok(Phase {
        work_steps,
        duration_us: phase.duration_ms.map(|ms| ((ms as f64) * 1000.0 * scale.work).ceil() as u64),
        rhythm,
        call,
    })
}

/// An amount in steps, at least 1.
fn steps(amount: Amount, scale: &Scale, factor: f64) -> Result<u64> {
    let (value, rate, unit) = match amount {
        Amount::Loops(loops) => (loops, scale.steps_per_loop, "iterations"),
        Amount::Us(us) => (us, scale.steps_per_us, "µs"),
    };
    let steps = value * rate * factor;
    if !steps.is_finite() || value <= 0.0 || steps > MOST_STEPS {
        bail!("{value} {unit} is no amount of computing; give a number above 0 that can be done");
    }
    Ok((steps.round() as u64).max(1))
}
