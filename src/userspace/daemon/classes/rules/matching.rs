// SPDX-License-Identifier: GPL-2.0-only
//! Is a rule about a task?

use std::num::NonZeroU32;

use super::super::facts::Facts;
use crate::config::rules::{Parent, Rule};

/// What /proc puts behind the path of a program whose file was removed or replaced since.
const DELETED: &str = " (deleted)";

/// All that the rule says of tasks is true of this one. Threads of the kernel are no rule's.
pub fn is_about(rule: &Rule, task: &Facts) -> bool {
    let has = |id: &NonZeroU32, of: i32| id.get() == of.unsigned_abs();
    !task.kernel
        && rule.cgroup.as_ref().is_none_or(|glob| glob.is_match_above(&task.cgroup))
        && rule.comm.as_ref().is_none_or(|glob| glob.is_match(&task.comm))
        && rule.comm_regex.as_ref().is_none_or(|pattern| pattern.is_match(&task.comm))
        && rule.exe.as_ref().is_none_or(|glob| {
            let exe = task.exe.as_ref().map(|exe| exe.to_string_lossy());
            exe.is_some_and(|exe| glob.is_match(exe.strip_suffix(DELETED).unwrap_or(&exe)))
        })
        && rule.user.as_ref().is_none_or(|user| user.uid == task.uid)
        && rule.pid.as_ref().is_none_or(|pid| has(pid, task.pid))
        && rule.tgid.as_ref().is_none_or(|tgid| has(tgid, task.tgid))
        && rule.policy.is_none_or(|policy| policy as u32 == task.policy)
        && rule.parent.as_ref().is_none_or(|parent| match parent {
            Parent::Id(id) => *id == task.ppid.unsigned_abs(),
            Parent::Name(glob) => task.parent_comm().is_some_and(|comm| glob.is_match(comm)),
        })
}
