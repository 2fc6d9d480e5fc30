// SPDX-License-Identifier: GPL-2.0-only
//! What can be said of the machine before anything is done to it. Warnings teach: what was
//! seen, why it matters, what to do.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::rights::Right;
use super::sched_ext::{InCharge, SchedExt};
use crate::actor::{clocksource, in_user_mode};
use crate::measure::cpu_stat::{CpuStat, tick_ns};
use crate::measure::machine::online_cpus;
use crate::measure::trouble::machine;
use crate::result::Warning;

/// How long the machine is looked at.
const WINDOW: Duration = Duration::from_millis(300);
/// Share of all CPUs above which others' work is told. A tick of 10 ms more or less is 3 %
/// of the window.
const NOISE: f64 = 0.07;

/// All that is known before a run.
#[must_use]
pub fn survey() -> Vec<Warning> {
    let cpus = online_cpus().unwrap_or_default();
    let mut warnings = machine::all(Path::new(machine::SYS_CPU), &cpus);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    warnings.extend(virtual_machine(&cpuinfo));
    warnings.extend(slow_clock(&clocksource()));
    warnings.extend(busy_share().and_then(busy));
    warnings
}

/// `rights`: what could not be set, if it did not keep the runs from being made.
#[must_use]
pub fn lacking(rights: &[Right]) -> Vec<Warning> {
    let lacking = |right: &Right| {
        let why = right.lacking.as_ref()?;
        Some(Warning::new("rights", format!("{}: {why}", right.what)))
    };
    rights.iter().filter_map(lacking).collect()
}

/// `other_scheduler`: the kernel's own is not in charge, in a run under whichever is.
#[must_use]
pub fn other_scheduler(kernel: &SchedExt) -> Option<Warning> {
    let ops = InCharge::scheduler(kernel.read().as_ref()).ops?;
    Some(Warning::new(
        "other_scheduler",
        format!(
            "the sched_ext scheduler '{ops}' is in charge: these figures are about it, not about \
             the kernel's own. To choose, stop it and use lollobrigida compare"
        ),
    ))
}

/// `virtual`: x86's CPUs tell when a hypervisor shows them.
fn virtual_machine(cpuinfo: &str) -> Option<Warning> {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
    flags.split_whitespace().any(|flag| flag == "hypervisor").then(|| {
        Warning::new(
            "virtual",
            "this is a virtual machine: its CPUs stand still whenever the host runs something else, \
             unseen by the scheduler. Believe ratios within one boot, from many alternating runs, \
             and no absolute time",
        )
    })
}

/// `clock`: tasks cannot read the kernel's clock without a system call.
fn slow_clock(source: &str) -> Option<Warning> {
    let instead = if cfg!(target_arch = "x86_64") {
        "tasks look at the CPU's counter (TSC) instead, which is compared with the clock before \
         each run. Times that they tell err by some ten microseconds in each second, and by more \
         if the CPUs' counters differ. Boot with tsc=reliable if they are sound"
    } else {
        "tasks that look at the clock enter the kernel for it, as system calls that the scene did \
         not ask for"
    };
    (!in_user_mode(source)).then(|| {
        Warning::new(
            "clock",
            format!(
                "time is kept by '{source}', which user space cannot read by itself: {instead}"
            ),
        )
    })
}

/// Share of all CPUs' time that was not idle, within [`WINDOW`].
fn busy_share() -> Option<f64> {
    let (before, began) = (CpuStat::read().ok()?, Instant::now());
    sleep(WINDOW);
    let (ticks, elapsed) = (CpuStat::read().ok()?.since(&before), began.elapsed());
    let idle: u64 = ticks.0.values().map(|ticks| ticks.idle).sum();
    let all_ns = elapsed.as_nanos() as f64 * ticks.0.len() as f64;
    (all_ns > 0.0).then(|| 1.0 - (idle * tick_ns()) as f64 / all_ns)
}

/// `noisy`: something runs although nothing should.
fn busy(share: f64) -> Option<Warning> {
    (share > NOISE).then(|| {
        Warning::new(
            "noisy",
            format!(
                "the machine is {:.0} % busy before anything was started: that work takes part in \
                 every run, and not in each alike. Stop it (top shows what it is)",
                share * 100.0
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_machine_is_not_blamed() {
        assert_eq!(busy(0.02), None);
        assert!(busy(0.4).is_some_and(|w| w.text.contains("40 %")));
    }

    #[test]
    fn hypervisors_show_themselves() {
        assert_eq!(virtual_machine("processor: 0\nflags\t\t: fpu vme\n"), None);
        assert!(virtual_machine("flags\t\t: fpu hypervisor vme\n").is_some());
    }

    #[test]
    fn clocks_that_need_the_kernel_are_told() {
        for fast in ["tsc", "tsc-early", "kvm-clock", "arch_sys_counter", ""] {
            assert_eq!(slow_clock(fast), None, "{fast}");
        }
        assert!(slow_clock("hpet").is_some_and(|w| w.text.contains("'hpet'")));
        let by_tsc =
            slow_clock("hpet").is_some_and(|w| w.text.contains("look at the CPU's counter"));
        assert_eq!(by_tsc, cfg!(target_arch = "x86_64"));
    }

    #[test]
    fn only_what_is_lacking_is_told() {
        let right = |lacking: Option<&str>| Right {
            what: "FIFO".into(),
            lacking: lacking.map(Into::into),
            must: false,
        };
        let told = lacking(&[right(None), right(Some("be root"))]);
        assert_eq!(told.iter().map(|w| &*w.text).collect::<Vec<_>>(), ["FIFO: be root"]);
    }
}
