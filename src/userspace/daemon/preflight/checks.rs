// SPDX-License-Identifier: GPL-2.0-only
//! What preflight thinks of the facts. Pure.

use super::Severity::{Error, Note, Ok, Warn};
use super::{Facts, Finding, SchedExt};
use crate::daemon::preempt::Model;

/// One finding for each subject, in the order in which they matter.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![root(facts), sched_ext(facts), btf(facts), tracer(facts)];
    findings.extend(kernel_config(facts));
    findings.push(isolation(facts));
    findings.push(preemption(facts));
    findings.extend(realtime_kick(facts));
    findings.extend(ext_server(facts));
    findings
}

fn root(facts: &Facts) -> Finding {
    if facts.is_root {
        return Finding::new(Ok, "root", "running as root");
    }
    Finding::new(
        Error,
        "root",
        "not running as root: only root may replace the scheduler. Start it with sudo",
    )
}

fn sched_ext(facts: &Facts) -> Finding {
    let Some(SchedExt { state, ops }) = &facts.sched_ext else {
        return Finding::new(
            Error,
            "sched_ext",
            format!(
                "kernel {} has no /sys/kernel/sched_ext: it cannot take a scheduler from outside. \
                 Boot one >= 6.12 with CONFIG_SCHED_CLASS_EXT=y (Debian: from 6.16 on, in \
                 trixie-backports; not its 6.12)",
                facts.release
            ),
        );
    };
    if state == "disabled" {
        return Finding::new(
            Ok,
            "sched_ext",
            format!("kernel {} has it, no scheduler is loaded", facts.release),
        );
    }
    let name = ops.as_deref().unwrap_or("of unknown name");
    Finding::new(
        Error,
        "sched_ext",
        format!(
            "the scheduler {name} is {state}, and the kernel takes one at a time. Stop it first \
             (systemctl stop scx scx_loader, or end its process)"
        ),
    )
}

fn btf(facts: &Facts) -> Finding {
    if !facts.has_btf {
        return Finding::new(
            Error,
            "BTF",
            "no /sys/kernel/btf/vmlinux: without the kernel's type information no BPF scheduler \
             loads. Boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
        );
    }
    if facts.malformed_kfuncs.is_empty() {
        return Finding::new(Ok, "BTF", "the kernel's type information is there and sound");
    }
    Finding::new(
        Warn,
        "BTF",
        format!(
            "this kernel was built with a pahole < 1.26 and describes {} scx functions wrongly ({}, …): \
             programs that use one of them do not load (\"func_proto incompatible with vmlinux\"). \
             Of Debian's kernels 7.1.13 and 7.2.12 from backports are like that; 6.16 to 6.19, 7.0.13 \
             and 7.2.13 from sid are sound",
            facts.malformed_kfuncs.len(),
            facts.malformed_kfuncs[0]
        ),
    )
}

fn tracer(facts: &Facts) -> Finding {
    if facts.has_function_tracer {
        return Finding::new(Ok, "tracing", "the function tracer is there");
    }
    Finding::new(
        Error,
        "tracing",
        "no /proc/sys/kernel/ftrace_enabled: kernel entries and context switches cannot be seen. \
         Boot a kernel with CONFIG_FUNCTION_TRACER=y",
    )
}

fn kernel_config(facts: &Facts) -> Option<Finding> {
    if !facts.needs_kernel_config {
        return None;
    }
    let subject = "config";
    if facts.has_kernel_config {
        return Some(Finding::new(Ok, subject, "the kernel's configuration is readable"));
    }
    Some(Finding::new(
        Error,
        subject,
        format!(
            "neither /proc/config.gz nor /boot/config-{} is there, and the BPF programs ask for \
             values of the kernel's configuration. modprobe configs, copy the file of your kernel \
             there, or name it with --kconfig",
            facts.release
        ),
    ))
}

fn isolation(facts: &Facts) -> Finding {
    let subject = "isolation";
    if let Some(option) = isolcpus_domain(&facts.cmdline) {
        return Finding::new(
            Error,
            subject,
            format!(
                "the kernel was booted with {option}, and with CPUs out of its scheduling domains \
                 it refuses every sched_ext scheduler. Remove isolcpus= (or leave only its nohz or \
                 managed_irq flags) and name those CPUs in --rt-cpus; nohz_full= and irqaffinity= \
                 may stay"
            ),
        );
    }
    if !facts.isolated.is_empty() {
        return Finding::new(
            Warn,
            subject,
            format!(
                "CPUs {} are isolated by a cpuset partition: some kernels refuse every sched_ext \
                 scheduler then. If this one does, make the partition a member again \
                 (cpuset.cpus.partition)",
                facts.isolated
            ),
        );
    }
    Finding::new(Ok, subject, "no CPU is isolated from scheduling")
}

/// The `isolcpus=` of the command line if it isolates from scheduling domains:
/// it does when it has the flag `domain` or no flag at all.
fn isolcpus_domain(cmdline: &str) -> Option<&str> {
    cmdline.split_whitespace().find(|option| {
        option.strip_prefix("isolcpus=").is_some_and(|value| {
            let mut flags =
                value.split(',').filter(|part| !part.starts_with(|c: char| c.is_ascii_digit()));
            match flags.next() {
                None => true,
                Some(first) => first == "domain" || flags.any(|flag| flag == "domain"),
            }
        })
    })
}

fn preemption(facts: &Facts) -> Finding {
    let subject = "preemption";
    let model = facts.preemption;
    if model.moves_at_once() {
        return Finding::new(
            Ok,
            subject,
            format!("{model}: tasks leave an RT CPU before the body of their call"),
        );
    }
    let remedy = if facts.can_switch_preemption {
        "Start with --set-preempt full (put back at the end), or boot with preempt=full"
    } else {
        "Mount debugfs (mount -t debugfs none /sys/kernel/debug) to have it read and switched, or \
         boot with preempt=full or preempt=lazy"
    };
    let seen = if model == Model::Unknown {
        "the model is unknown. If it is none or voluntary".to_owned()
    } else {
        format!("the model is {model}. With it")
    };
    Finding::new(
        Warn,
        subject,
        format!(
            "{seen}, a task leaves an RT CPU late: at the kernel's next preemption point or when \
             the call is over, so that bodies of calls do run there. {remedy}"
        ),
    )
}

/// PREEMPT_RT before 6.19: the kick runs in a thread (kernel.md 1.2).
fn realtime_kick(facts: &Facts) -> Option<Finding> {
    let before_6_19 = version_of(&facts.release).is_some_and(|version| version < (6, 19));
    (facts.preemption == Model::Realtime && before_6_19).then(|| {
        Finding::new(
            Warn,
            "PREEMPT_RT",
            format!(
                "kernel {} may run the scheduler's kicks in a thread (fixed in 6.19 and in some \
                 stable kernels before): beneath a busy real-time task evictions then come late. \
                 Prefer a PREEMPT_RT kernel >= 6.19",
                facts.release
            ),
        )
    })
}

fn ext_server(facts: &Facts) -> Option<Finding> {
    facts.has_ext_server.then(|| {
        Finding::new(
            Note,
            "ext_server",
            "this kernel gives ext tasks up to 5 % of a CPU that real-time tasks keep busy, RT CPUs \
             too. For none of it: echo 0 > /sys/kernel/debug/sched/ext_server/cpuN/runtime; \
             tasks bound to that CPU may then starve, and the kernel ejects the scheduler",
        )
    })
}

/// Major and minor number of a kernel release.
fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::{Severity, errors};
    use super::*;

    /// A machine with nothing to complain about.
    fn fit() -> Facts {
        Facts {
            is_root: true,
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
        let mut bad: Vec<_> =
            judge(facts).into_iter().filter(|f| f.severity != Severity::Ok).collect();
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
        for bad in
            ["isolcpus=2-3", "quiet isolcpus=domain,2-3", "isolcpus=nohz,domain,managed_irq,2,3"]
        {
            let facts = Facts { cmdline: bad.into(), ..fit() };
            assert_complaint(facts, Severity::Error, &["isolcpus=", "--rt-cpus", "nohz_full"]);
        }
        for fine in
            ["isolcpus=managed_irq,2-3", "isolcpus=nohz,2-3", "nohz_full=2-3 irqaffinity=0-1"]
        {
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
}
