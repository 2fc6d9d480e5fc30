// SPDX-License-Identifier: GPL-2.0-only
//! What preflight thinks of the facts. Pure.

use super::Severity::{Error, Note, Ok, Warn};
use super::{Facts, Finding, SchedExt};
use crate::daemon::preempt::Model;

/// One finding for each subject, in the order in which they matter.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![root(facts)];
    findings.extend(namespaces(facts));
    findings.extend([sched_ext(facts), btf(facts), tracer(facts)]);
    findings.extend(lockdown(facts));
    findings.extend(kernel_config(facts));
    findings.push(isolation(facts));
    findings.push(preemption(facts));
    findings.extend(realtime_kick(facts));
    findings.extend(ext_server(facts));
    findings.extend(cgroups(facts));
    findings
}

fn root(facts: &Facts) -> Finding {
    if facts.is_root && !facts.missing_capabilities.is_empty() {
        let missing: Vec<_> =
            facts.missing_capabilities.iter().map(|cap| format!("{cap:?}")).collect();
        let text = format!(
            "running as root, but without CAP_{}, as in a container: no BPF program can be loaded. Start \
             it on the machine itself, or with these capabilities",
            missing.join(" and CAP_")
        );
        return Finding::new(Error, "root", text);
    }
    if facts.is_root {
        return Finding::new(Ok, "root", "running as root");
    }
    Finding::new(
        Error,
        "root",
        "not running as root: only root may replace the scheduler. Start it with sudo",
    )
}

/// The BPF programs know tasks by the ids and times that the machine's own namespaces have.
fn namespaces(facts: &Facts) -> Option<Finding> {
    (!facts.namespaces.is_empty()).then(|| {
        Finding::new(
            Error,
            "namespace",
            format!(
                "this process is in a container (another {} namespace), where tasks have other ids, \
                 start times or owners than the kernel tells: wrong tasks would be changed. Start it \
                 on the machine itself, or the container with the machine's namespaces (--pid=host, \
                 no user namespace)",
                facts.namespaces.join(" and ")
            ),
        )
    })
}

/// See lockdown(7). `integrity` closes debugfs.
fn lockdown(facts: &Facts) -> Option<Finding> {
    let subject = "lockdown";
    match facts.lockdown.as_str() {
        "confidentiality" => Some(Finding::new(
            Error,
            subject,
            "the kernel is locked down for confidentiality: no BPF program may read its memory, and \
             those of scx_artis do. Boot with lockdown=integrity, or without",
        )),
        "integrity" => Some(Finding::new(
            Note,
            subject,
            "the kernel is locked down for integrity (Secure Boot): the preemption model cannot be \
             switched by --set-preempt, only by preempt= of its command line; all else works",
        )),
        _ => None,
    }
}

fn cgroups(facts: &Facts) -> Option<Finding> {
    (!facts.has_cgroup2).then(|| {
        Finding::new(
            Warn,
            "cgroup",
            "processes are in no cgroup of version 2: rules with cgroup= match no task, and weights of \
             cgroups do not count. Mount it (mount -t cgroup2 none /sys/fs/cgroup), or boot with \
             systemd.unified_cgroup_hierarchy=1",
        )
    })
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
    } else if facts.lockdown == "integrity" {
        "Boot with preempt=full or preempt=lazy: a kernel that is locked down lets nobody switch it"
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
mod tests;
