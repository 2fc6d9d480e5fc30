// SPDX-License-Identifier: GPL-2.0-only
//! One rule: which tasks, and how they are treated.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::pattern::{NameGlob, Parent, PathGlob, Pattern, User};
use crate::control::{Class, Treatment};

/// Names of tasks have so many bytes at most.
const COMM_MAX: usize = 15;

/// One rule. It is about a task of which all is true that it says; what it does not say of the
/// treatment is as for tasks without a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Rule {
    /// What it is called in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The task's cgroup, or one above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<PathGlob>,
    /// The task's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<NameGlob>,
    /// The task's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm_regex: Option<Pattern>,
    /// The program's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exe: Option<PathGlob>,
    /// The effective user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<User>,
    /// Thread id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<NonZeroU32>,
    /// Process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tgid: Option<NonZeroU32>,
    /// The parent process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The scheduling policy that the task has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyName>,
    /// Its class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassName>,
    /// Of RT1+: [`Class::PRIORITIES`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Of RT1+: it takes turns with others of its priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rr: Option<bool>,
    /// May it use RT CPUs?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rt_cpus: Option<Permission>,
    /// May it be adopted, if it is a SCHED_FIFO or SCHED_RR task?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopt: Option<bool>,
}

/// Classes that a rule can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassName {
    /// Firm real time.
    Rt1,
    /// Everything else.
    Nrt,
}

/// Whether something is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// It is.
    Allow,
    /// It is not.
    Forbid,
}

/// Scheduling policies; the values are those of sched(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u32)]
pub enum PolicyName {
    /// SCHED_OTHER.
    Other = 0,
    /// SCHED_FIFO.
    Fifo = 1,
    /// SCHED_RR.
    Rr = 2,
    /// SCHED_BATCH.
    Batch = 3,
    /// SCHED_IDLE.
    Idle = 5,
    /// SCHED_DEADLINE.
    Deadline = 6,
    /// SCHED_EXT.
    Ext = 7,
}

impl Rule {
    /// Do the parts go together, and could it ever be about a task?
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub fn check(&self) -> Result<(), String> {
        if !self.names_tasks() {
            return Err("the rule does not say which tasks it is about; all of them are \
                        comm = \"*\""
                .to_owned());
        }
        if let Some(comm) = &self.comm
            && comm.text().len() > COMM_MAX
            && !comm.text().contains(['*', '?', '[', '{', '\\'])
        {
            let short: String = comm.text().chars().take(COMM_MAX).collect();
            return Err(format!(
                "comm = \"{}\" matches no task: the kernel cuts names after {COMM_MAX} bytes; \
                 write \"{short}\"",
                comm.text()
            ));
        }
        let (low, high) = (Class::PRIORITIES.start(), Class::PRIORITIES.end());
        match (self.class, self.priority) {
            (Some(ClassName::Rt1), None) => {
                return Err(format!("class = \"rt1\" needs a priority; {low} to {high}, please"));
            }
            (Some(ClassName::Rt1), Some(priority)) if !Class::PRIORITIES.contains(&priority) => {
                return Err(format!(
                    "{priority} is no priority of an RT1+ task; {low} to {high}, please"
                ));
            }
            (Some(ClassName::Rt1), _) => {}
            (_, Some(_)) => return Err("only class = \"rt1\" has a priority".to_owned()),
            (_, None) if self.rr.is_some() => {
                return Err("only class = \"rt1\" has rr".to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    /// Does it give the RT1+ class by names alone? Any task can choose its name, and where users may
    /// make namespaces of their own, the path of its program, too.
    pub fn trusts_names(&self) -> bool {
        let sure = self.user.is_some() || self.cgroup.is_some();
        self.class == Some(ClassName::Rt1) && !(sure || self.pid.is_some() || self.tgid.is_some())
    }

    fn names_tasks(&self) -> bool {
        let Self { cgroup, comm, comm_regex, exe, user, pid, tgid, parent, policy, .. } = self;
        cgroup.is_some()
            || comm.is_some()
            || comm_regex.is_some()
            || exe.is_some()
            || user.is_some()
            || pid.is_some()
            || tgid.is_some()
            || parent.is_some()
            || policy.is_some()
    }

    /// How it has tasks treated.
    pub fn treatment(&self) -> Treatment {
        Treatment {
            class: match (self.class, self.priority) {
                (Some(ClassName::Rt1), Some(priority)) => {
                    Class::Rt1 { priority, round_robin: self.rr == Some(true) }
                }
                _ => Class::Nrt,
            },
            rt_cpus: self.rt_cpus != Some(Permission::Forbid),
            ..Treatment::default()
        }
    }
}
