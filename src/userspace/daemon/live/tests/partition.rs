// SPDX-License-Identifier: GPL-2.0-only
//! `ctl rt-cpus`.

use super::*;

#[test]
fn the_partition_changes_whole() {
    let daemon = Daemon::start(setup("2"), Fake::default());
    assert_eq!(
        daemon.ctl(&["rt-cpus", "1,4"]).expect("taken"),
        "RT CPUs are 1,4 (were 2), NRT CPUs 0,2-3\n"
    );
    assert_eq!(
        daemon.ctl(&["rt-cpus", "0x12"]).expect("taken"),
        "RT CPUs are 1,4 (already), NRT CPUs 0,2-3\n"
    );
    let table = daemon.ctl(&["get"]).expect("told");
    assert!(table.starts_with("RT CPUs 1,4  NRT CPUs 0,2-3  policy_seq 1\n"), "{table}");
    let (setup, fake) = daemon.end();
    // of the caches 0,3 and 2; CPU 5 is offline
    assert_eq!((fake.rt.as_str(), fake.groups.as_slice()), ("1,4", &[0, 0, 1, 0, 1, 0][..]));
    assert_eq!(fake.policy.cpu_kind[..6], [1, 2, 1, 1, 2, 0]);
    assert_eq!((fake.policy.seq, setup.wanted.seq), (1, 1));
    assert_eq!(setup.wanted.rt.to_string(), "1,4");
}

#[test]
fn a_wrong_partition_is_refused_as_at_the_start() {
    let daemon = Daemon::start(setup("2"), Fake::default());
    for (cpus, words) in [
        ("9", "has only CPUs 0-5"),
        ("5", "offline"),
        ("0-4", "no CPU is left for kernel work"),
        ("0x0", "no RT CPU"),
    ] {
        let (code, text) = failure(daemon.ctl(&["rt-cpus", cpus]));
        assert_eq!((code, text.contains(words)), (2, true), "{cpus}: {text}");
    }
    let (setup, fake) = daemon.end();
    assert_eq!((setup.partition.rt.to_string(), fake.rt), ("2".to_owned(), String::new()));
}

#[test]
fn a_split_core_is_warned_of() {
    let mut setup = setup("2");
    let request = Request::RtCpus { cpus: "3".to_owned() };
    let reply = answer_alone(&request, &mut setup, &mut Fake::default()).expect("taken");
    let Reply::Done { warnings, .. } = reply else { panic!("{reply:?}") };
    assert!(warnings.len() == 1 && warnings[0].contains("CPUs 0,3"), "{warnings:?}");
}

#[test]
fn cpus_that_go_and_come_are_followed() {
    let (mut setup, mut fake) = (setup("2-3"), Fake::default());
    let mut follow = |online| {
        follow_cpus(&mut setup, &mut fake, &mut classes(), &machine_of(online).expect("a machine"))
    };
    assert_eq!(follow("0-1,3-4").expect("taken"), "RT CPUs are 3 (2 offline), NRT CPUs 0-1,4");
    assert_eq!(follow("0-5").expect("taken"), "RT CPUs are 2-3, NRT CPUs 0-1,4-5");
    let failure = follow("0-1").expect_err("no RT CPU is left");
    assert!(matches!(failure, Failure::Config(_)), "{failure}");
    assert_eq!((fake.rt.as_str(), fake.policy.seq), ("2-3", 2));
}

#[test]
fn a_core_keeps_its_number_without_its_lowest_cpu() {
    let (mut setup, mut fake) = (setup("3"), Fake::default());
    for online in ["1-4", "0-4"] {
        let seen = machine_of(online).expect("a machine");
        follow_cpus(&mut setup, &mut fake, &mut classes(), &seen).expect("taken");
        assert_eq!(setup.topology.core[3..5], [0, 4], "with {online}");
    }
    assert_eq!(setup.topology.core[0], 0);
}
