// SPDX-License-Identifier: GPL-2.0-only
//! Time without a system call: by the vDSO, or where the clocksource does not allow that
//! (hpet and acpi_pm of emulated machines) by the TSC, compared with the clock before.

use std::time::Duration;

/// CLOCK_MONOTONIC, in ns. By the vDSO where the clocksource allows it.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec; cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// The CPU that this runs on. glibc reads it from its rseq area, musl by the vDSO.
pub(super) fn cpu() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::sched_getcpu() }.cast_unsigned()
}

/// A way to read CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// clock_gettime(2) in user mode.
    Vdso,
    /// By the TSC.
    Tsc(Tsc),
}

/// A line through two readings of clock and TSC. All CPUs are taken to have one TSC, as
/// QEMU's have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tsc {
    /// Reading of the TSC at `zero_ns`.
    pub zero: u64,
    /// CLOCK_MONOTONIC.
    pub zero_ns: u64,
    /// ns in a tick, times 2^32; never 0.
    pub ns_per_tick_q32: u64,
}

impl Clock {
    /// The way for this machine. Takes a quarter of a second where it is the TSC: read to
    /// a microsecond at each end, it errs by some ten microseconds in each second.
    pub fn choose() -> Self {
        if in_user_mode(&clocksource()) {
            return Self::Vdso;
        }
        Tsc::measure(Duration::from_millis(250)).map_or(Self::Vdso, Self::Tsc)
    }

    /// Now, in ns of CLOCK_MONOTONIC.
    pub fn now_ns(&self) -> u64 {
        match self {
            Self::Vdso => monotonic_ns(),
            Self::Tsc(line) => line.now_ns(),
        }
    }
}

/// What keeps the kernel's time; empty where it does not say.
#[must_use]
pub fn clocksource() -> String {
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(file).unwrap_or_default().trim().to_owned()
}

/// Whether the vDSO reads this clocksource, as those with a `vdso_clock_mode` in the
/// kernel's sources: Hyper-V's other one (`_msr`) has none. One that is not told is not
/// suspected.
#[must_use]
pub fn in_user_mode(name: &str) -> bool {
    const X86: [&str; 4] = ["tsc", "tsc-early", "kvm-clock", "hyperv_clocksource_tsc_page"];
    const OTHERS: [&str; 2] = ["arch_sys_counter", "riscv_clocksource"];
    name.is_empty() || X86.contains(&name) || OTHERS.contains(&name)
}

impl Tsc {
    /// Compares for so long; `None` where there is no TSC, which is told at once, or one that
    /// stands still.
    fn measure(time: Duration) -> Option<Self> {
        let (zero, zero_ns) = closest()?;
        std::thread::sleep(time);
        let (end, end_ns) = closest()?;
        let ticks = u128::from(end.checked_sub(zero)?);
        let ns = u128::from(end_ns.checked_sub(zero_ns)?);
        let ns_per_tick_q32 = u64::try_from((ns << 32).checked_div(ticks)?).ok()?;
        (ns_per_tick_q32 > 0).then_some(Self { zero, zero_ns, ns_per_tick_q32 })
    }

    fn now_ns(&self) -> u64 {
        let ticks = read_tsc().unwrap_or(0).saturating_sub(self.zero);
        let ns = (u128::from(ticks) * u128::from(self.ns_per_tick_q32)) >> 32;
        self.zero_ns + ns as u64
    }
}

/// TSC and clock at one moment: of several tries the one that took the least.
fn closest() -> Option<(u64, u64)> {
    let tries = (0..32).map(|_| {
        let before = read_tsc()?;
        let ns = monotonic_ns();
        let after = read_tsc()?;
        Some((after.saturating_sub(before), before + after.saturating_sub(before) / 2, ns))
    });
    let (_, tsc, ns) = tries.collect::<Option<Vec<_>>>()?.into_iter().min()?;
    Some((tsc, ns))
}

#[cfg(target_arch = "x86_64")]
fn read_tsc() -> Option<u64> {
    // SAFETY: every x86-64 has it, and Linux lets user mode read it.
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn read_tsc() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulated_clocksources_are_not_read_in_user_mode() {
        assert!(in_user_mode("tsc") && in_user_mode("kvm-clock"));
        assert!(!in_user_mode("hpet") && !in_user_mode("acpi_pm"));
        assert!(!in_user_mode("hyperv_clocksource_msr"));
    }

    #[test]
    fn the_tsc_tells_the_same_time() {
        let Some(line) = Tsc::measure(Duration::from_millis(50)) else { return };
        std::thread::sleep(Duration::from_millis(100));
        let before = monotonic_ns();
        let (told, after) = (line.now_ns(), monotonic_ns());
        let slack = (before - line.zero_ns) / 50;
        assert!(told + slack >= before && told <= after + slack, "{before} {told} {after}");
    }
}
