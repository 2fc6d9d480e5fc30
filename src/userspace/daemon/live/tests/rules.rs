// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis ctl rule` and `ctl class`, against this process's own threads.

use std::fs;
use std::sync::mpsc;

use super::*;

/// A thread of this process with a name; it ends when this is dropped.
struct Named {
    tid: i32,
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Named {
    fn new(name: &str) -> Self {
        let (end, ended) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let run = move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get()).expect("somebody listens");
            let _ = ended.recv();
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run).expect("a thread");
        Self { tid: told.recv().expect("its id"), end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// With the rules in `text`; the tasks of this process count as others'.
fn with_file(text: &str) -> (tempfile::NamedTempFile, Classes) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), text).expect("written");
    let source = Source::new(Some(file.path().to_owned()));
    let classes = Classes::new(source, Adoption::default()).expect("rules");
    (file, classes.of_everybody())
}

fn rt1(priority: u32) -> Treatment {
    Treatment { class: Class::Rt1 { priority, round_robin: false }, ..Treatment::default() }
}

#[test]
fn rt1_by_names_alone_is_doubted() {
    let doubts = |keys: &str| {
        let (_file, classes) = with_file(&format!("[[rule]]\n{keys}\n"));
        classes.doubts()
    };
    let rt1 = "class = 'rt1'\npriority = 7";
    for names in ["comm = 'a'", "comm-regex = 'a'", "exe = '/a'", "parent = 'a'", "policy = 'rr'"] {
        let doubts = doubts(&format!("{names}\n{rt1}"));
        let [doubt] = &doubts[..] else { panic!("{names}: {doubts:?}") };
        assert!(doubt.contains("line 1: ") && doubt.contains("user or cgroup"), "{doubt}");
        let sure = ["user = 'root'", "cgroup = '/a'", "pid = 7", "tgid = 7"];
        assert!(sure.iter().all(|sure| {
            let (_file, classes) = with_file(&format!("[[rule]]\n{names}\n{sure}\n{rt1}\n"));
            classes.doubts().is_empty()
        }));
    }
    assert_eq!(doubts("comm = 'a'\nrt-cpus = 'forbid'"), [""; 0]);
}

#[test]
fn rules_are_listed_added_and_removed() {
    let named = Named::new("rule-me-1");
    let (file, classes) = with_file("[[rule]]\ncomm = 'rule-me*'\nclass = 'rt1'\npriority = 7\n");
    let daemon = Daemon::with(setup("2"), Fake::default(), classes);
    assert_eq!(
        daemon.ctl(&["rule", "add", "comm=rule-me-1", "class=rt1", "priority=9"]).expect("added"),
        "rule 2 is in force, of 2\n"
    );
    let add = ["rule", "add", "--before", "1", "{comm = 'rule-me-1', rt-cpus = 'forbid'}"];
    assert_eq!(daemon.ctl(&add).expect("added"), "rule 1 is in force, of 3\n");
    let list = daemon.ctl(&["rule", "list"]).expect("told");
    let list = list.replace(&file.path().display().to_string(), "FILE");
    insta::assert_snapshot!(list);
    let json = daemon.ctl(&["rule", "list", "--json"]).expect("told");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json[0]["nr"], &json[0]["from"]), (&1.into(), &"ctl".into()));
    assert_eq!(json[1]["rule"]["priority"], 7);

    let removed = daemon.ctl(&["rule", "remove", "1"]).expect("removed");
    assert_eq!(removed, "rule 1 (ctl) is removed, 2 rules are in force\n");
    let removed = daemon.ctl(&["rule", "remove", "1"]).expect("removed");
    assert!(
        removed.contains("line 1) is removed, 1 rule is in force; a reload brings"),
        "{removed}"
    );
    assert!(daemon.ctl(&["rule", "remove", "1"]).expect("removed").contains("no rules are"));
    assert!(daemon.ctl(&["rule", "list"]).expect("told").starts_with("no rules"));
    let (_, fake) = daemon.end();
    let seen = fake.classes.iter().filter(|(pid, _)| *pid == named.tid).map(|(_, to)| *to);
    let forbidden = Treatment { rt_cpus: false, ..Treatment::default() };
    let none = Treatment::default();
    // added after the one that decides; before it; removed; the next one; none
    assert_eq!(seen.collect::<Vec<_>>(), [rt1(7), forbidden, rt1(7), rt1(9), none]);
    assert_eq!(fake.wanted.last(), Some(&Vec::new()), "nothing is told without rules");
}

#[test]
fn a_wrong_file_leaves_the_rules_in_force() {
    let named = Named::new("reload-me");
    let good = "[[rule]]\ncomm = 'reload-me'\nclass = 'rt1'\npriority = 5\n";
    let (file, classes) = with_file(good);
    let daemon = Daemon::with(setup("2"), Fake::default(), classes);
    daemon.ctl(&["rule", "add", "comm=x", "class=nrt"]).expect("added");
    fs::write(file.path(), format!("{good}prioritty = 6\n")).expect("written");
    let (code, text) = failure(daemon.ctl(&["rule", "reload"]));
    assert_eq!(code, 2);
    assert!(text.contains("line 5: unknown field `prioritty`"), "{text}");
    assert!(text.ends_with("the rules are as before"), "{text}");
    assert_eq!(daemon.ctl(&["rule", "list"]).expect("told").lines().count(), 3);
    fs::write(file.path(), good.replace('5', "6")).expect("written");
    let text = daemon.ctl(&["rule", "reload"]).expect("reloaded");
    assert!(
        text.starts_with("1 rule is in force") && text.contains("1 that ctl had added is gone")
    );
    drop(file);
    let (code, text) = failure(daemon.ctl(&["rule", "reload"]));
    assert!(code == 2 && text.contains("No such file"), "{text}");
    let (_, fake) = daemon.end();
    assert_eq!(fake.treated(named.tid), Some(rt1(6)));
}

#[test]
fn a_wrong_rule_changes_nothing() {
    let (_file, classes) = with_file("");
    let daemon = Daemon::with(setup("2"), Fake::default(), classes);
    for (words, what) in [
        (&["add", "comm=x", "class=rt1"][..], "needs a priority"),
        (&["add", "com=x"], "unknown field `com`"),
        (&["add", "--before", "2", "comm=x"], "there is no rule 2"),
        (&["remove", "0"], "there is no rule 0"),
    ] {
        let (code, text) = failure(daemon.ctl(&[&["rule"], words].concat()));
        assert_eq!((code, text.contains(what)), (2, true), "{words:?}: {text}");
    }
    let (_, fake) = daemon.end();
    assert!(fake.classes.is_empty() && fake.wanted.is_empty());
}

#[test]
fn what_the_kernel_refuses_is_no_rule() {
    let (_file, classes) = with_file("");
    let fake = Fake { refuses: true, ..Fake::default() };
    let daemon = Daemon::with(setup("2"), fake, classes);
    let (code, text) = failure(daemon.ctl(&["rule", "add", "comm=x", "rt-cpus=forbid"]));
    assert_eq!((code, text.contains("artis_news_exec")), (4, true), "{text}");
    assert!(daemon.ctl(&["rule", "list"]).expect("told").starts_with("no rules"));
    assert!(daemon.end().1.classes.is_empty());
}

#[test]
fn a_class_by_hand_is_marked() {
    let named = Named::new("by-hand");
    let (_file, classes) = with_file("");
    let daemon = Daemon::with(setup("2"), Fake::default(), classes);
    let tid = named.tid.to_string();
    daemon.ctl(&["class", &tid, "--class", "rt1", "--priority", "3"]).expect("set");
    let nobody = NOBODY.to_string();
    let (code, text) = failure(daemon.ctl(&["class", &nobody, "--class", "nrt"]));
    assert_eq!((code, text.contains("no task")), (2, true), "{text}");
    let (_, fake) = daemon.end();
    assert_eq!(fake.treated(named.tid), Some(Treatment { by_hand: true, ..rt1(3) }));
}
