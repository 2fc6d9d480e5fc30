// SPDX-License-Identifier: GPL-2.0-only
//! Writes a scene in the TOML form.

use std::fmt::{Display, Write};

use super::group::{BUFFER, ITEM_KB};
use super::{Amount, Group, Phase, Rhythm, Scene, Sched};

const NO_WHY: &str = "Replace this: the question that the scene asks of a scheduler.";

/// The scene in the TOML form: reading it gives the same scene, but for an empty `why`,
/// which becomes a sentence to be replaced.
#[must_use]
pub fn convert(scene: &Scene) -> String {
    let mut out = Out(format!(
        "# Written by lollobrigida convert from {}. docs/scenes.md tells of all keys.\n\n",
        scene.name.escape_debug()
    ));
    out.key("why", text(if scene.why.is_empty() { NO_WHY } else { &scene.why }));
    if !scene.good.is_empty() {
        out.key("good", text(&scene.good));
    }
    out.unless("seed", scene.seed, Scene::SEED);
    out.optional("limit_ms", scene.limit_ms);
    out.optional("rt_cpus", scene.rt_cpus.as_ref().map(|c| text(&c.to_string())));
    for group in &scene.groups {
        write_group(&mut out, group);
    }
    out.0
}

fn write_group(out: &mut Out, group: &Group) {
    out.0.push_str("\n[[group]]\n");
    out.key("name", text(&group.name));
    out.unless("count", group.count, 1);
    write_sched(out, group.sched);
    out.optional("cpus", group.cpus.as_ref().map(|c| text(&c.to_string())));
    if let Some(cgroup) = &group.cgroup {
        out.key("cgroup", text(&cgroup.path));
        out.optional("cpu_weight", cgroup.weight);
    }
    out.unless("start_us", group.start_us, 0);
    out.unless("spread_us", group.spread_us, 0);
    out.unless("memory_kb", group.memory_kb, 0);
    out.unless("jitter_pct", group.jitter_pct, 0);
    if !group.follows.is_empty() {
        let names: Vec<_> = group.follows.iter().map(|name| text(name)).collect();
        out.key("follows", format!("[{}]", names.join(", ")));
        out.unless("buffer", group.buffer, BUFFER);
        out.unless("item_kb", group.item_kb, ITEM_KB);
    }
    let once = cycle(&group.phases);
    out.unless("repeat", group.phases.len() / once.len().max(1), 1);
    match once {
        [phase] => write_phase(out, phase),
        phases => {
            for phase in phases {
                out.0.push_str("[[group.phase]]\n");
                write_phase(out, phase);
            }
        }
    }
}

/// The shortest list of phases that, repeated, is the whole.
fn cycle(phases: &[Phase]) -> &[Phase] {
    let all = phases.len();
    let repeats = |n: &usize| all.is_multiple_of(*n) && phases[*n..] == phases[..all - n];
    &phases[..(1..all).find(repeats).unwrap_or(all)]
}

fn write_sched(out: &mut Out, sched: Sched) {
    let mut policy = |name: &str| out.key("sched", text(name));
    match sched {
        Sched::Normal { nice } => out.unless("nice", nice, 0),
        Sched::Batch { nice } => {
            policy("BATCH");
            out.unless("nice", nice, 0);
        }
        Sched::Ext { nice } => {
            policy("EXT");
            out.unless("nice", nice, 0);
        }
        Sched::Idle => policy("IDLE"),
        Sched::Fifo { priority } => {
            policy("FIFO");
            out.key("priority", priority);
        }
        Sched::Rr { priority } => {
            policy("RR");
            out.key("priority", priority);
        }
        Sched::Deadline { runtime_us, deadline_us, period_us } => {
            policy("DEADLINE");
            out.key("dl_runtime_us", runtime_us);
            out.unless("dl_deadline_us", deadline_us, period_us);
            out.key("dl_period_us", period_us);
        }
    }
}

fn write_phase(out: &mut Out, phase: &Phase) {
    if let Some(work) = phase.work {
        out.amount("loop", "compute_us", work);
    }
    out.optional("duration_ms", phase.duration_ms);
    match phase.rhythm {
        Rhythm::Steady => {}
        Rhythm::Sleep { every, sleep_us } => {
            out.amount("sloop", "sloop_us", every);
            out.key("sleep_us", sleep_us);
        }
        Rhythm::Periodic { period_us, burst, deadline_us } => {
            out.key("period_us", period_us);
            out.amount("burst", "burst_us", burst);
            out.unless("burst_deadline_us", deadline_us, period_us);
        }
        Rhythm::Items { burst } => out.amount("burst", "burst_us", burst),
    }
    if let Some(call) = phase.call {
        out.key("call", text(call.kind.name()));
        out.amount("iloop", "iloop_us", call.every);
    }
}

/// Lines of TOML.
struct Out(String);

impl Out {
    fn key(&mut self, name: &str, value: impl Display) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{name} = {value}");
    }

    fn optional(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.key(name, value);
        }
    }

    fn unless<T: Display + PartialEq>(&mut self, name: &str, value: T, default: T) {
        if value != default {
            self.key(name, value);
        }
    }

    fn amount(&mut self, loops: &str, us: &str, amount: Amount) {
        match amount {
            Amount::Loops(n) => self.key(loops, number(n)),
            Amount::Us(n) => self.key(us, number(n)),
        }
    }
}

/// The shortest form that reads as the same number; exact up to the largest amounts.
fn number(n: f64) -> String {
    n.to_string()
}

fn text(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
