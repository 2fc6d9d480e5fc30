// SPDX-License-Identifier: GPL-2.0-only
//! Who posts to whom: the links that [`crate::scene::Group::follows`] asks for.

use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};

use super::{Link, Rhythm, Task};
use crate::scene::Group;

/// Makes the links of all groups and enters them at their tasks, which are those of the
/// groups in order.
pub(super) fn join(groups: &[Group], tasks: &mut [Task]) -> Result<Vec<Link>> {
    let ranges = ranges(groups);
    let mut links: Vec<Link> = Vec::new();
    for (group, consumers) in groups.iter().zip(&ranges) {
        check_rhythms(group, &tasks[consumers.clone()])?;
        let item_bytes = group.item_kb.checked_mul(1024).with_context(|| {
            format!("group {}: items of {} KiB are more than can be", group.name, group.item_kb)
        })?;
        for name in &group.follows {
            let producers = groups
                .iter()
                .position(|g| g.name == *name)
                .map(|i| ranges[i].clone())
                .with_context(|| {
                    format!(
                        "group {}: follows {name}, which no group is called; there are: {}",
                        group.name,
                        groups.iter().map(|g| g.name.as_str()).collect::<Vec<_>>().join(", ")
                    )
                })?;
            for (from, to) in pairs(producers, consumers.clone()) {
                tasks[from].posts.push(links.len());
                tasks[to].takes.push(links.len());
                links.push(Link { from, to, items: group.buffer.max(1), item_bytes });
            }
        }
    }
    check_order(groups)?;
    Ok(links)
}

fn ranges(groups: &[Group]) -> Vec<Range<usize>> {
    let mut next = 0;
    groups
        .iter()
        .map(|g| {
            let first = next;
            next += g.count as usize;
            first..next
        })
        .collect()
}

/// Of n producers for m consumers, producer i feeds consumer i·m/n; of fewer producers
/// than consumers, consumer j takes from producer j·n/m.
fn pairs(producers: Range<usize>, consumers: Range<usize>) -> Vec<(usize, usize)> {
    let (n, m) = (producers.len(), consumers.len());
    if n >= m {
        (0..n).map(|i| (producers.start + i, consumers.start + i * m / n)).collect()
    } else {
        (0..m).map(|j| (producers.start + j * n / m, consumers.start + j)).collect()
    }
}

/// Items are taken by phases with that rhythm and by no others: whoever follows needs
/// one, or its producers would block for ever; whoever has one must follow somebody.
fn check_rhythms(group: &Group, tasks: &[Task]) -> Result<()> {
    let takes =
        tasks.iter().flat_map(|t| &t.phases).any(|p| matches!(p.rhythm, Rhythm::Items { .. }));
    ensure!(
        !takes || !group.follows.is_empty(),
        "group {}: has a phase that waits for items but follows no group: it would wait for \
         ever; name its producers in `follows`",
        group.name
    );
    ensure!(
        takes || group.follows.is_empty(),
        "group {}: follows {} but has no phase that takes items: its producers would block; \
         give it such a phase or take `follows` out",
        group.name,
        group.follows.join(", ")
    );
    Ok(())
}

/// A circle of groups that wait for each other's items makes none.
fn check_order(groups: &[Group]) -> Result<()> {
    let mut ready: Vec<&str> = Vec::new();
    loop {
        let before = ready.len();
        for group in groups {
            let name = group.name.as_str();
            if !ready.contains(&name) && group.follows.iter().all(|f| ready.contains(&f.as_str())) {
                ready.push(name);
            }
        }
        if ready.len() == before {
            break;
        }
    }
    let stuck: Vec<&str> =
        groups.iter().map(|g| g.name.as_str()).filter(|n| !ready.contains(n)).collect();
    if !stuck.is_empty() {
        bail!(
            "groups {} wait for each other's items: none would ever be made; \
             take one `follows` out of the circle",
            stuck.join(", ")
        );
    }
    Ok(())
}
