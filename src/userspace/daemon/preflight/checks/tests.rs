// SPDX-License-Identifier: GPL-2.0-only

use capctl::caps::Cap;

use super::*;
use crate::daemon::preflight::{Severity, errors};

/// A machine with nothing to complain about.
fn fit() -> Facts {
    Facts {
        is_root: true,
        missing_capabilities: Vec::new(),
        namespaces: vec![],
        lockdown: "none".into(),
        has_cgroup2: true,
        release: "6.18.15+deb13-cloud-amd64".into(),
        sched_ext: Some(SchedExt { state: "disabled".into(), ops: None }),
        has_btf: true,
        malformed_kfuncs: vec![],
        has_function_tracer: true,
        needs_kernel_config: true,
        has_kernel_config: true,
        cmdline: "quiet nohz_full=2-3".into(),
        isolated: String::new(),
        preemption: Model::Lazy,
        can_switch_preemption: true,
        has_ext_server: false,
    }
}

/// The one finding about `facts` that is not ok.
fn complaint(facts: &Facts) -> Finding {
    let mut bad: Vec<_> = judge(facts).into_iter().filter(|f| f.severity != Severity::Ok).collect();
    assert_eq!(bad.len(), 1, "{bad:?}");
    bad.remove(0)
}

fn assert_complaint(facts: Facts, severity: Severity, words: &[&str]) {
    let finding = complaint(&facts);
    assert_eq!(finding.severity, severity, "{finding}");
    for word in words {
        assert!(finding.text.contains(word), "\"{word}\" is missing: {finding}");
    }
}

#[test]
fn a_fit_machine_is_fit() {
    let findings = judge(&fit());
    assert!(findings.iter().all(|finding| finding.severity == Severity::Ok), "{findings:?}");
    assert_eq!(errors(&findings), None);
}

#[test]
fn what_makes_it_impossible() {
    assert_complaint(Facts { is_root: false, ..fit() }, Severity::Error, &["sudo"]);
    let limited = Facts { missing_capabilities: vec![Cap::BPF, Cap::PERFMON], ..fit() };
    assert_complaint(limited, Severity::Error, &["without CAP_BPF and CAP_PERFMON"]);
    let contained = Facts { namespaces: vec!["pid", "user"], ..fit() };
    assert_complaint(contained, Severity::Error, &["pid and user namespace", "--pid=host"]);
    let closed = Facts { lockdown: "confidentiality".into(), ..fit() };
    assert_complaint(closed, Severity::Error, &["lockdown=integrity"]);
    assert_complaint(
        Facts { sched_ext: None, ..fit() },
        Severity::Error,
        &["CONFIG_SCHED_CLASS_EXT", "6.12"],
    );
    let taken = SchedExt { state: "enabled".into(), ops: Some("bpfland_1.1".into()) };
    assert_complaint(
        Facts { sched_ext: Some(taken), ..fit() },
        Severity::Error,
        &["bpfland_1.1", "Stop it"],
    );
    assert_complaint(
        Facts { has_btf: false, ..fit() },
        Severity::Error,
        &["CONFIG_DEBUG_INFO_BTF"],
    );
    assert_complaint(
        Facts { has_function_tracer: false, ..fit() },
        Severity::Error,
        &["CONFIG_FUNCTION_TRACER"],
    );
    assert_complaint(
        Facts { has_kernel_config: false, ..fit() },
        Severity::Error,
        &["/boot/config-6.18.15+deb13-cloud-amd64", "--kconfig"],
    );
}

#[test]
fn isolcpus_only_when_it_isolates_domains() {
    for bad in ["isolcpus=2-3", "quiet isolcpus=domain,2-3", "isolcpus=nohz,domain,managed_irq,2,3"]
    {
        let facts = Facts { cmdline: bad.into(), ..fit() };
        assert_complaint(facts, Severity::Error, &["isolcpus=", "--rt-cpus", "nohz_full"]);
    }
    for fine in ["isolcpus=managed_irq,2-3", "isolcpus=nohz,2-3", "nohz_full=2-3 irqaffinity=0-1"] {
        assert_eq!(isolcpus_domain(fine), None, "{fine}");
    }
    assert_complaint(Facts { isolated: "2-3".into(), ..fit() }, Severity::Warn, &["cpuset"]);
}

#[test]
fn what_weakens_the_promise() {
    for model in [Model::None, Model::Voluntary] {
        let facts = Facts { preemption: model, ..fit() };
        assert_complaint(facts, Severity::Warn, &[&model.to_string(), "--set-preempt full"]);
    }
    let unknown = Facts { preemption: Model::Unknown, can_switch_preemption: false, ..fit() };
    assert_complaint(unknown, Severity::Warn, &["unknown", "debugfs"]);
    let locked = Facts { lockdown: "integrity".into(), can_switch_preemption: false, ..fit() };
    assert_complaint(locked.clone(), Severity::Note, &["--set-preempt"]);
    let late = judge(&Facts { preemption: Model::None, ..locked });
    let late = late.iter().find(|f| f.severity == Severity::Warn).expect("a warning");
    assert!(late.text.contains("preempt=full") && !late.text.contains("--set-preempt"), "{late}");
    assert_complaint(Facts { has_cgroup2: false, ..fit() }, Severity::Warn, &["cgroup2"]);
    let rt = Facts { preemption: Model::Realtime, ..fit() };
    assert_complaint(rt.clone(), Severity::Warn, &["6.19"]);
    let new_rt = Facts { release: "7.0.13+deb13-rt-amd64".into(), ..rt };
    assert_eq!(errors(&judge(&new_rt)), None);
    assert!(judge(&new_rt).iter().all(|finding| finding.severity == Severity::Ok));
    let broken = Facts { malformed_kfuncs: vec!["scx_bpf_kick_cpu".into()], ..fit() };
    assert_complaint(broken, Severity::Warn, &["pahole", "scx_bpf_kick_cpu"]);
    assert_complaint(
        Facts { has_ext_server: true, ..fit() },
        Severity::Note,
        &["ext_server/cpuN/runtime"],
    );
}

#[test]
fn releases() {
    assert_eq!(version_of("6.12.107"), Some((6, 12)));
    assert_eq!(version_of("7.0-rc3+"), Some((7, 0)));
    assert_eq!(version_of("next"), None);
}
