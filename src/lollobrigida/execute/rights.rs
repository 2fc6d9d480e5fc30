// SPDX-License-Identifier: GPL-2.0-only
//! Which rights a scene and its schedulers need, and which of them are here.

use std::fs;

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{AccessFlags, access};

use super::Under;
use super::run::cgroup;
use super::sched_ext::SchedExt;
use crate::plan::{Need, Plan, Right as Needed, Task, expect};
use crate::scene::Sched;

/// Numbers of capabilities(7).
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_NICE: u32 = 23;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Something that is not allowed to everyone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// What wants it, for people: `FIFO tasks (group rt)`.
    pub what: String,
    /// Why it is not here and what to do; `None`: it is.
    pub lacking: Option<String>,
    /// Without it nothing is run; otherwise the rest is.
    pub must: bool,
}

/// What this process may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Powers {
    /// Effective capabilities, a bit for each.
    pub capabilities: u64,
    /// Highest real-time priority without CAP_SYS_NICE, 0: none.
    pub rt_priority: u64,
    /// Lowest nice without CAP_SYS_NICE.
    pub nice: i64,
    /// The run's cgroup can be made.
    pub cgroup: bool,
    /// The kernel has sched_ext.
    pub sched_ext: bool,
}

impl Powers {
    /// Of this process, now.
    #[must_use]
    pub fn here() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let soft = |limit| getrlimit(limit).map_or(0, |(soft, _)| soft);
        Self {
            capabilities: capabilities(&status).unwrap_or(0),
            rt_priority: soft(Resource::RLIMIT_RTPRIO),
            // setrlimit(2): the limit is 20 - nice
            nice: 20 - soft(Resource::RLIMIT_NICE).min(40).cast_signed(),
            cgroup: cgroup::place().is_ok_and(|dir| access(&dir, AccessFlags::W_OK).is_ok()),
            sched_ext: SchedExt::here().read().is_some(),
        }
    }

    fn has(self, capability: u32) -> bool {
        self.capabilities & 1 << capability != 0
    }
}

/// `CapEff` of /proc/self/status.
fn capabilities(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Everything that the plan and the schedulers need, whether it is here or not.
#[must_use]
pub fn needed(plan: &Plan, unders: &[Under], powers: Powers) -> Vec<Right> {
    let to_start = unders.iter().filter_map(|under| to_start(under, powers));
    let needs = expect(plan, 1).needs;
    let for_tasks = needs.into_iter().map(|need| for_tasks(plan, need, powers));
    to_start.chain(for_tasks).collect()
}

fn to_start(under: &Under, powers: Powers) -> Option<Right> {
    under.command.as_ref()?;
    let root = powers.has(CAP_SYS_ADMIN) && powers.has(CAP_BPF) && powers.has(CAP_PERFMON);
    let lacking = if !powers.sched_ext {
        Some("this kernel has no sched_ext (Linux 6.12 and newer, CONFIG_SCHED_CLASS_EXT=y)")
    } else if !root {
        Some("loading a scheduler wants root: run it with sudo; --under default can do without")
    } else {
        None
    };
    let what = format!("starting {}", under.title);
    Some(Right { what, lacking: lacking.map(Into::into), must: true })
}

fn for_tasks(plan: &Plan, need: Need, powers: Powers) -> Right {
    let of_group = |task: &&Task| plan.groups[task.group] == need.group;
    let sched = plan.tasks.iter().find(of_group).map(|task| task.sched);
    let (here, otherwise) = match need.right {
        Needed::SysNice => (
            sched.is_some_and(|sched| may(sched, powers)),
            "wants root (or CAP_SYS_NICE): without it the tasks run as normal ones, which is \
             another scene",
        ),
        Needed::CgroupWrite => (
            powers.cgroup,
            "no cgroup (v2) can be made beside our own, so the tasks stay in it: run it as root, \
             or with systemd-run --user --scope -p Delegate=yes",
        ),
        Needed::SchedExt => (
            powers.sched_ext,
            "this kernel has no sched_ext: the tasks run as normal ones, which is another scene",
        ),
    };
    let what = format!("group {} {}", need.group, need.why);
    Right { what, lacking: (!here).then(|| otherwise.into()), must: false }
}

/// May we give a task this policy and nice?
fn may(sched: Sched, powers: Powers) -> bool {
    powers.has(CAP_SYS_NICE)
        || match sched {
            Sched::Fifo { priority } | Sched::Rr { priority } => {
                u64::from(priority) <= powers.rt_priority
            }
            Sched::Deadline { .. } => false,
            Sched::Normal { nice } | Sched::Batch { nice } | Sched::Ext { nice } => {
                i64::from(nice) >= powers.nice.min(0)
            }
            Sched::Idle => true,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: Powers =
        Powers { capabilities: 0, rt_priority: 0, nice: 0, cgroup: false, sched_ext: true };
    const ROOT: Powers = Powers { capabilities: u64::MAX, cgroup: true, ..NOBODY };

    #[test]
    fn capabilities_are_read() {
        let status = "Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000800000\n";
        let powers = Powers { capabilities: capabilities(status).expect("a line"), ..NOBODY };
        assert!(powers.has(CAP_SYS_NICE) && !powers.has(CAP_SYS_ADMIN));
        assert_eq!(capabilities("Name:\tx\n"), None);
    }

    #[test]
    fn policies_want_what_the_kernel_asks_for() {
        let deadline = Sched::Deadline { runtime_us: 1, deadline_us: 2, period_us: 2 };
        for sched in [Sched::Fifo { priority: 1 }, Sched::Rr { priority: 9 }, deadline] {
            assert!(!may(sched, NOBODY) && may(sched, ROOT), "{sched:?}");
        }
        assert!(!may(Sched::Normal { nice: -1 }, NOBODY));
        // RLIMIT_NICE is 0 where nobody set it, which reads as 20
        let usual = Powers { nice: 20, ..NOBODY };
        assert!(may(Sched::Normal { nice: 0 }, usual) && may(Sched::Idle, usual));
        let limits = Powers { rt_priority: 5, nice: -3, ..NOBODY };
        assert!(may(Sched::Fifo { priority: 5 }, limits));
        assert!(!may(Sched::Fifo { priority: 6 }, limits));
        assert!(!may(deadline, limits), "no limit allows it");
        assert!(may(Sched::Batch { nice: -3 }, limits));
        assert!(!may(Sched::Batch { nice: -4 }, limits));
    }

    #[test]
    fn schedulers_want_root_and_a_kernel() {
        let under = Under { title: "scx_x".into(), command: Some(vec!["scx_x".into()]) };
        let lacking = |powers| to_start(&under, powers).expect("a right").lacking;
        assert_eq!(lacking(ROOT), None);
        assert!(lacking(NOBODY).is_some_and(|why| why.contains("root")));
        let old = Powers { sched_ext: false, ..ROOT };
        assert!(lacking(old).is_some_and(|why| why.contains("6.12")));
        assert_eq!(to_start(&Under { command: None, ..under.clone() }, NOBODY), None);
    }
}
