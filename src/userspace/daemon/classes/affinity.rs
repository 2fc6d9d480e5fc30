// SPDX-License-Identifier: GPL-2.0-only
//! Whom tasks follow, by rules and by hand. A scheduler that comes into charge knows nothing of
//! it, so all that was said is kept here.

use std::collections::BTreeMap;

use anyhow::Result;

use super::facts::{Facts, TaskId};
use crate::abi::FOLLOW_MAX;
use crate::config::rules::NameGlob;
use crate::daemon::follow::{Followed, Follows};

/// Who follows whom, as far as somebody said so.
#[derive(Debug, Default)]
pub struct Affinity {
    /// Consumers that the user spoke of: rules leave them alone.
    by_hand: BTreeMap<TaskId, Vec<TaskId>>,
    /// What the scheduler in charge was told, by rules.
    by_rule: BTreeMap<TaskId, Vec<TaskId>>,
}

impl Affinity {
    /// The user has said whom this task follows, whatever rules say; of no producers, nobody.
    pub fn set_by_hand(&mut self, consumer: i32, producers: &[i32]) {
        let id = |tid: &i32| {
            TaskId::now(*tid).unwrap_or_else(|error| {
                log::warn!("task {tid}: what it follows ends with this scheduler: {error:#}");
                None
            })
        };
        let Some(consumer) = id(&consumer) else { return };
        self.by_rule.remove(&consumer);
        self.by_hand.insert(consumer, producers.iter().filter_map(id).collect());
    }

    /// A scheduler has come into charge: it is told what was said by hand.
    ///
    /// # Errors
    /// When it does not take it.
    pub fn begin(&mut self, scheduler: &mut impl Follows) -> Result<()> {
        self.by_rule.clear();
        self.by_hand.retain(|consumer, _| !consumer.has_ended());
        for (consumer, producers) in &mut self.by_hand {
            producers.retain(|producer| !producer.has_ended());
            scheduler.follow(consumer.tid, &ids(producers))?;
        }
        Ok(())
    }

    /// Could news of this task change who follows whom by rules? `wanted` names whom the rules have
    /// it follow, `is_followed` says that they have somebody follow tasks of its name.
    pub fn concerns(&self, task: &Facts, wanted: &[NameGlob], is_followed: bool) -> bool {
        is_followed || !wanted.is_empty() || self.by_rule.contains_key(&TaskId::of(task))
    }

    /// Has all tasks follow whom rules have them follow; `wanted` says it of one. What fails is
    /// told, and tried again the next time.
    pub fn align<'a>(
        &mut self,
        tasks: &[Facts],
        wanted: impl Fn(&Facts) -> &'a [NameGlob],
        scheduler: &mut impl Follows,
    ) {
        let mut now = BTreeMap::new();
        for task in tasks.iter().filter(|task| !task.kernel) {
            let (id, names) = (TaskId::of(task), wanted(task));
            if !names.is_empty() && !self.by_hand.contains_key(&id) {
                now.insert(id, producers(task, names, tasks));
            }
        }
        self.by_rule.retain(|id, _| {
            let stays = now.contains_key(id);
            if !stays && !id.has_ended() {
                tell(*id, &[], scheduler);
            }
            stays
        });
        for (id, producers) in now {
            let known = self.by_rule.get(&id).map_or(&[][..], Vec::as_slice);
            if known != producers && tell(id, &producers, scheduler) {
                self.by_rule.insert(id, producers);
            }
        }
    }
}

/// The tasks with these names, the first names first: those of the consumer's process, and if there
/// are none, those of its cgroup. As many as can be followed.
fn producers(consumer: &Facts, names: &[NameGlob], tasks: &[Facts]) -> Vec<TaskId> {
    let find = |near: fn(&Facts, &Facts) -> bool| {
        let mut found = Vec::new();
        for name in names {
            let of_name = tasks.iter().filter(|task| {
                let other = task.pid != consumer.pid && !found.contains(&TaskId::of(task));
                other && near(task, consumer) && name.is_match(&task.comm)
            });
            let of_name: Vec<_> = of_name.map(TaskId::of).collect();
            found.extend(of_name);
        }
        found
    };
    let mut found = find(|task, consumer| task.tgid == consumer.tgid);
    if found.is_empty() {
        found = find(|task, consumer| task.cgroup == consumer.cgroup);
    }
    if found.len() > FOLLOW_MAX {
        log::warn!(
            "rules have task {} ({}) follow {} tasks, and it can follow {FOLLOW_MAX}: the first ones",
            consumer.pid,
            consumer.shown(),
            found.len()
        );
        found.truncate(FOLLOW_MAX);
    }
    found
}

/// Returns whether it is so now.
fn tell(consumer: TaskId, producers: &[TaskId], scheduler: &mut impl Follows) -> bool {
    let pid = consumer.tid;
    match scheduler.follow(pid, &ids(producers)) {
        Ok(Followed::Done { .. }) => {
            log::debug!("task {pid} follows {:?}, as a rule says", ids(producers));
            true
        }
        Ok(Followed::Missing(gone)) => {
            log::debug!("task {pid} follows whom it followed: {gone} has ended");
            false
        }
        Ok(Followed::Kernel) => false,
        Err(error) => {
            log::warn!("task {pid} follows whom it followed: {error:#}");
            false
        }
    }
}

fn ids(tasks: &[TaskId]) -> Vec<i32> {
    tasks.iter().map(|task| task.tid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::live::tests::Fake;

    fn task(pid: i32, tgid: i32, comm: &str, cgroup: &str) -> Facts {
        let (comm, cgroup) = (comm.to_owned(), cgroup.to_owned());
        Facts { pid, tgid, comm, cgroup, start_ticks: 9, ..Facts::default() }
    }

    fn globs(names: &[&str]) -> Vec<NameGlob> {
        names.iter().map(|name| (*name).to_owned().try_into().expect("a glob")).collect()
    }

    fn aligned(
        affinity: &mut Affinity,
        tasks: &[Facts],
        names: &[NameGlob],
    ) -> Vec<(i32, Vec<i32>)> {
        let mut fake = Fake::default();
        let wanted = |task: &Facts| if task.comm == "mix" { names } else { &[] };
        affinity.align(tasks, wanted, &mut fake);
        fake.followed
    }

    #[test]
    fn producers_are_of_the_same_process_or_else_of_the_same_cgroup() {
        let mut tasks = vec![
            task(1, 1, "mix", "/a"),
            task(2, 2, "wave-1", "/a"),
            task(3, 3, "wave-2", "/a"),
            task(4, 4, "wave-3", "/b"),
        ];
        let names = globs(&["wave-2", "wave-*"]);
        let affinity = &mut Affinity::default();
        assert_eq!(aligned(affinity, &tasks, &names), [(1, vec![3, 2])], "the first name first");
        assert_eq!(aligned(affinity, &tasks, &names), [], "told once");
        tasks.push(task(5, 1, "wave-9", "/a"));
        assert_eq!(aligned(affinity, &tasks, &names), [(1, vec![5])], "one of its own process");
        tasks.truncate(1);
        assert_eq!(aligned(affinity, &tasks, &names), [(1, vec![])]);
    }

    #[test]
    fn four_at_most_and_never_itself() {
        let mut tasks = vec![task(1, 1, "mix", "")];
        tasks.extend((2..9).map(|pid| task(pid, pid, "mixed", "")));
        let affinity = &mut Affinity::default();
        assert_eq!(aligned(affinity, &tasks, &globs(&["mix*"])), [(1, vec![2, 3, 4, 5])]);
    }

    #[test]
    fn another_task_with_the_same_id_is_told_again() {
        let names = globs(&["wave"]);
        let affinity = &mut Affinity::default();
        let mut tasks = vec![task(1, 1, "mix", ""), task(2, 2, "wave", "")];
        assert_eq!(aligned(affinity, &tasks, &names), [(1, vec![2])]);
        tasks[1].start_ticks += 1;
        assert_eq!(aligned(affinity, &tasks, &names), [(1, vec![2])]);
    }

    #[test]
    fn what_was_said_by_hand_is_told_the_next_scheduler_and_outranks_rules() {
        let me = rustix::thread::gettid().as_raw_nonzero().get();
        let mut affinity = Affinity::default();
        affinity.set_by_hand(me, &[1, i32::MAX]);
        let now = Facts { comm: "mix".into(), ..Facts::read(me).expect("readable").expect("I") };
        let wave = Facts { comm: "wave".into(), pid: 3, ..now.clone() };
        assert_eq!(aligned(&mut affinity, &[now, wave], &globs(&["wave"])), []);
        let mut next = Fake::default();
        affinity.begin(&mut next).expect("taken");
        assert_eq!(next.followed, [(me, vec![1])]);
    }
}
