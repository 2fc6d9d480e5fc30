// SPDX-License-Identifier: GPL-2.0-only
//! Order, matching, and which news rules need.

use std::path::PathBuf;

use super::super::facts::SCHED_FIFO;
use super::*;
use crate::config::rules::of_words;
use crate::control::Class;

fn entry(words: &str) -> Entry {
    let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
    Entry { rule: of_words(&words).expect("a rule"), from: "here".to_owned() }
}

fn rules(all: &[&str]) -> Rules {
    Rules::new(all.iter().map(|words| entry(words)).collect())
}

fn task() -> Facts {
    Facts {
        pid: 12,
        tgid: 10,
        ppid: 3,
        comm: "wave-1".into(),
        exe: Some(PathBuf::from("/opt/mixer/bin/wave")),
        cgroup: "/system.slice/mixer.service/inner".into(),
        uid: 0,
        policy: SCHED_FIFO,
        ..Facts::default()
    }
}

#[test]
fn each_matcher_is_for_its_own_fact() {
    for (yes, no) in [
        ("comm=wave-?", "comm=wave"),
        ("comm-regex=^wave-[0-9]$", "comm-regex=^ave"),
        ("exe=/opt/**/wave", "exe=/opt/*"),
        ("cgroup=/system.slice/mix*", "cgroup=/user.slice/mix*"),
        ("user=0", "user=1"),
        ("pid=12", "pid=10"),
        ("tgid=10", "tgid=12"),
        ("parent=3", "parent=12"),
        ("policy=fifo", "policy=rr"),
    ] {
        assert_eq!(rules(&[yes]).verdict(&task()).nr, Some(1), "{yes}");
        assert_eq!(rules(&[no]).verdict(&task()).nr, None, "{no}");
        // all of it has to be true
        let other = if yes.starts_with("pid") { "comm=other" } else { "pid=99" };
        assert_eq!(rules(&[&format!("{yes} {other}")]).verdict(&task()).nr, None, "{yes}");
    }
    assert_eq!(rules(&["comm=*"]).verdict(&Facts { kernel: true, ..task() }).nr, None);
    let replaced = Facts { exe: Some("/usr/bin/jackd (deleted)".into()), ..task() };
    assert_eq!(rules(&["exe=/usr/bin/jackd"]).verdict(&replaced).nr, Some(1));
    let parentless = Facts { ppid: 0, ..task() };
    assert_eq!(rules(&["parent=*"]).verdict(&parentless).nr, None);
}

#[test]
fn the_first_one_decides() {
    let rules = rules(&[
        "comm=wave-2 class=rt1 priority=1",
        "comm=wave-* class=rt1 priority=2 rr=true rt-cpus=forbid adopt=false",
        "comm=* class=rt1 priority=3",
    ]);
    let verdict = rules.verdict(&task());
    assert_eq!(verdict.nr, Some(2));
    assert_eq!(verdict.treatment.class, Class::Rt1 { priority: 2, round_robin: true });
    assert!(!verdict.treatment.rt_cpus && !verdict.may_adopt);
    let none = Rules::default();
    let verdict = none.verdict(&task());
    assert_eq!((verdict.treatment, verdict.may_adopt), (Treatment::default(), true));
}

#[test]
fn only_the_news_that_can_change_a_verdict_are_wanted() {
    use Kind::{Cgroup, Exec, Fork, ForkRt, FromRt, Name, ToRt};
    for (words, wanted) in [
        ("exe=/x", &[Exec][..]),
        ("user=0", &[Exec]),
        ("comm=x", &[Exec, Name]),
        ("comm-regex=x", &[Exec, Name]),
        ("cgroup=/x", &[Exec, Cgroup]),
        ("pid=1", &[Fork, ForkRt, Exec]),
        ("tgid=1", &[Fork, ForkRt, Exec]),
        ("parent=x", &[Fork, ForkRt, Exec]),
        ("policy=rr", &[Fork, ForkRt, Exec, ToRt, FromRt]),
    ] {
        assert_eq!(rules(&[words]).wants(), wanted, "{words}");
    }
    assert_eq!(rules(&["exe=/x", "comm=y", "cgroup=/z"]).wants(), [Exec, Name, Cgroup]);
    assert_eq!(Rules::default().wants(), []);
}
