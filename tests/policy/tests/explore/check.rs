// SPDX-License-Identifier: GPL-2.0-only
//! All states that can be reached, breadth first, and what must hold in each of them.

use crate::machine::{Cpu, Kind, Queue, Scene, State, Task};
use crate::model::{Machine, Order};
use crate::plant::Plant;
use artis_policy::c::{
    ARTIS_QUEUE_BOUND as BOUND, ARTIS_QUEUE_CALM as CALM, ARTIS_QUEUE_OWN as OWN,
    ARTIS_SECTION_CALL, ARTIS_SECTION_NONE, ARTIS_SECTION_SLEEPING,
};
use std::collections::{HashMap, VecDeque};
use std::fmt::Arguments;

/// The state after a step, or what the step broke; and its name, if asked for.
type Step = (Result<State, String>, String);

/// Every way in which the heads of the own, bound and calm queue and the task that ran may follow
/// one another: the task first or last, and each queue once before the others.
const ORDERS: [Order; 6] = [
    [1, 2, 3, 0],
    [3, 1, 2, 0],
    [2, 3, 1, 0],
    [1, 2, 3, 9_000],
    [3, 1, 2, 9_000],
    [2, 3, 1, 9_000],
];

/// Explores `scene` from all tasks asleep. Returns the number of states.
///
/// # Panics
/// When a property does not hold, with the steps that lead there; and beyond `limit` states.
pub fn explore(scene: &Scene, plant: Plant, limit: usize) -> usize {
    let mut start = State::default();
    for (task, actor) in start.task.iter_mut().zip(scene.tasks) {
        *task = Task {
            runnable: false,
            section: ARTIS_SECTION_SLEEPING as u8,
            calm: actor.kind != Kind::Kernel,
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

/// The names of the steps to `state`; equal tasks may change their names on the way.
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
    let mut step = |name: Arguments, looked: Option<usize>, act: &dyn Fn(&mut Machine)| {
        let mut machine = Machine::new(scene, plant, *state);
        act(&mut machine);
        let name = if named { name.to_string() } else { String::new() };
        steps.push((broken(&machine, state, looked).map_or(Ok(machine.state), Err), name));
    };
    for task in (0..scene.tasks.len() as u8).filter(|&t| !state.task[usize::from(t)].runnable) {
        step(format_args!("{task} wakes"), None, &|m| m.wake(task));
    }
    for cpu in scene.ids() {
        let c = state.cpu[cpu];
        if !c.busy {
            step(format_args!("real time comes to {cpu}"), None, &|m| m.rt_comes(cpu));
        } else if !c.held {
            step(format_args!("real time stays on {cpu}"), None, &|m| m.rt_stays(cpu));
        } else {
            step(format_args!("{cpu} ticks"), None, &|m| m.offer(cpu));
        }
        for order in ORDERS {
            if c.busy {
                step(format_args!("real time leaves {cpu}"), None, &|m| m.rt_leaves(cpu, order));
                continue;
            }
            if c.kicked {
                step(format_args!("{cpu} is kicked"), Some(cpu), &|m| {
                    m.dispatch(cpu, c.curr, order);
                });
            }
            if scene.groups() > 1 && !scene.is_rt(cpu) && (c.kicked || c.curr.is_some()) {
                step(format_args!("{cpu} balances"), None, &|m| m.balance(cpu, order));
            }
            let Some(task) = c.curr else { continue };
            step(format_args!("slice of {task} on {cpu} ends"), Some(cpu), &|m| {
                m.dispatch(cpu, Some(task), order);
            });
            if scene.kind(task) == Kind::Rt1 && !scene.is_rt(cpu) {
                step(format_args!("{task} on {cpu} wants to return in vain"), None, &|m| {
                    m.raced = true;
                    m.dispatch(cpu, Some(task), order);
                });
            }
            let section = match state.in_call(task) {
                true => ARTIS_SECTION_CALL,
                false => ARTIS_SECTION_SLEEPING,
            };
            step(format_args!("{task} on {cpu} sleeps"), None, &|m| {
                m.block(cpu, task, section, order);
            });
            let attempts = matches!(scene.kind(task), Kind::Attempting | Kind::Rt1);
            if attempts && !state.in_call(task) {
                step(format_args!("{task} on {cpu} enters"), None, &|m| {
                    m.attempt(cpu, task, order);
                });
            }
        }
        let Some(task) = c.curr.filter(|_| !c.busy) else { continue };
        if !state.in_user_mode(task) && scene.kind(task) != Kind::Kernel {
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

/// Tasks that wait where `cpu` takes from, its own group's queues and those of others, and may run there.
fn waiting_for(machine: &Machine, cpu: usize) -> Vec<u8> {
    let (scene, state) = (machine.scene, &machine.state);
    let mut queues = vec![&state.own[cpu]];
    queues.extend(&state.calm);
    if !scene.is_rt(cpu) {
        queues.extend(&state.bound);
    }
    let late = state.late.items().iter().filter(|&&task| {
        let queue = machine.queue_of(&machine.facts(task, cpu, false));
        queue == CALM || (queue == BOUND && !scene.is_rt(cpu))
    });
    let tasks = queues.into_iter().flat_map(Queue::items).chain(late).copied();
    tasks.filter(|&task| scene.may_run(task, cpu)).collect()
}

/// Is a task queued where no CPU of its affinity takes from, or none but RT CPUs though it has others?
fn is_stranded(machine: &Machine, task: u8) -> bool {
    let (scene, state) = (machine.scene, &machine.state);
    let places = state.own.iter().enumerate().map(|(place, queue)| (OWN, place, queue));
    let places = places.chain(state.bound.iter().enumerate().map(|(at, queue)| (BOUND, at, queue)));
    let mut places =
        places.chain(state.calm.iter().enumerate().map(|(at, queue)| (CALM, at, queue)));
    places.any(|(queue, place, waiting)| {
        let has_nrt = queue != OWN && scene.groups_of(task, false) != 0;
        waiting.items().contains(&task)
            && !scene
                .allowed(task)
                .any(|cpu| machine.takes_from(cpu, queue, place) && !(has_nrt && scene.is_rt(cpu)))
    })
}

/// What does not hold after a step. `looked`: the CPU that has just chosen its task, prepared for it.
fn broken(machine: &Machine, before: &State, looked: Option<usize>) -> Option<String> {
    let (scene, state) = (machine.scene, &machine.state);
    for task in 0..scene.tasks.len() as u8 {
        let places = state.places(task);
        if places != usize::from(state.task[usize::from(task)].runnable) {
            return Some(format!("{task} is {}", if places == 0 { "lost" } else { "doubled" }));
        }
        if is_stranded(machine, task) {
            return Some(format!("{task} waits where none of its CPUs is sure to look"));
        }
    }
    for cpu in scene.ids() {
        let Some(task) = state.cpu[cpu].curr else { continue };
        if scene.is_rt(cpu) && state.in_call(task) && scene.groups_of(task, false) != 0 {
            return Some(format!("{task} is in the kernel on RT CPU {cpu}"));
        }
        if !scene.may_run(task, cpu) {
            return Some(format!("{task} may not run on {cpu}"));
        }
    }
    // each CPU that was kicked takes one; one that real time has for a moment, what it put back, too
    let takes = |c: &Cpu| usize::from(c.kicked) + usize::from(c.busy && !c.held);
    let looking = state.cpu[..scene.cpus.len()].iter().map(takes).sum();
    for cpu in scene.ids().filter(|&cpu| state.is_asleep(cpu)) {
        let waiting = waiting_for(machine, cpu);
        let held = scene.ids().any(|cpu| state.cpu[cpu].held);
        if waiting.len() > looking && !held {
            return Some(format!("{cpu} sleeps while {waiting:?} wait"));
        }
    }
    if let Some((before, after)) = machine.worse {
        return Some(format!("the worst load rose from {before} to {after}"));
    }
    looked.and_then(|cpu| broken_choice(machine, before, cpu))
}

/// What is wrong with what `cpu` has just chosen.
fn broken_choice(machine: &Machine, before: &State, cpu: usize) -> Option<String> {
    let (scene, state) = (machine.scene, &machine.state);
    let task = state.cpu[cpu].curr?;
    let is_rt1 = |task: u8| scene.kind(task) == Kind::Rt1;
    let is_looked_for = |task: &u8| {
        let kicked = scene.ids().filter(|&other| state.cpu[other].kicked);
        { kicked }.any(|other| waiting_near(machine, other).contains(task))
    };
    let mut near = waiting_near(machine, cpu).into_iter();
    if !is_rt1(task)
        && let Some(higher) = near.find(|task| is_rt1(*task) && !is_looked_for(task))
    {
        return Some(format!("{higher} waits while {task} runs on {cpu}"));
    }
    let facts = machine.facts(task, cpu, false);
    // one that has just come there stays for a slice
    if is_rt1(task)
        && before.cpu[cpu].curr == Some(task)
        && !scene.is_rt(cpu)
        && scene.pinned_to(task).is_none()
        && machine.may_use_rt(&facts)
        && machine.could_go_to_rt(task, cpu)
        && !state.cpu[cpu].kicked
    {
        return Some(format!("RT1+ task {task} does not return from {cpu}"));
    }
    None
}

/// Tasks that wait in the queues of `cpu` and of its group, and may run there.
fn waiting_near(machine: &Machine, cpu: usize) -> Vec<u8> {
    let (scene, state) = (machine.scene, &machine.state);
    let group = scene.group(cpu);
    let mut queues = vec![&state.own[cpu], &state.calm[group]];
    if !scene.is_rt(cpu) {
        queues.push(&state.bound[group]);
    }
    let tasks = queues.into_iter().flat_map(Queue::items).copied();
    tasks.filter(|&task| scene.may_run(task, cpu)).collect()
}
