// SPDX-License-Identifier: GPL-2.0-only
//! Who was on a CPU, for so many pixels: spans as they are while they can be seen, and where
//! there are more of them than pixels, for each pixel who had most of it.

use crate::result::Run;

/// Someone had a CPU for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Colour.
    pub key: usize,
    pub from_ns: u64,
    pub to_ns: u64,
}

/// One CPU.
#[derive(Debug, PartialEq)]
pub struct Lane {
    pub cpu: u32,
    pub blocks: Vec<Block>,
    /// Each pixel shows who had most of it, not every span.
    pub merged: bool,
}

/// A lane for each CPU; `keys` gives the colour of each task, `px` is what `until_ns` of
/// time is drawn on.
pub fn lanes(run: &Run, keys: &[usize], until_ns: u64, px: u32) -> Vec<Lane> {
    let lane = |cpu: u32| {
        let mine = run.timeline.iter().filter(|s| s.cpu == cpu && s.to_ns > s.from_ns);
        let blocks: Vec<Block> = mine
            .filter_map(|s| {
                let key = *keys.get(s.task as usize)?;
                Some(Block { key, from_ns: s.from_ns, to_ns: s.to_ns.min(until_ns) })
            })
            .filter(|b| b.from_ns < b.to_ns)
            .collect();
        // A block needs a pixel for itself and one for what parts it from the next.
        let merged = blocks.len() > px as usize / 2;
        let blocks = if merged { merge(&blocks, until_ns, px) } else { blocks };
        Lane { cpu, blocks, merged }
    };
    run.cpus.iter().map(|c| lane(c.cpu)).collect()
}

fn merge(blocks: &[Block], until_ns: u64, px: u32) -> Vec<Block> {
    let edge = |pixel: u64| (u128::from(pixel) * u128::from(until_ns) / u128::from(px)) as u64;
    let keys = blocks.iter().map(|b| b.key).max().map_or(0, |k| k + 1);
    // Time of each key in each pixel.
    let mut had = vec![vec![0u64; keys]; px as usize];
    for block in blocks {
        let first = (u128::from(block.from_ns) * u128::from(px) / u128::from(until_ns)) as u64;
        for pixel in first..u64::from(px) {
            let (from, to) = (edge(pixel).max(block.from_ns), edge(pixel + 1).min(block.to_ns));
            had[pixel as usize][block.key] += to.saturating_sub(from);
            if edge(pixel + 1) >= block.to_ns {
                break;
            }
        }
    }
    let mut merged: Vec<Block> = Vec::new();
    for (pixel, had) in had.iter().enumerate() {
        let (from_ns, to_ns) = (edge(pixel as u64), edge(pixel as u64 + 1));
        let idle = (to_ns - from_ns).saturating_sub(had.iter().sum());
        // The first of equals, so that equal runs look equal.
        let most = had.iter().enumerate().max_by_key(|(key, ns)| (**ns, std::cmp::Reverse(*key)));
        let Some((key, _)) = most.filter(|(_, ns)| **ns > idle) else { continue };
        match merged.last_mut().filter(|last| last.key == key && last.to_ns == from_ns) {
            Some(last) => last.to_ns = to_ns,
            None => merged.push(Block { key, from_ns, to_ns }),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPUs 0 and 1, task i has colour i; spans are (task, cpu, from, to).
    fn of(spans: &[(u32, u32, u64, u64)], until_ns: u64, px: u32) -> Vec<Lane> {
        let cpu = |cpu: u32| serde_json::json!({ "cpu": cpu, "idle": 0.0, "irq": 0.0 });
        let span = |s: &(u32, u32, u64, u64)| serde_json::json!({ "task": s.0, "cpu": s.1, "from_ns": s.2, "to_ns": s.3 });
        let run = serde_json::json!({
            "schema": 1, "scene": "", "why": "", "good": "", "scheduler": { "name": "" },
            "machine": { "kernel": "", "version": "", "cpu": "", "cpus": 2 },
            "scale": { "steps_per_us": 1.0, "steps_per_loop": 1.0, "work": 1.0 },
            "makespan_ns": until_ns, "cut": false, "tasks": [], "groups": [],
            "cpus": [cpu(0), cpu(1)], "warnings": [], "missing": [],
            "timeline": spans.iter().map(span).collect::<Vec<_>>(),
        });
        let run: Run = serde_json::from_value(run).expect("a run");
        lanes(&run, &[0, 1, 2], until_ns, px)
    }

    fn blocks(lane: &Lane) -> Vec<(usize, u64, u64)> {
        lane.blocks.iter().map(|b| (b.key, b.from_ns, b.to_ns)).collect()
    }

    #[test]
    fn few_spans_stay_as_they_are() {
        let lanes = of(&[(0, 0, 0, 10), (1, 1, 5, 9), (0, 0, 10, 20), (2, 0, 30, 99)], 50, 100);
        assert_eq!(blocks(&lanes[0]), [(0, 0, 10), (0, 10, 20), (2, 30, 50)], "cut at the end");
        assert_eq!(blocks(&lanes[1]), [(1, 5, 9)]);
        assert!(lanes.iter().all(|l| !l.merged));
    }

    #[test]
    fn who_had_most_of_a_pixel_has_it() {
        // Pixels of 10 ns: task 0 with 6, task 1 with 9, blank with 8, task 2 with 10 and 10.
        let spans = [
            (0, 0, 0, 6),
            (1, 0, 6, 10),
            (1, 0, 10, 19),
            (0, 0, 19, 20),
            (0, 0, 20, 22),
            (2, 0, 30, 50),
        ];
        let lane = &of(&spans, 50, 5)[0];
        assert!(lane.merged);
        assert_eq!(blocks(lane), [(0, 0, 10), (1, 10, 20), (2, 30, 50)]);
    }

    #[test]
    fn a_span_over_many_pixels_fills_them() {
        let mut spans: Vec<(u32, u32, u64, u64)> = vec![(1, 0, 0, 700)];
        spans.extend((0..100).map(|i| (0, 0, 700 + i * 3, 702 + i * 3)));
        let lane = &of(&spans, 1000, 100)[0];
        assert!(lane.merged);
        assert_eq!(blocks(lane), [(1, 0, 700), (0, 700, 1000)]);
    }

    #[test]
    fn unknown_tasks_and_empty_spans_are_nobody() {
        assert_eq!(blocks(&of(&[(7, 0, 0, 10), (0, 0, 3, 3)], 50, 100)[0]), []);
    }
}
