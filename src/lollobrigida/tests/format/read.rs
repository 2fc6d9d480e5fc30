// SPDX-License-Identifier: GPL-2.0-only
//! Valid scenes of both formats become what they say.

use lollobrigida::scene::{
    Amount, Call, CallKind, Cgroup, Cpus, Format, Group, Phase, Rhythm, Scene, Sched, find, parse,
};

fn cpus(list: impl IntoIterator<Item = u32>) -> Option<Cpus> {
    Some(Cpus(list.into_iter().collect()))
}

/// A group as both formats make it of the least that they ask for.
fn plain(name: &str, work: Amount) -> Group {
    Group {
        name: name.into(),
        count: 1,
        sched: Sched::default(),
        cpus: None,
        cgroup: None,
        start_us: 0,
        spread_us: 0,
        memory_kb: 0,
        jitter_pct: 0,
        follows: Vec::new(),
        buffer: 4,
        item_kb: 1,
        phases: vec![Phase {
            work: Some(work),
            duration_ms: None,
            rhythm: Rhythm::Steady,
            call: None,
        }],
    }
}

fn toml(text: &str) -> Scene {
    parse("test", text, Format::Toml).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn annexb(text: &str) -> Scene {
    parse("test", text, Format::AnnexB).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

#[test]
fn annex_b_runs_as_it_was_printed() {
    let scene = find("annexb").unwrap();
    let normal =
        Group { count: 13, cpus: cpus(0..16), ..plain("normal", Amount::Loops(10_000_000.0)) };
    let fifo = |cpu| Group {
        sched: Sched::Fifo { priority: 99 },
        cpus: cpus([cpu]),
        phases: vec![Phase {
            work: Some(Amount::Loops(110_000_000.0)),
            duration_ms: None,
            rhythm: Rhythm::Sleep { every: Amount::Loops(5000.0), sleep_us: 5000 },
            call: None,
        }],
        ..plain(&format!("fifo99-cpu{cpu}"), Amount::Loops(1.0))
    };
    assert_eq!(scene.name, "annexb");
    assert_eq!(scene.groups, [normal, fifo(1), fifo(2), fifo(3)]);
    assert!(scene.why.starts_with("this scenario should theoretically be better"), "{}", scene.why);
    assert!(scene.why.ends_with("(10n0rt:1nlrt:1nlrt:1nlrt)"), "{}", scene.why);
}

#[test]
fn annex_b_knows_all_its_keys_and_policies() {
    let scene = annexb(
        "{\nloop=1\nsloop = 2 # note\n sleep=0x3\niloop = 4\nsched=RR\npriority=5\ncpu_mask=0x5\n}\n\
         { loop = 1 }\n{\nloop=1\npriority=-5\n}\n{\nloop=1\nsched=BATCH\npriority=5\n}\n\
         {\nloop=1\nsched=IDLE\n}\n{\nloop=1\nsched=EXT\n}\n{\nloop=2\nsched=NORMAL\n}\n",
    );
    assert_eq!(scene.groups[0].name, "rr5-cpus0_2");
    assert_eq!(scene.groups[0].sched, Sched::Rr { priority: 5 });
    assert_eq!(scene.groups[0].cpus, cpus([0, 2]));
    let call = Call { kind: CallKind::Sysinfo, every: Amount::Loops(4.0) };
    assert_eq!(
        scene.groups[0].phases,
        [Phase {
            work: Some(Amount::Loops(1.0)),
            duration_ms: None,
            rhythm: Rhythm::Sleep { every: Amount::Loops(2.0), sleep_us: 3 },
            call: Some(call),
        }]
    );
    let names: Vec<_> = scene.groups.iter().map(|g| g.name.as_str()).collect();
    assert_eq!(names, ["rr5-cpus0_2", "normal", "normal-5", "batch+5", "idle", "ext", "normal-2"]);
    assert_eq!(scene.groups[2].sched, Sched::Normal { nice: -5 });
}

#[test]
fn equal_blocks_are_one_group_in_the_place_of_the_first() {
    let scene = annexb("{\nloop=1\n}\n{\nloop=2\n}\n{\nloop=1\nsched=NORMAL\npriority=0\n}\n");
    let counts: Vec<_> = scene.groups.iter().map(|g| (g.name.as_str(), g.count)).collect();
    assert_eq!(counts, [("normal", 2), ("normal-2", 1)]);
}

#[test]
fn a_comment_at_the_head_is_the_reason() {
    let why = |text: &str| annexb(text).why;
    assert_eq!(why("# one\n# two\n\n# three\n{\nloop=1\n}\n"), "one two");
    assert_eq!(why("# one\n# two\n# of the block\n{\nloop=1\n}\n"), "one two");
    assert_eq!(why("# alone\n{\nloop=1\n}\n"), "alone");
    assert_eq!(why("{\nloop=1\n}\n# late\n"), "");
}

#[test]
fn the_least_toml_scene_has_the_defaults_of_the_table() {
    let scene = toml("why = 'w'\n[[group]]\nname = 'a'\nloop = 5\n");
    assert_eq!((scene.why.as_str(), scene.good.as_str(), scene.seed), ("w", "", 1));
    assert_eq!((scene.limit_ms, scene.rt_cpus), (None, None));
    assert_eq!(scene.groups, [plain("a", Amount::Loops(5.0))]);
}

#[test]
fn all_keys_of_a_group_arrive() {
    let scene = toml(
        "why = 'w'\ngood = 'g'\nseed = 18446744073709551615\nlimit_ms = 9\nrt_cpus = '1-3'\n\
         [[group]]\nname = 'src'\ncompute_us = 1e3\nsloop_us = 10\nsleep_us = 0\n\
         [[group]]\nname = 'a'\ncount = 3\nsched = 'FIFO'\npriority = 7\ncpus = '0, 2-3'\n\
         cgroup = 'x/y'\ncpu_weight = 50\nstart_us = 1\nspread_us = 2\nmemory_kb = 3\n\
         jitter_pct = 4\nfollows = 'src'\nbuffer = 6\nitem_kb = 0\nburst = 2.5\n\
         call = 'fault'\niloop_us = 1\n",
    );
    assert_eq!((scene.good.as_str(), scene.seed, scene.limit_ms), ("g", u64::MAX, Some(9)));
    assert_eq!(scene.rt_cpus, cpus(1..4));
    let every = Amount::Us(1.0);
    let expected = Group {
        name: "a".into(),
        count: 3,
        sched: Sched::Fifo { priority: 7 },
        cpus: cpus([0, 2, 3]),
        cgroup: Some(Cgroup { path: "x/y".into(), weight: Some(50) }),
        start_us: 1,
        spread_us: 2,
        memory_kb: 3,
        jitter_pct: 4,
        follows: vec!["src".into()],
        buffer: 6,
        item_kb: 0,
        phases: vec![Phase {
            work: None,
            duration_ms: None,
            rhythm: Rhythm::Items { burst: Amount::Loops(2.5) },
            call: Some(Call { kind: CallKind::Fault, every }),
        }],
    };
    assert_eq!(scene.groups[1], expected);
}

#[test]
fn every_policy_can_be_said() {
    let sched = |keys: &str| {
        toml(&format!("why = 'w'\n[[group]]\nname = 'a'\nloop = 1\n{keys}\n")).groups[0].sched
    };
    assert_eq!(sched("nice = -20"), Sched::Normal { nice: -20 });
    assert_eq!(sched("sched = 'BATCH'\nnice = 3"), Sched::Batch { nice: 3 });
    assert_eq!(sched("sched = 'IDLE'"), Sched::Idle);
    assert_eq!(sched("sched = 'EXT'"), Sched::Ext { nice: 0 });
    assert_eq!(sched("sched = 'RR'\npriority = 1"), Sched::Rr { priority: 1 });
    assert_eq!(
        sched("sched = 'DEADLINE'\ndl_runtime_us = 100\ndl_period_us = 1000"),
        Sched::Deadline { runtime_us: 100, deadline_us: 1000, period_us: 1000 }
    );
    assert_eq!(
        sched("sched = 'DEADLINE'\ndl_runtime_us = 100\ndl_deadline_us = 500\ndl_period_us = 1000"),
        Sched::Deadline { runtime_us: 100, deadline_us: 500, period_us: 1000 }
    );
}

#[test]
fn masks_are_hexadecimal_and_may_be_wide() {
    let mask = |value: &str| {
        let text = format!("why = 'w'\n[[group]]\nname = 'a'\nloop = 1\ncpu_mask = {value}\n");
        toml(&text).groups[0].cpus.clone()
    };
    assert_eq!(mask("0x6"), cpus([1, 2]));
    assert_eq!(mask("'0x6'"), cpus([1, 2]));
    assert_eq!(mask("'0x10000000000000000000000000'"), cpus([100]));
}

#[test]
fn phases_come_in_order_and_are_repeated() {
    let scene = toml(
        "why = 'w'\n[[group]]\nname = 'a'\nrepeat = 2\n\
         [[group.phase]]\nperiod_us = 1000\nduty_pct = 25\nduration_ms = 10\n\
         [[group.phase]]\nperiod_us = 1000\nburst_us = 5\nburst_deadline_us = 500\nloop = 3\n",
    );
    let first = Rhythm::Periodic { period_us: 1000, burst: Amount::Us(250.0), deadline_us: 1000 };
    let second = Rhythm::Periodic { period_us: 1000, burst: Amount::Us(5.0), deadline_us: 500 };
    let rhythms: Vec<_> = scene.groups[0].phases.iter().map(|p| p.rhythm).collect();
    assert_eq!(rhythms, [first, second, first, second]);
    assert_eq!(scene.groups[0].phases[0].duration_ms, Some(10));
    assert_eq!(scene.groups[0].phases[1].work, Some(Amount::Loops(3.0)));
}

#[test]
fn the_format_is_guessed_by_the_ending_and_then_by_the_content() {
    let guess = |path: &str, text: &str| Format::guess(path.as_ref(), text);
    assert_eq!(guess("a.toml", "{"), Format::Toml);
    assert_eq!(guess("a.scn", "why = 1"), Format::AnnexB);
    assert_eq!(guess("a", "# c\n\n  {\n"), Format::AnnexB);
    assert_eq!(guess("a.txt", "# c\nwhy = 'w'\n"), Format::Toml);
}
