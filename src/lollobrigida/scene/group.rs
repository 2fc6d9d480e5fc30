// SPDX-License-Identifier: GPL-2.0-only
//! From keys to a group of the TOML form.

use super::fields::Fields;
use super::mistake::Found;
use super::value::Policy;
use super::{CallKind, Cgroup, Group, Phase, Rhythm, Sched, phase};

/// Items that fit in a buffer unless told.
pub(super) const BUFFER: u32 = 4;
/// Size of an item unless told.
pub(super) const ITEM_KB: u32 = 1;

/// A group with the keys it was made of, for checks that need the others.
pub(super) struct Read {
    pub fields: Fields,
    /// With its phases once.
    pub group: Group,
    /// How often the phases are gone through.
    pub repeat: u64,
}

impl Read {
    /// The group with all its phases. Only for groups whose number of phases was checked.
    pub fn finish(self) -> Group {
        let mut group = self.group;
        let once = group.phases.len();
        let all = once * usize::try_from(self.repeat).unwrap_or(1);
        group.phases = group.phases.into_iter().cycle().take(all).collect();
        group
    }
}

/// Builds a group from its keys and those of its phases; without phases, the group's own
/// keys make the only one. `limited`: the scene has a limit, so that work needs no end.
pub(super) fn build(
    fields: Fields,
    phases: &[Fields],
    limited: bool,
    found: &mut Vec<Found>,
) -> Read {
    fields.need("name", "a group without a name", "add `name`", found);
    fields.only_one(&["cpus", "cpu_mask"], found);
    let sched = sched(&fields, found);
    if fields.has("cpu_weight") && !fields.has("cgroup") {
        let todo = "expected `cgroup` with it: the run's own cgroup keeps its weight";
        fields.refuse(&["cpu_weight"], "is the weight of no cgroup", todo, found);
    }
    let follows = fields.has("follows");
    if !follows {
        let todo = "expected `follows` with it: the buffer lies before the task that takes";
        fields.refuse(&["buffer", "item_kb"], "is about no items", todo, found);
    }
    let of_phases = if phases.is_empty() { std::slice::from_ref(&fields) } else { phases };
    let read: Vec<(Phase, &Fields)> =
        of_phases.iter().map(|f| (phase::build(f, follows, found), f)).collect();
    let repeat: u64 = fields.whole("repeat").unwrap_or(1);
    check_ends(&fields, &read, repeat, limited, found);
    check_calls(&fields, &read, found);
    let knows_whom = !fields.groups("follows").is_empty();
    if knows_whom && !read.iter().any(|(p, _)| matches!(p.rhythm, Rhythm::Items { .. })) {
        let todo = "expected a phase with `burst` or `burst_us` and without `period_us`: \
                    without one, its producers would block";
        fields.refuse(&["follows"], "takes no items", todo, found);
    }
    let group = Group {
        name: fields.text("name").unwrap_or_default().to_owned(),
        count: fields.whole("count").unwrap_or(1),
        sched,
        cpus: fields.cpus("cpus").or(fields.cpus("cpu_mask")).cloned(),
        cgroup: fields
            .text("cgroup")
            .map(|path| Cgroup { path: path.to_owned(), weight: fields.whole("cpu_weight") }),
        start_us: fields.whole("start_us").unwrap_or(0),
        spread_us: fields.whole("spread_us").unwrap_or(0),
        memory_kb: fields.whole("memory_kb").unwrap_or(0),
        jitter_pct: fields.whole("jitter_pct").unwrap_or(0),
        follows: fields.groups("follows").iter().map(|(name, _)| name.clone()).collect(),
        buffer: fields.whole("buffer").unwrap_or(BUFFER),
        item_kb: fields.whole("item_kb").unwrap_or(ITEM_KB),
        phases: read.into_iter().map(|(phase, _)| phase).collect(),
    };
    Read { fields, group, repeat }
}

/// A phase must end, unless the scene does; nothing comes after one that does not.
fn check_ends(
    fields: &Fields,
    phases: &[(Phase, &Fields)],
    repeat: u64,
    limited: bool,
    found: &mut Vec<Found>,
) {
    let last = phases.len() - 1;
    for (i, (phase, of_phase)) in phases.iter().enumerate() {
        let by_items = matches!(phase.rhythm, Rhythm::Items { .. }) && fields.has("follows");
        let ends = phase.work.is_some() || phase.duration_ms.is_some() || by_items;
        let seen = "work without an end";
        if !ends && !limited {
            let expected = "add `loop`, `compute_us` or `duration_ms`, or `limit_ms` to the scene";
            found.push(Found::new(of_phase.header.clone(), seen, expected).missing());
        } else if !ends && (i < last || repeat > 1) {
            let expected = "add `loop`, `compute_us` or `duration_ms`: \
                            what comes after it would never begin";
            found.push(Found::new(of_phase.header.clone(), seen, expected).missing());
        }
    }
}

/// The kernel lets no SCHED_DEADLINE task fork: its bandwidth would double.
fn check_calls(fields: &Fields, phases: &[(Phase, &Fields)], found: &mut Vec<Found>) {
    let forks = |p: &Phase| p.call.is_some_and(|c| c.kind == CallKind::Fork);
    if fields.policy() == Some(Policy::Deadline) {
        for (_, of_phase) in phases.iter().filter(|(p, _)| forks(p)) {
            let span = of_phase.value_span("call");
            let expected = "expected another call: the kernel lets no DEADLINE task fork";
            found.push(Found::new(span, "a DEADLINE task that forks", expected).key("call"));
        }
    }
}

fn sched(fields: &Fields, found: &mut Vec<Found>) -> Sched {
    const DL: [&str; 3] = ["dl_runtime_us", "dl_deadline_us", "dl_period_us"];
    let policy = match fields.policy() {
        Some(policy) => policy,
        // Refused already: whichever parameters are there may be right.
        None if fields.has("sched") => return Sched::Idle,
        None => Policy::Normal,
    };
    let nice = fields.whole("nice").unwrap_or(0);
    let priority = fields.whole("priority").unwrap_or(1);
    let why = format!("means nothing to {}", policy.name());
    match policy {
        Policy::Normal | Policy::Batch | Policy::Ext => {
            fields.refuse(&["priority"], &why, "use `nice`, or FIFO or RR", found);
            fields.refuse(&DL, &why, "use DEADLINE", found);
        }
        Policy::Fifo | Policy::Rr => {
            fields.refuse(&["nice"], &why, "use `priority`", found);
            fields.refuse(&DL, &why, "use DEADLINE", found);
            let seen = format!("{} without `priority`", policy.name());
            fields.need("priority", &seen, "add `priority`, 1 to 99", found);
        }
        Policy::Idle => {
            let todo = "IDLE has no parameter; NORMAL has `nice`";
            fields.refuse(&["nice", "priority"], &why, todo, found);
            fields.refuse(&DL, &why, "use DEADLINE", found);
        }
        Policy::Deadline => {
            let todo = "DEADLINE has `dl_runtime_us`, `dl_deadline_us` and `dl_period_us`";
            fields.refuse(&["nice", "priority"], &why, todo, found);
            let todo = "take it out: the kernel refuses DEADLINE tasks that may not run everywhere";
            fields.refuse(&["cpus", "cpu_mask"], "contradicts DEADLINE", todo, found);
        }
        Policy::Rt1 => found.push(rt1(fields)),
    }
    match policy {
        Policy::Normal => Sched::Normal { nice },
        Policy::Batch => Sched::Batch { nice },
        Policy::Ext => Sched::Ext { nice },
        Policy::Fifo => Sched::Fifo { priority },
        Policy::Rr => Sched::Rr { priority },
        Policy::Idle | Policy::Rt1 => Sched::Idle,
        Policy::Deadline => deadline(fields, found),
    }
}

/// The mistake of asking for scx_artis' firm class, which a scene cannot give: it would be another
/// scene under other schedulers.
pub(super) fn rt1(fields: &Fields) -> Found {
    let at = fields.value_span("sched");
    Found::new(at, "RT1 is no policy of the kernel", "a class that scx_artis gives")
        .key("sched")
        .help("use FIFO: under scx_artis:\"--adopt\" that is RT1+ of the same priority")
}

fn deadline(fields: &Fields, found: &mut Vec<Found>) -> Sched {
    for name in ["dl_runtime_us", "dl_period_us"] {
        let seen = format!("DEADLINE without `{name}`");
        fields.need(name, &seen, &format!("add `{name}`"), found);
    }
    let period_us: u64 = fields.whole("dl_period_us").unwrap_or(u64::MAX);
    let deadline_us: u64 = fields.whole("dl_deadline_us").unwrap_or(period_us);
    let runtime_us: u64 = fields.whole("dl_runtime_us").unwrap_or(0);
    let mut not_more = |name: &str, value: u64, of: &str, bound: u64| {
        if value > bound {
            let seen = format!("`{name}` is {value}");
            let expected = format!("expected no more than the {of} of {bound} µs");
            found.push(Found::new(fields.value_span(name), seen, expected).key(name));
        }
    };
    not_more("dl_deadline_us", deadline_us, "period", period_us);
    not_more("dl_runtime_us", runtime_us, "deadline", deadline_us);
    Sched::Deadline { runtime_us, deadline_us, period_us }
}
