// SPDX-License-Identifier: GPL-2.0-only
use super::*;
use crate::daemon::classes::adoption::attr::Policy;

const BOOT: &str = "of this test";

fn id(tid: i32, start_ticks: u64) -> TaskId {
    TaskId { tid, start_ticks }
}

fn adopted(priority: u32) -> Change {
    Change::Adopted(Was { policy: Policy::Rr, priority, reset_on_fork: false })
}

fn confined() -> Change {
    Change::Confined { tgid: 4, from: "0-3".into(), to: "0-1".into() }
}

/// What happens to three tasks, one of them twice; then one is done.
fn records() -> Vec<Record> {
    let changed = |tid, change| Record::Changed { id: id(tid, 7), change };
    vec![
        changed(1, adopted(50)),
        changed(2, confined()),
        changed(1, adopted(60)),
        Record::Done(id(2, 7)),
        changed(3, adopted(1)),
    ]
}

fn bytes(records: &[Record]) -> Vec<u8> {
    let boot = Record::Boot(BOOT.into());
    [&boot].into_iter().chain(records).flat_map(|record| line(record).expect("JSON")).collect()
}

#[test]
fn cut_off_at_every_byte_it_says_what_was_written_whole() {
    let all = bytes(&records());
    for cut in 0..=all.len() {
        let cut_off = &all[..cut];
        let whole = cut_off.iter().filter(|byte| **byte == b'\n').count().saturating_sub(1);
        let mut expected = BTreeMap::new();
        for record in records().into_iter().take(whole) {
            match record {
                Record::Changed { id, change } => drop(expected.insert(id, change)),
                Record::Done(id) => drop(expected.remove(&id)),
                Record::Boot(_) => {}
            }
        }
        assert_eq!(read(cut_off, BOOT), (expected, whole), "cut off at byte {cut}");
    }
}

#[test]
fn another_boot_is_another_machine() {
    assert_eq!(read(&bytes(&records()), "another"), (BTreeMap::new(), 0));
}

#[test]
fn a_damaged_line_costs_only_itself() {
    let mut damaged = bytes(&records()[..1]);
    damaged.extend(b"{\"changed\":{\"id\":{\"tid\":9\n");
    damaged.extend(line(&records()[4]).expect("JSON"));
    let (held, _) = read(&damaged, BOOT);
    assert_eq!(held.into_keys().collect::<Vec<_>>(), [id(1, 7), id(3, 7)]);
}

struct Fake {
    dir: tempfile::TempDir,
}

impl Fake {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory") }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("tasks.json")
    }

    fn open(&self) -> Journal {
        Journal::open(&self.path()).expect("readable")
    }
}

#[test]
fn a_successor_knows_what_its_predecessor_did() {
    let fake = Fake::new();
    let mut journal = fake.open();
    assert!(journal.held().is_empty() && !fake.path().exists());
    journal.note(id(1, 7), adopted(50)).expect("noted");
    journal.note(id(2, 7), confined()).expect("noted");
    journal.done(id(2, 7)).expect("noted");
    // the pid is another task's by now, which was changed as well
    journal.note(id(1, 9), adopted(3)).expect("noted");
    drop(journal); // SIGKILL
    let mut journal = fake.open();
    assert_eq!(journal.held(), &[(id(1, 7), adopted(50)), (id(1, 9), adopted(3))].into());
    journal.remove().expect("removed");
    assert!(!fake.path().exists() && fake.open().held().is_empty());
}

#[test]
fn what_is_added_after_a_cut_off_line_is_not_glued_to_it() {
    let fake = Fake::new();
    let mut journal = fake.open();
    for tid in 1..3 {
        journal.note(id(tid, 7), adopted(50)).expect("noted");
    }
    drop(journal);
    let mut text = fs::read(fake.path()).expect("readable");
    text.truncate(text.len() - 5);
    fs::write(fake.path(), text).expect("written");
    let mut journal = fake.open();
    journal.note(id(3, 7), adopted(5)).expect("noted");
    let tids = |journal: &Journal| journal.held().keys().map(|id| id.tid).collect::<Vec<_>>();
    assert_eq!((tids(&journal), tids(&fake.open())), (vec![1, 3], vec![1, 3]));
}

#[test]
fn it_does_not_grow_for_ever() {
    let fake = Fake::new();
    let mut journal = fake.open();
    journal.note(id(1, 1), adopted(50)).expect("noted");
    for tid in 2..6000 {
        journal.note(id(tid, 7), adopted(50)).expect("noted");
        journal.done(id(tid, 7)).expect("noted");
        if journal.is_stale() {
            journal.rewrite().expect("written");
        }
    }
    assert!(fs::metadata(fake.path()).expect("there").len() < 1 << 20);
    assert_eq!(fake.open().held(), &[(id(1, 1), adopted(50))].into());
}

#[test]
fn without_a_record_nothing_is_changed() {
    let mut journal = Journal::open(Path::new("/nonexistent/tasks.json")).expect("absent");
    let error = journal.note(id(1, 7), adopted(50)).expect_err("cannot be written");
    assert!(format!("{error:#}").contains("could not be put back"), "{error:#}");
    assert!(journal.held().is_empty());
}
