// SPDX-License-Identifier: GPL-2.0-only
//! Reads the format of the thesis' annex B: blocks in braces, one for each task, `#`
//! comments, one `key = value` a line.

use super::fields::Fields;
use super::group::{self, BUFFER, ITEM_KB};
use super::keys::{MOST_TASKS, Place};
use super::mistake::{Found, Span};
use super::value::{Policy, Raw};
use super::{Amount, Call, CallKind, Group, Phase, Rhythm, Scene, Sched, names};

/// The scene; only if nothing was added to `found`.
pub(super) fn parse(name: &str, text: &str, found: &mut Vec<Found>) -> Option<Scene> {
    let blocks = blocks(text, found);
    if blocks.is_empty() && found.is_empty() {
        let first_line = 0..text.find('\n').unwrap_or(text.len());
        let expected = "expected a block in braces for each task: nothing would run";
        found.push(Found::new(first_line, "no block", expected));
    }
    if let Some(block) = blocks.get(MOST_TASKS as usize) {
        let seen = format!("{} tasks", blocks.len());
        let expected = format!("expected {MOST_TASKS} at most");
        found.push(Found::new(block.header.clone(), seen, expected));
    }
    let mut groups: Vec<Group> = Vec::new();
    for block in blocks.iter().take(MOST_TASKS as usize) {
        let task = task(block, found);
        let equal = |g: &&mut Group| {
            g.phases == task.phases && g.sched == task.sched && g.cpus == task.cpus
        };
        match groups.iter_mut().find(equal) {
            Some(group) => group.count += 1,
            None => groups.push(task),
        }
    }
    names::give(&mut groups);
    found.is_empty().then(|| Scene {
        name: name.to_owned(),
        why: leading_comment(text),
        good: String::new(),
        seed: Scene::SEED,
        limit_ms: None,
        rt_cpus: None,
        groups,
    })
}

/// Cuts the text into blocks of checked keys.
fn blocks(text: &str, found: &mut Vec<Found>) -> Vec<Fields> {
    let (mut blocks, mut open) = (Vec::new(), None);
    for line in text.split_inclusive('\n') {
        let begin = line.as_ptr() as usize - text.as_ptr() as usize;
        let code = line.split('#').next().unwrap_or_default();
        let code = if begin == 0 { code.trim_start_matches('\u{feff}') } else { code };
        for piece in code.split_inclusive(['{', '}']) {
            let at = piece.as_ptr() as usize - text.as_ptr() as usize;
            assignment(piece.trim_end_matches(['{', '}']), at, open.as_mut(), found);
            let brace = at + piece.len() - 1..at + piece.len();
            if piece.ends_with('{') {
                if let Some(unclosed) = open.replace(Fields::new(brace.clone())) {
                    let unclosed: Fields = unclosed;
                    found.push(
                        Found::new(brace, "a block in a block", "expected } before it")
                            .also(unclosed.header.clone(), "still open"),
                    );
                    blocks.push(unclosed);
                }
            } else if piece.ends_with('}') {
                match open.take() {
                    Some(block) => blocks.push(block),
                    None => {
                        found.push(Found::new(brace, "} closes no block", "expected { before it"))
                    }
                }
            }
        }
    }
    if let Some(block) = open {
        let expected = "expected } at its end";
        found.push(Found::new(block.header.clone(), "this block is never closed", expected));
        blocks.push(block);
    }
    blocks
}

/// Enters the `key = value` of a piece between braces, if there is one.
fn assignment(piece: &str, at: usize, block: Option<&mut Fields>, found: &mut Vec<Found>) {
    let span_of = |part: &str| -> Span {
        let start = at + (part.as_ptr() as usize - piece.as_ptr() as usize);
        start..start + part.len()
    };
    let all = piece.trim();
    if all.is_empty() {
        return;
    }
    let Some((key, value)) = all.split_once('=').map(|(k, v)| (k.trim(), v.trim())) else {
        let expected = "expected `key = value`, {, } or a # comment";
        found.push(Found::new(span_of(all), "no assignment", expected));
        return;
    };
    if key.is_empty() || value.is_empty() {
        let seen = if key.is_empty() { "no key before =" } else { "no value after =" };
        let mut mistake = Found::new(span_of(all), seen, "expected `key = value`");
        mistake.key = Some(key.to_owned()).filter(|k| !k.is_empty());
        found.push(mistake);
        return;
    }
    match block {
        Some(block) => {
            block.enter(&[Place::Block], (key, span_of(key)), (&raw(value), span_of(value)), found);
        }
        None => found.push(
            Found::new(
                span_of(all),
                format!("`{}` outside of a block", key.escape_debug()),
                "expected { before it",
            )
            .key(key),
        ),
    }
}

/// Numbers are decimal, or hexadecimal with 0x; all else is a word.
fn raw(value: &str) -> Raw {
    let (digits, radix) = match value.strip_prefix("0x").or(value.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (value.strip_prefix(['-', '+']).unwrap_or(value), 10),
    };
    match !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)) {
        true if radix == 16 => Raw::Whole { digits: digits.to_owned(), radix },
        true => Raw::Whole { digits: value.to_owned(), radix },
        false => Raw::Word(value.to_owned()),
    }
}

/// A block as a group of one task. What it returns beside a new mistake is of no use.
fn task(block: &Fields, found: &mut Vec<Found>) -> Group {
    block.need("loop", "a task without work", "add `loop`: the iterations to do", found);
    let loops = |key: &str| block.number(key).map(Amount::Loops);
    if !block.has("sloop") {
        let todo = "expected `sloop` with it: the iterations between two sleeps";
        block.refuse(&["sleep"], "alone makes no sleep", todo, found);
    }
    let sleep_us = block.whole("sleep").unwrap_or(0);
    Group {
        name: String::new(),
        count: 1,
        sched: sched(block, found),
        cpus: block.cpus("cpu_mask").cloned(),
        cgroup: None,
        start_us: 0,
        spread_us: 0,
        memory_kb: 0,
        jitter_pct: 0,
        follows: Vec::new(),
        buffer: BUFFER,
        item_kb: ITEM_KB,
        phases: vec![Phase {
            work: loops("loop"),
            duration_ms: None,
            rhythm: loops("sloop")
                .map_or(Rhythm::Steady, |every| Rhythm::Sleep { every, sleep_us }),
            call: loops("iloop").map(|every| Call { kind: CallKind::Sysinfo, every }),
        }],
    }
}

/// The policy with `priority`, which is nice or a real-time priority by the policy.
fn sched(block: &Fields, found: &mut Vec<Found>) -> Sched {
    let policy = block.policy().unwrap_or(Policy::Normal);
    let priority: i32 = block.whole("priority").unwrap_or(0);
    let fits = match policy {
        Policy::Fifo | Policy::Rr => 1..=99,
        Policy::Normal | Policy::Batch | Policy::Ext => -20..=19,
        Policy::Idle => 0..=0,
        Policy::Deadline | Policy::Rt1 => -20..=99,
    };
    // A refused policy or priority says nothing about the other.
    let known = |key| !block.has(key) || block.value_span(key) != block.key_span(key);
    if known("sched") && known("priority") && !fits.contains(&priority) {
        let seen = format!("{} of `priority` {priority}", policy.name());
        let expected = match (policy, fits.into_inner()) {
            (Policy::Idle, _) => "expected 0, or none".into(),
            (Policy::Fifo | Policy::Rr, (min, max)) => format!("expected {min} to {max}"),
            (_, (min, max)) => format!("expected a nice value, {min} to {max}"),
        };
        let at = if block.has("priority") { "priority" } else { "sched" };
        found.push(Found::new(block.value_span(at), seen, expected).key("priority"));
    }
    let urgency = priority.unsigned_abs();
    match policy {
        Policy::Normal => Sched::Normal { nice: priority },
        Policy::Batch => Sched::Batch { nice: priority },
        Policy::Ext => Sched::Ext { nice: priority },
        Policy::Fifo => Sched::Fifo { priority: urgency },
        Policy::Rr => Sched::Rr { priority: urgency },
        Policy::Idle => Sched::Idle,
        Policy::Deadline => {
            found.push(
                Found::new(
                    block.value_span("sched"),
                    "DEADLINE cannot be said in this format",
                    "it has no key for the runtime",
                )
                .key("sched")
                .help(
                    "use the TOML form (lollobrigida convert): \
                     dl_runtime_us, dl_deadline_us, dl_period_us",
                ),
            );
            Sched::Idle
        }
        Policy::Rt1 => {
            found.push(group::rt1(block));
            Sched::Idle
        }
    }
}

/// The comment that the file begins with, up to a blank line: why it was written. If the
/// first block follows at once, the last of several lines is about that block.
fn leading_comment(text: &str) -> String {
    let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).peekable();
    let mut comment = Vec::new();
    while let Some(line) = lines.next_if(|l| l.starts_with('#')) {
        comment.push(line.trim_start_matches('#').trim());
    }
    if comment.len() > 1 && lines.peek().is_some_and(|l| l.starts_with('{')) {
        comment.pop();
    }
    comment.join(" ").trim().to_owned()
}
