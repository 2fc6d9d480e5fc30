// SPDX-License-Identifier: GPL-2.0-only
//! What is decided when, against this process's own threads and a scheduler that remembers.

use std::fs;
use std::os::fd::AsRawFd;
use std::process::Command;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::*;
use crate::control::Class;
use crate::daemon::live::tests::{Fake, setup};

fn own_tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

impl Classes {
    /// That decides about this process, too.
    pub(in crate::daemon) fn of_everybody(self) -> Self {
        Self { own_tgid: 0, ..self }
    }
}

fn classes(file: &Path, text: &str) -> Classes {
    fs::write(file, text).expect("written");
    let classes = Classes::new(Source::new(Some(file.to_owned())), Adoption::default());
    classes.expect("rules").of_everybody()
}

fn rt1(priority: u32) -> Option<Treatment> {
    let class = Class::Rt1 { priority, round_robin: false };
    Some(Treatment { class, ..Treatment::default() })
}

fn item(kind: Kind, pid: i32, comm: &str) -> Item {
    Item { pid, tgid: pid, kind, all_threads: false, comm: comm.to_owned(), asked: None }
}

#[test]
fn without_rules_nothing_is_wanted_and_nobody_looked_at() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut classes = classes(&dir.path().join("rules"), "");
    let mut fake = Fake::default();
    classes.begin(&setup("2"), &mut fake).expect("begun");
    classes.repartitioned(&setup("2"), &mut fake);
    assert!(fake.classes.is_empty() && fake.wanted.is_empty());
}

#[test]
fn tasks_are_looked_at_when_there_are_news_of_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = "[[rule]]\ncomm = 'new-name'\nclass = 'rt1'\npriority = 4\n";
    let mut classes = classes(&dir.path().join("rules"), text);
    let (mut fake, setup, tid) = (Fake::default(), setup("2"), own_tid());
    classes.begin(&setup, &mut fake).expect("begun");
    assert_eq!(fake.wanted, [[Kind::Exec, Kind::Name]]);
    assert_eq!(fake.treated(tid), Some(Treatment::default()));
    // the name that it has in a moment; whoever is gone by then is no error
    fake.classes.clear();
    let gone = item(Kind::Exec, i32::MAX, "x");
    fake.news = (vec![item(Kind::Name, tid, "new-name"), gone], false);
    classes.hear(&setup, &mut fake);
    assert_eq!(fake.classes, [(tid, rt1(4).expect("it"))]);
    // other news tell what /proc tells: the old name
    fake.news = (vec![item(Kind::Exec, tid, "new-name")], false);
    classes.hear(&setup, &mut fake);
    assert_eq!(fake.treated(tid), Some(Treatment::default()));
    // a process as a whole
    fake.classes.clear();
    let tgid = std::process::id().cast_signed();
    let moved = Item { all_threads: true, ..item(Kind::Cgroup, tgid, "x") };
    fake.news = (vec![moved], false);
    classes.hear(&setup, &mut fake);
    assert!(fake.treated(tid).is_some() && fake.treated(tgid).is_some());
    assert!(fake.treated(1).is_none());
    // lost news may have been of anybody
    fake.news = (Vec::new(), true);
    classes.hear(&setup, &mut fake);
    assert!(fake.treated(1).is_some());
}

#[test]
fn a_storm_that_loses_news_has_all_tasks_looked_at_now_and_then() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut classes = classes(&dir.path().join("rules"), "[[rule]]\ncomm = 'x'\nadopt = false\n");
    let (mut fake, setup) = (Fake::default(), setup("2"));
    classes.begin(&setup, &mut fake).expect("begun");
    let lose = |classes: &mut Classes, listed_at| {
        let mut fake = Fake::default();
        fake.news = (Vec::new(), true);
        classes.listed_at = listed_at;
        classes.hear(&setup, &mut fake);
        fake.treated(1).is_some()
    };
    assert!(lose(&mut classes, None), "not at once");
    let later = Instant::now() + Duration::from_secs(3600);
    assert!(!lose(&mut classes, Some(later)), "again at once");
    fake.classes.clear();
    classes.catch_up(&setup, &mut fake);
    assert!(fake.classes.is_empty(), "too soon");
    classes.listed_at = Instant::now().checked_sub(LIST_EVERY);
    classes.catch_up(&setup, &mut fake);
    assert!(fake.treated(1).is_some(), "not when it was time");
    fake.classes.clear();
    classes.listed_at = None;
    classes.catch_up(&setup, &mut fake);
    assert!(fake.classes.is_empty(), "twice for one loss");
}

#[test]
fn tasks_that_cannot_be_read_are_looked_at_again() {
    // the limit is of a whole process
    let mut child = Command::new(std::env::current_exe().expect("own program"));
    let name = "daemon::classes::tests::child_out_of_descriptors";
    let child = child.args(["--exact", name, "--ignored"]).output().expect("started");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "is started in a process of its own by the test above"]
fn child_out_of_descriptors() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut classes = classes(&dir.path().join("rules"), "[[rule]]\ncomm = 'x'\nadopt = false\n");
    let (mut fake, setup, tid) = (Fake::default(), setup("2"), own_tid());
    classes.begin(&setup, &mut fake).expect("begun");
    assert!(!classes.unseen);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("readable");
    let next = fs::File::open("/proc").map(|file| file.as_raw_fd() as u64).expect("open");
    let tgid = std::process::id().cast_signed();
    let moved = Item { all_threads: true, ..item(Kind::Cgroup, tgid, "x") };
    // too few for any file; one, with which tasks can be listed and not be read
    for (files, news) in [(0, moved), (1, item(Kind::Exec, tid, "x"))] {
        setrlimit(Resource::RLIMIT_NOFILE, next + files, hard).expect("less needs no rights");
        assert_eq!(Facts::threads(tgid).is_ok(), files == 1, "it was not gone");
        (fake.news, fake.classes) = ((vec![news], false), Vec::new());
        classes.listed_at = None;
        classes.hear(&setup, &mut fake);
        assert!(classes.unseen && classes.unread && fake.classes.is_empty(), "{files} files");
        // too soon for a second look
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).expect("as before");
        classes.listed_at = Some(Instant::now() + Duration::from_secs(3600));
        classes.catch_up(&setup, &mut fake);
        assert!(fake.classes.is_empty());
        classes.listed_at = Instant::now().checked_sub(LIST_EVERY);
        classes.catch_up(&setup, &mut fake);
        assert!(fake.treated(tid).is_some() && fake.treated(1).is_some(), "{files} files");
        assert!(!classes.unseen && !classes.unread);
    }
}

#[test]
fn the_daemon_itself_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut classes =
        classes(&dir.path().join("rules"), "[[rule]]\ncomm = '*'\nrt-cpus = 'forbid'\n");
    classes.own_tgid = std::process::id().cast_signed();
    let mut fake = Fake::default();
    classes.begin(&setup("2"), &mut fake).expect("begun");
    assert_eq!(fake.treated(own_tid()), None);
    assert!(fake.treated(1).is_some_and(|treatment| !treatment.rt_cpus));
}

#[test]
fn a_next_scheduler_learns_all_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = "[[rule]]\ncomm = 'x'\nrt-cpus = 'forbid'\n";
    let mut classes = classes(&dir.path().join("rules"), text);
    let (setup, tid) = (setup("2"), own_tid());
    classes.begin(&setup, &mut Fake::default()).expect("begun");
    let by_hand = Treatment { by_hand: true, ..rt1(8).expect("it") };
    classes.set_by_hand(TaskId::now(tid).expect("it can be read").expect("it lives"), by_hand);
    classes.by_hand.insert(TaskId { tid: 1, start_ticks: u64::MAX }, by_hand);
    let mut next = Fake::default();
    classes.begin(&setup, &mut next).expect("begun");
    assert_eq!(next.wanted.len(), 1);
    assert_eq!(next.classes[0], (tid, by_hand));
    assert!(!next.classes.contains(&(1, by_hand)), "that was another task with this id");
}
