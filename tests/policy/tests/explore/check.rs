// SPDX-License-Identifier: GPL-2.0-only
//! All states that can be reached, breadth first, and what must hold in each of them.

use crate::machine::{Kind, STALE, Scene, State, Task};
use crate::model::{Machine, Plant};
use artis_policy::c::{ARTIS_SECTION_CALL, ARTIS_SECTION_NONE, ARTIS_SECTION_SLEEPING};
use std::collections::{HashMap, VecDeque};
use std::fmt::Arguments;

/// The state after a step, or what the step broke; and its name, if asked for.
type Step = (Result<State, String>, String);

/// Explores `scene` from all tasks asleep. Returns the number of states.
///
/// # Panics
/// When a property does not hold, with the steps that lead there; and beyond `limit` states.
pub fn explore(scene: &Scene, plant: Plant, limit: usize) -> usize {
    let mut start = State::default();
    for i in 0..scene.tasks.len() {
        start.task[i] = Task {
            runnable: false,
            section: ARTIS_SECTION_SLEEPING as u8,
            calm: scene.tasks[i] != Kind::Kernel,
        };
    }
    let start = start.canonical(scene);
    let mut known = HashMap::from([(start, None)]);
    let mut waiting = VecDeque::from([start]);
    while let Some(state) = waiting.pop_front() {
        for (number, (next, _)) in steps(scene, plant, &state, false).into_iter().enumerate() {
            let next = match next {
                Ok(next) => next.canonical(scene),
                Err(broken) => {
                    let mut names = path(scene, plant, &known, state);
                    names.push(steps(scene, plant, &state, true)[number].1.clone());
                    panic!("{broken}\nafter {}\n{state:?}\nin {scene:?}", names.join(", "));
                }
            };
            known.entry(next).or_insert_with(|| {
                waiting.push_back(next);
                Some((state, number))
            });
        }
        assert!(known.len() <= limit, "more than {limit} states");
    }
    known.len()
}

/// The names of the steps to `state`; tasks of one kind may change their names on the way.
fn path(
    scene: &Scene,
    plant: Plant,
    known: &HashMap<State, Option<(State, usize)>>,
    mut state: State,
) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(Some((before, number))) = known.get(&state) {
        names.push(steps(scene, plant, before, true)[*number].1.clone());
        state = *before;
    }
    names.reverse();
    names
}

/// All steps from a state.
fn steps(scene: &Scene, plant: Plant, state: &State, named: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut step = |name: Arguments, pushes: Option<bool>, act: &dyn Fn(&mut Machine)| {
        let mut machine = Machine { scene, plant, state: *state, worse: None };
        act(&mut machine);
        let name = if named { name.to_string() } else { String::new() };
        steps.push((broken(&machine, pushes).map_or(Ok(machine.state), Err), name));
    };
    for task in (0..scene.tasks.len() as u8).filter(|&t| !state.task[usize::from(t)].runnable) {
        step(format_args!("{task} wakes"), None, &|m| m.wake(task));
    }
    for cpu in scene.cpus() {
        let c = state.cpu[cpu];
        let rt = scene.is_rt(cpu);
        if rt && !c.busy {
            step(format_args!("real time comes to {cpu}"), None, &|m| m.rt_comes(cpu));
        }
        if c.busy {
            step(format_args!("real time leaves {cpu}"), None, &|m| m.rt_leaves(cpu));
            if !c.held {
                step(format_args!("real time stays on {cpu}"), None, &|m| {
                    m.state.cpu[cpu].held = true
                });
            }
        }
        for at in 0..state.ring[cpu].items().len() {
            if state.ring[cpu].items()[at] & STALE == 0 {
                step(format_args!("entry {at} of {cpu} is requeued"), None, &|m| {
                    m.requeue(cpu, at)
                });
            }
        }
        // an NRT CPU balances or does not, an RT CPU never
        for pass in if rt { &[false][..] } else { &[false, true] } {
            let pushes = (!rt).then_some(*pass);
            let how = if *pass { " and balances" } else { "" };
            if c.kicked {
                step(format_args!("{cpu} is kicked{how}"), pushes, &|m| {
                    m.dispatch(cpu, None, *pass)
                });
            }
            let Some(task) = c.curr else { continue };
            step(format_args!("slice of {task} on {cpu} ends{how}"), pushes, &|m| {
                m.dispatch(cpu, Some(task), *pass);
            });
            let sections: &[u32] = match state.in_call(task) {
                true => &[ARTIS_SECTION_CALL],
                false => &[ARTIS_SECTION_SLEEPING],
            };
            for &section in sections {
                step(format_args!("{task} on {cpu} sleeps{how}"), pushes, &|m| {
                    m.block(cpu, task, section, *pass);
                });
            }
        }
        let Some(task) = c.curr else { continue };
        let attempts = matches!(scene.kind(task), Kind::Attempting | Kind::Rt1 | Kind::PinnedRt);
        if attempts && !state.in_call(task) {
            step(format_args!("{task} on {cpu} enters"), None, &|m| m.attempt(cpu, task));
        }
        if state.in_call(task) {
            step(format_args!("{task} on {cpu} returns"), None, &|m| {
                m.state.task[usize::from(task)].section = ARTIS_SECTION_NONE as u8;
            });
        } else if !state.is_calm(task) && scene.kind(task) != Kind::Kernel {
            step(format_args!("{task} on {cpu} computes"), None, &|m| {
                m.state.task[usize::from(task)].calm = true;
            });
        }
    }
    steps
}

/// What does not hold after a step. `pushes`: it was a dispatch of an NRT CPU, and whether with a pass.
fn broken(machine: &Machine, pushes: Option<bool>) -> Option<String> {
    let (scene, state) = (machine.scene, &machine.state);
    for task in 0..scene.tasks.len() as u8 {
        let places = state.places(task);
        if places != usize::from(state.task[usize::from(task)].runnable) {
            return Some(format!("{task} is {}", if places == 0 { "lost" } else { "doubled" }));
        }
    }
    for cpu in scene.cpus() {
        let on_cpu = state.own[cpu].items().iter().chain(&state.cpu[cpu].curr);
        for &task in on_cpu {
            if scene.is_rt(cpu) && state.in_call(task) && scene.pinned_to(task).is_none() {
                return Some(format!("{task} is in the kernel on RT CPU {cpu}"));
            }
            if !scene.may_run(task, cpu) {
                return Some(format!("{task} may not run on {cpu}"));
            }
        }
        if state.is_asleep(cpu) && !state.own[cpu].is_empty() {
            return Some(format!("{cpu} sleeps while {:?} wait for it", state.own[cpu].items()));
        }
    }
    let asleep = (0..scene.nrt).any(|cpu| state.is_asleep(cpu));
    // each CPU that was woken will take one
    let woken = (0..scene.nrt).filter(|&cpu| state.cpu[cpu].kicked).count();
    let shared = state.nrt.items().iter().chain(state.ring.iter().flat_map(|r| r.items()));
    let waiting = shared.filter(|&&task| task & STALE == 0).count();
    if asleep && waiting > woken {
        return Some(format!("an NRT CPU sleeps while {waiting} wait"));
    }
    if let Some((before, after)) = machine.worse {
        return Some(format!("the worst load rose from {before} to {after}"));
    }
    if pushes.is_some() && machine.could_fill_idle() {
        return Some("an idle RT CPU is left though a calm task waits".into());
    }
    if pushes == Some(true) && machine.could_return() {
        return Some("an RT1+ task does not return".into());
    }
    None
}
