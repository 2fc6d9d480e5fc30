// SPDX-License-Identifier: GPL-2.0-only
//! What the running kernel's BTF offers.

use std::fs;

use scx_utils::compat;

use crate::cli::PutBackChoice;

/// Are tasks put back late from beneath a real-time task (docs/decisions/0003-put-back.md)?
pub fn puts_back_lazily(choice: PutBackChoice) -> bool {
    let nohz_full = fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
    let nohz_full = nohz_full.trim().trim_matches(['(', ')']).trim_start_matches("null");
    if choice == PutBackChoice::Lazy && !nohz_full.is_empty() {
        log::warn!(
            "--put-back lazy waits for the tick, and CPUs {nohz_full} (nohz_full) have none while \
             a real-time task runs: tasks may be stuck beneath it. Prefer --put-back eager"
        );
    }
    decide_lazily(choice, nohz_full)
}

fn decide_lazily(choice: PutBackChoice, nohz_full: &str) -> bool {
    match choice {
        PutBackChoice::Auto => nohz_full.is_empty(),
        PutBackChoice::Eager => false,
        PutBackChoice::Lazy => true,
    }
}

/// From 6.19 on, tasks can be put back from any context; before, by ops.cpu_release only.
pub fn can_reenqueue_anywhere() -> bool {
    compat::ksym_exists("scx_bpf_reenqueue_local___v2").unwrap_or(false)
}

/// Is this a function of the kernel that a program of ours may be attached to?
pub fn has_function(name: &str) -> bool {
    compat::ksym_exists(name).unwrap_or(false)
}

/// Does ops.dispatch run before the real-time classes are asked? To 6.18 it is
/// called from `balance_scx()`, which is gone in 6.19.
pub fn dispatches_before_rt() -> bool {
    !can_reenqueue_anywhere() || compat::ksym_exists("balance_scx").unwrap_or(false)
}

/// How long a runnable task may wait before the kernel ejects the scheduler, ms,
/// when the user does not say.
///
/// Without an ext_server (to 6.19) whatever is bound to the CPU of a busy
/// real-time task starves beneath it, the kernel's own per-CPU threads first:
/// a short limit would only eject the scheduler sooner.
pub fn default_watchdog_ms() -> u32 {
    if compat::struct_has_field("rq", "ext_server").unwrap_or(false) { 10_000 } else { 30_000 }
}

/// The flags of the scheduler, as far as this kernel knows them; an unknown bit
/// would be refused.
pub fn ops_flags() -> u64 {
    // Without it the first kernels complain when a cgroup gets a weight. From
    // 6.15, which brought BUILTIN_IDLE_PER_NODE, they complain when it is there.
    let cgroup_weight = if *compat::SCX_OPS_BUILTIN_IDLE_PER_NODE == 0 {
        compat::read_enum("scx_ops_flags", "SCX_OPS_HAS_CGROUP_WEIGHT").unwrap_or(0)
    } else {
        0
    };
    // ENQ_LAST: a task alone on its CPU must reach ops.enqueue after a kick.
    // ENQ_EXITING, ENQ_MIGRATION_DISABLED: or they go to the local queue unseen.
    // KEEP_BUILTIN_IDLE: ops.update_idle is there for real-time tasks only.
    *compat::SCX_OPS_KEEP_BUILTIN_IDLE
        | *compat::SCX_OPS_ENQ_LAST
        | *compat::SCX_OPS_ENQ_EXITING
        | *compat::SCX_OPS_ENQ_MIGRATION_DISABLED
        | cgroup_weight
}

#[cfg(test)]
mod tests {
    use super::*;
    use PutBackChoice::{Auto, Eager, Lazy};

    #[test]
    fn put_back_follows_the_kernel_and_the_user() {
        for (choice, nohz_full, expected) in [
            (Auto, "", true),
            (Auto, "2-3", false),
            (Eager, "", false),
            (Eager, "2-3", false),
            (Lazy, "", true),
            (Lazy, "2-3", true),
        ] {
            assert_eq!(decide_lazily(choice, nohz_full), expected, "{choice:?} {nohz_full}");
        }
    }
}
