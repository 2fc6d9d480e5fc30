// SPDX-License-Identifier: GPL-2.0-only
//! Task affinity: whom a task follows, as `scx_artis ctl follow` and rules say it
//! (docs/follow.md).

use anyhow::Result;

use crate::abi::FOLLOW_MAX;
use crate::control::{Following, Reply};
use crate::exit::Failure;

/// What became of a wish to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// It is so.
    Done {
        /// Producers before.
        before: u32,
        /// CPUs where the consumer may run.
        cpus: u32,
        /// The kernel's real-time classes run it.
        realtime: bool,
    },
    /// Nothing has changed: no task has this thread id, or it is ending.
    Missing(u32),
    /// Nothing has changed: the consumer is a kernel thread.
    Kernel,
}

/// A scheduler in charge, as far as tasks follow others in it.
pub trait Follows {
    /// Has `consumer` follow these producers, at most [`FOLLOW_MAX`], and nobody else; of none it
    /// follows nobody any more. Thread ids. A producer that ends is forgotten.
    ///
    /// # Errors
    /// When BPF does not take it.
    fn follow(&mut self, consumer: i32, producers: &[i32]) -> Result<Followed>;

    /// Which task follows which.
    ///
    /// # Errors
    /// When BPF or /proc cannot be asked.
    fn followers(&self) -> Result<Vec<Following>>;
}

/// Does what `scx_artis ctl follow` asks for.
///
/// # Errors
/// When something is wrong with it or BPF does not take it. Then nothing has changed.
pub fn answer(
    consumer: i32,
    producers: &[i32],
    scheduler: &mut impl Follows,
) -> Result<Reply, Failure> {
    let wrong = |text: String| Err(Failure::Told { code: 2, text });
    if producers.len() > FOLLOW_MAX {
        let given = producers.len();
        return wrong(format!(
            "{given} producers are too many for one task: it can follow {FOLLOW_MAX}"
        ));
    }
    if producers.contains(&consumer) {
        return wrong(format!("task {consumer} cannot follow itself: name the tasks that wake it"));
    }
    let (before, cpus, realtime) =
        match scheduler.follow(consumer, producers).map_err(Failure::NotTaken)? {
            Followed::Done { before, cpus, realtime } => (before, cpus, realtime),
            Followed::Missing(pid) => {
                return wrong(format!("there is no task {pid}: has it ended? Nothing has changed"));
            }
            Followed::Kernel => {
                return wrong(format!(
                    "task {consumer} is a kernel thread: those stay where the kernel has them"
                ));
            }
        };
    let mut warnings = Vec::new();
    if cpus == 1 && !producers.is_empty() {
        warnings.push(format!("task {consumer} may run on one CPU only: it stays there"));
    }
    if realtime && !producers.is_empty() {
        warnings.push(format!(
            "task {consumer} is a real-time task of the kernel: it follows once it is none"
        ));
    }
    let text = match (producers, before) {
        ([], 0) => format!("task {consumer} follows nobody (already)"),
        ([], _) => format!("task {consumer} follows nobody any more"),
        _ => {
            let names: Vec<_> = producers.iter().map(ToString::to_string).collect();
            format!("task {consumer} follows {}", names.join(", "))
        }
    };
    Ok(Reply::Done { text, warnings })
}

/// Tells who follows whom.
///
/// # Errors
/// When BPF cannot be asked.
pub fn list(scheduler: &impl Follows) -> Result<Reply, Failure> {
    Ok(Reply::Followers { pairs: scheduler.followers()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks 1 to 99, of which 7 is a kernel thread and 8 is bound to one CPU.
    #[derive(Default)]
    struct Fake(Vec<(i32, Vec<i32>)>);

    impl Follows for Fake {
        fn follow(&mut self, consumer: i32, producers: &[i32]) -> Result<Followed> {
            let gone = [&[consumer], producers].concat().into_iter().find(|pid| *pid > 99);
            if let Some(pid) = gone {
                return Ok(Followed::Missing(pid.unsigned_abs()));
            }
            if consumer == 7 {
                return Ok(Followed::Kernel);
            }
            let before = self.0.iter().any(|(of, _)| *of == consumer).into();
            self.0.push((consumer, producers.to_vec()));
            let cpus = if consumer == 8 { 1 } else { 4 };
            Ok(Followed::Done { before, cpus, realtime: consumer == 9 })
        }

        fn followers(&self) -> Result<Vec<Following>> {
            Ok(Vec::new())
        }
    }

    fn said(consumer: i32, producers: &[i32], fake: &mut Fake) -> (String, Vec<String>) {
        match answer(consumer, producers, fake).expect("taken") {
            Reply::Done { text, warnings } => (text, warnings),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_so_is_said() {
        let mut fake = Fake::default();
        assert_eq!(said(5, &[], &mut fake).0, "task 5 follows nobody (already)");
        assert_eq!(said(5, &[1, 2], &mut fake), ("task 5 follows 1, 2".into(), vec![]));
        assert_eq!(said(5, &[], &mut fake).0, "task 5 follows nobody any more");
        assert_eq!(fake.0, [(5, vec![]), (5, vec![1, 2]), (5, vec![])]);
    }

    #[test]
    fn what_has_no_effect_is_warned_of() {
        let mut fake = Fake::default();
        let one_cpu = said(8, &[1], &mut fake).1;
        assert!(one_cpu.len() == 1 && one_cpu[0].contains("one CPU only"), "{one_cpu:?}");
        let realtime = said(9, &[1], &mut fake).1;
        assert!(realtime.len() == 1 && realtime[0].contains("real-time"), "{realtime:?}");
        assert_eq!(said(8, &[], &mut fake).1, [""; 0]);
    }

    #[test]
    fn what_is_wrong_changes_nothing() {
        let mut fake = Fake::default();
        for (consumer, producers, word) in [
            (1, &[2, 1][..], "cannot follow itself"),
            (1, &[2, 3, 4, 5, 6], "too many"),
            (1, &[2, 100], "no task 100"),
            (200, &[2], "no task 200"),
            (7, &[2], "kernel thread"),
        ] {
            let failure = answer(consumer, producers, &mut fake).expect_err(word);
            assert_eq!(failure.code(), 2);
            assert!(failure.to_string().contains(word), "{failure}");
        }
        assert_eq!(fake.0, []);
    }
}
