// SPDX-License-Identifier: GPL-2.0-only
//! What `scx_artis ctl` asks a running daemon for: checked whole before
//! anything changes, then done, then remembered for the next start.

use std::collections::BTreeMap;

use anyhow::Result;

use super::classes::facts::TaskId;
use super::classes::{Classes, Informed};
use super::setup::{Seen, Setup};
use crate::abi::{artis_policy, artis_topology};
use crate::config::{CpuSet, KNOBS, Knob, Partition};
use crate::control::{Class, Reply, Request, State, Treatment};
use crate::exit::Failure;

/// A scheduler in charge, as far as it can be changed.
pub trait InCharge {
    /// Writes all policy constants and the sequence number.
    ///
    /// # Errors
    /// When BPF has no policy.
    fn set_policy(&mut self, wanted: &artis_policy) -> Result<()>;

    /// Takes over a new partition: `wanted` has the sets of the CPUs and the sequence number.
    ///
    /// # Errors
    /// When BPF does not take it. Then the one before is in force.
    fn repartition(
        &mut self,
        partition: &Partition,
        wanted: &artis_policy,
        topology: &artis_topology,
    ) -> Result<()>;

    /// Changes how this task, and children that it has from then on, are treated. Returns how it was
    /// treated before; `None`: it has ended, and perhaps another one has its thread id.
    ///
    /// # Errors
    /// When BPF does not take it.
    fn set_class(&mut self, task: TaskId, to: &Treatment) -> Result<Option<Treatment>>;
}

/// Does what `request` asks for. `setup` describes the scheduler in charge before and after,
/// `classes` how its tasks are treated; `look` looks at the machine.
///
/// # Errors
/// When something is wrong with the request ([`Failure::Config`]) or the scheduler does not
/// take it ([`Failure::NotTaken`]). Then nothing has changed.
pub fn answer(
    request: &Request,
    setup: &mut Setup,
    scheduler: &mut impl Informed,
    classes: &mut Classes,
    look: impl FnOnce() -> Result<Seen>,
) -> Result<Reply, Failure> {
    match request {
        Request::Get => {
            let state = State::new(&setup.partition, &setup.wanted.values, setup.policy.seq);
            Ok(Reply::State(state))
        }
        Request::Set { name, value } => set(name, value, setup, scheduler),
        Request::RtCpus { cpus } => {
            let rt = cpus
                .parse()
                .map_err(|error| Failure::Told { code: 2, text: format!("rt-cpus: {error}") })?;
            let reply = rt_cpus(rt, setup, scheduler, look()?)?;
            // which real-time tasks are bound to RT CPUs is another question now
            classes.repartitioned(setup, scheduler);
            Ok(reply)
        }
        Request::Class { pid, class } => set_class(*pid, *class, scheduler, classes),
        Request::Rule(request) => classes.answer(request, setup, scheduler),
    }
}

fn set(
    name: &str,
    value: &str,
    setup: &mut Setup,
    scheduler: &mut impl InCharge,
) -> Result<Reply, Failure> {
    let knob = Knob::named(name)?;
    let before = (knob.get)(&setup.wanted.values);
    let values = setup.wanted.values.with(name, value)?;
    let after = (knob.get)(&values);
    if after != before {
        let mut policy = setup.policy;
        for knob in KNOBS {
            knob.store(&values, &mut policy);
        }
        policy.seq = policy.seq.wrapping_add(1);
        scheduler.set_policy(&policy).map_err(Failure::NotTaken)?;
        setup.policy = policy;
        setup.wanted.values = values;
        setup.wanted.seq = policy.seq;
    }
    let was = match after == before {
        true => "already".to_owned(),
        false => format!("was {}", knob.text(before)),
    };
    let text = format!("{name} is {} ({was})", with_unit(knob, after));
    Ok(Reply::Done { text, warnings: Vec::new() })
}

fn set_class(
    pid: i32,
    class: Class,
    scheduler: &mut impl InCharge,
    classes: &mut Classes,
) -> Result<Reply, Failure> {
    let what = match class {
        Class::Nrt => "NRT".to_owned(),
        Class::Rt1 { priority, round_robin } if Class::PRIORITIES.contains(&priority) => {
            format!("RT1+ {priority}{}", if round_robin { ", round robin" } else { "" })
        }
        Class::Rt1 { priority, .. } => {
            let (low, high) = (Class::PRIORITIES.start(), Class::PRIORITIES.end());
            let text =
                format!("{priority} is no priority of an RT1+ task; {low} to {high}, please");
            return Err(Failure::Told { code: 2, text });
        }
    };
    let to = Treatment { class, by_hand: true, ..Treatment::default() };
    let gone = || Failure::Told { code: 2, text: format!("there is no task {pid}: has it ended?") };
    let task = TaskId::now(pid)?.ok_or_else(gone)?;
    scheduler.set_class(task, &to).map_err(Failure::NotTaken)?.ok_or_else(gone)?;
    classes.set_by_hand(task, to);
    let text = format!("task {pid} is {what}, and so are the children that it has from now on");
    Ok(Reply::Done { text, warnings: Vec::new() })
}

fn with_unit(knob: &Knob, value: u64) -> String {
    format!("{} {}", knob.text(value), knob.unit()).trim_end().to_owned()
}

/// A CPU came or went: the scheduler goes on with those that are online, `seen` now. Returns a line
/// for the user.
///
/// # Errors
/// When no RT CPU or no NRT CPU is left ([`Failure::Config`]), or the scheduler does not take the
/// partition.
pub fn follow_cpus(
    setup: &mut Setup,
    scheduler: &mut impl Informed,
    classes: &mut Classes,
    seen: &Seen,
) -> Result<String, Failure> {
    let (partition, lost) = Partition::after_hotplug(&setup.wanted.rt, &seen.machine)?;
    take_over(partition, setup, scheduler, seen)?;
    classes.repartitioned(setup, scheduler);
    let missing = if lost.is_empty() { String::new() } else { format!(" ({lost} offline)") };
    Ok(format!("RT CPUs are {}{missing}, NRT CPUs {}", setup.partition.rt, setup.partition.nrt))
}

fn take_over(
    partition: Partition,
    setup: &mut Setup,
    scheduler: &mut impl InCharge,
    seen: &Seen,
) -> Result<(), Failure> {
    let mut topology = seen.layout.topology(&partition);
    keep_cores(setup, &partition, &mut topology);
    let mut policy = setup.policy;
    policy.cpu_kind = partition.kinds();
    policy.seq = policy.seq.wrapping_add(1);
    scheduler.repartition(&partition, &policy, &topology).map_err(Failure::NotTaken)?;
    setup.policy = policy;
    setup.topology = topology;
    setup.warnings = partition.split_cores(&seen.machine);
    setup.partition = partition;
    setup.wanted.seq = policy.seq;
    Ok(())
}

/// A core keeps the number by which BPF counts its real-time tasks, also while the CPU is away that
/// gave it.
fn keep_cores(before: &Setup, partition: &Partition, topology: &mut artis_topology) {
    let cpus = partition.rt.or(&partition.nrt);
    let stayed = cpus.and(&before.partition.rt.or(&before.partition.nrt));
    let number = |cpu| (topology.core[cpu], before.topology.core[cpu]);
    let numbers: BTreeMap<_, _> = stayed.iter().map(number).collect();
    for cpu in cpus.iter() {
        let core = &mut topology.core[cpu];
        *core = numbers.get(core).copied().unwrap_or(*core);
    }
}

fn rt_cpus(
    rt: CpuSet,
    setup: &mut Setup,
    scheduler: &mut impl InCharge,
    seen: Seen,
) -> Result<Reply, Failure> {
    let partition = Partition::new(&rt, &seen.machine)?;
    let before = setup.partition.rt.to_string();
    if partition != setup.partition {
        take_over(partition, setup, scheduler, &seen)?;
    }
    let was = match before == rt.to_string() {
        true => "already".to_owned(),
        false => format!("were {before}"),
    };
    // remembered even if it is no change: a lost CPU may not be wanted back
    setup.wanted.rt = rt;
    let text =
        format!("RT CPUs are {} ({was}), NRT CPUs {}", setup.partition.rt, setup.partition.nrt);
    Ok(Reply::Done { text, warnings: setup.warnings.clone() })
}

#[cfg(test)]
pub(super) mod tests;
