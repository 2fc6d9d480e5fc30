// SPDX-License-Identifier: GPL-2.0-only
//! What the groups of a scene must be together.

use std::collections::HashMap;

use super::group::Read;
use super::keys::{MOST_TASKS, nearest};
use super::mistake::Found;
use super::{Group, Rhythm};

/// Most memory of one buffer: beyond it, the two factors are a mistake together.
const MOST_BUFFER_KB: u64 = 1 << 20;

/// Most phases of all tasks together: each task carries its own.
const MOST_PHASES: u64 = 1 << 18;
/// Most names that a wrong one is compared with: a bound on the work of helping.
const MOST_COMPARED: usize = 64;

/// Finds what contradicts between groups.
pub(super) fn check(groups: &[Read], found: &mut Vec<Found>) {
    check_names(groups, found);
    check_tasks(groups, found);
    check_cgroups(groups, found);
    check_buffers(groups, found);
    let producers = producers(groups, found);
    check_posts(groups, &producers, found);
    check_circles(groups, &producers, found);
}

fn check_names(groups: &[Read], found: &mut Vec<Found>) {
    let mut first: HashMap<&str, &Read> = HashMap::new();
    for read in groups.iter().filter(|g| !g.group.name.is_empty()) {
        let name = read.group.name.as_str();
        if let Some(other) = first.get(name) {
            let seen = format!("a second group is called {name}");
            found.push(
                Found::new(read.fields.value_span("name"), seen, "expected another name")
                    .key("name")
                    .also(other.fields.value_span("name"), "the first"),
            );
        } else {
            first.insert(name, read);
        }
    }
}

/// Reports the first group with which there are too many tasks, or phases of tasks.
fn check_tasks(groups: &[Read], found: &mut Vec<Found>) {
    let (mut tasks, mut phases) = (0, 0);
    for Read { fields, group, repeat } in groups {
        let count = u64::from(group.count);
        tasks += count;
        phases += count * group.phases.len() as u64 * *repeat;
        let (key, sum, what, most) = match tasks > u64::from(MOST_TASKS) {
            true => ("count", tasks, "tasks", u64::from(MOST_TASKS)),
            false => ("repeat", phases, "phases of tasks", MOST_PHASES),
        };
        if sum > most {
            let seen = format!("with this group the scene has {sum} {what}");
            let expected = format!("expected {most} in all at most");
            found.push(Found::new(fields.value_span(key), seen, expected).key(key));
            return;
        }
    }
}

/// A cgroup has one weight, and its tasks are in leaves: the kernel has it so
/// (cgroup-v2.rst, "No Internal Process Constraint").
fn check_cgroups(groups: &[Read], found: &mut Vec<Found>) {
    let mut weights: HashMap<&str, (u32, &Read)> = HashMap::new();
    let mut paths: HashMap<&str, &Read> = HashMap::new();
    for read in groups {
        let Some(cgroup) = &read.group.cgroup else { continue };
        paths.entry(&cgroup.path).or_insert(read);
        let Some(weight) = cgroup.weight else { continue };
        let (other, first) = *weights.entry(&cgroup.path).or_insert((weight, read));
        if other != weight {
            let seen = format!("cgroup {} gets a second weight, {weight}", cgroup.path);
            found.push(
                Found::new(
                    read.fields.value_span("cpu_weight"),
                    seen,
                    format!("expected {other} again, or none"),
                )
                .key("cpu_weight")
                .also(first.fields.value_span("cpu_weight"), "the first"),
            );
        }
    }
    for read in groups {
        let Some(cgroup) = &read.group.cgroup else { continue };
        let above = cgroup.path.match_indices('/').map(|(i, _)| &cgroup.path[..i]);
        for (path, other) in above.filter_map(|path| paths.get(path).map(|o| (path, o))) {
            let seen = format!("cgroup {} lies in {path}, which has tasks itself", cgroup.path);
            found.push(
                Found::new(
                    read.fields.value_span("cgroup"),
                    seen,
                    "expected tasks in leaves only: the kernel refuses others",
                )
                .key("cgroup")
                .also(other.fields.value_span("cgroup"), "has tasks"),
            );
        }
    }
}

fn check_buffers(groups: &[Read], found: &mut Vec<Found>) {
    for Read { fields, group, .. } in groups {
        let kb = u64::from(group.buffer) * u64::from(group.item_kb);
        if kb > MOST_BUFFER_KB {
            let seen = format!("{} items of {} KiB are {kb} KiB", group.buffer, group.item_kb);
            let expected = format!("expected {MOST_BUFFER_KB} KiB in a buffer at most");
            found.push(Found::new(fields.value_span("item_kb"), seen, expected).key("item_kb"));
        }
    }
}

/// For each group the indexes of those that it follows.
fn producers(groups: &[Read], found: &mut Vec<Found>) -> Vec<Vec<usize>> {
    let index: HashMap<&str, usize> =
        groups.iter().enumerate().map(|(i, g)| (g.group.name.as_str(), i)).collect();
    let mut all = Vec::new();
    for read in groups {
        let mut mine = Vec::new();
        for (name, span) in read.fields.groups("follows") {
            match index.get(name.as_str()) {
                Some(i) if mine.contains(i) => {
                    let seen = format!("{name} is followed twice");
                    found.push(Found::new(span.clone(), seen, "each name once").key("follows"));
                }
                Some(i) => mine.push(*i),
                None => {
                    let seen = format!("no group is called {:?}", name);
                    let names = groups.iter().map(|g| g.group.name.as_str());
                    let expected = match nearest(name, names.take(MOST_COMPARED)) {
                        Some(near) => format!("did you mean {near}?"),
                        None => "expected the name of a group".into(),
                    };
                    found.push(Found::new(span.clone(), seen, expected).key("follows"));
                }
            }
        }
        all.push(mine);
    }
    all
}

/// Items are posted after bursts: whoever is followed needs some.
fn check_posts(groups: &[Read], producers: &[Vec<usize>], found: &mut Vec<Found>) {
    let posts = |g: &Group| g.phases.iter().any(|p| p.rhythm != Rhythm::Steady);
    let mut followed: Vec<usize> = producers.concat();
    followed.sort_unstable();
    followed.dedup();
    for read in followed.into_iter().map(|i| &groups[i]).filter(|r| !posts(&r.group)) {
        let seen = format!("{} is followed but posts no items", read.group.name);
        found.push(
            Found::new(
                read.fields.header.clone(),
                seen,
                "expected a rhythm: an item is posted after each burst; \
                 add `sloop` and `sleep_us` (0 for no pause), or `period_us` and `burst`",
            )
            .missing(),
        );
    }
}

/// Groups that wait for each other's items in a circle wait for ever.
fn check_circles(groups: &[Read], producers: &[Vec<usize>], found: &mut Vec<Found>) {
    let stuck = stuck(producers);
    let mut walk_of: Vec<Option<usize>> = vec![None; groups.len()];
    for start in (0..groups.len()).filter(|i| stuck[*i]) {
        // Everyone who is stuck follows someone who is: the walk ends in a circle.
        let (mut at, mut walked) = (start, Vec::new());
        while walk_of[at].is_none() {
            walk_of[at] = Some(start);
            walked.push(at);
            match producers[at].iter().find(|p| stuck[**p]) {
                Some(next) => at = *next,
                None => return,
            }
        }
        let Some(begin) = walked.iter().position(|i| *i == at) else { continue };
        if walk_of[at] == Some(start) {
            let circle = walked[begin..].iter().chain([&at]);
            let names: Vec<_> = circle.map(|i| groups[*i].group.name.as_str()).collect();
            let seen = format!("groups follow each other in a circle: {}", names.join(" -> "));
            let span = groups[at].fields.value_span("follows");
            let expected = "expected a begin: none of them would ever get an item";
            found.push(Found::new(span, seen, expected).key("follows"));
        }
    }
}

/// Who never gets all items: those left when whoever can run is taken away, again and again.
fn stuck(producers: &[Vec<usize>]) -> Vec<bool> {
    let mut waits: Vec<usize> = producers.iter().map(Vec::len).collect();
    let mut consumers = vec![Vec::new(); producers.len()];
    for (consumer, of) in producers.iter().enumerate() {
        of.iter().for_each(|p| consumers[*p].push(consumer));
    }
    let mut ready: Vec<usize> = (0..waits.len()).filter(|i| waits[*i] == 0).collect();
    while let Some(done) = ready.pop() {
        for consumer in &consumers[done] {
            waits[*consumer] -= 1;
            if waits[*consumer] == 0 {
                ready.push(*consumer);
            }
        }
    }
    waits.iter().map(|w| *w > 0).collect()
}
