// SPDX-License-Identifier: GPL-2.0-only
//! The classes of system calls, by name (design: model section 3).
//!
//! A call is harmless or sleeping only with a reason that bounds its time in
//! the kernel; whatever the table does not name endangers. The numbers are the
//! kernel's own, of the architecture that the program is built for.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;

use clap::ValueEnum;
use syscalls::Sysno;

use super::ConfigError;
use crate::abi::{CallClass, NR_CALLS};

/// The classes as users name them; what a class means for futex(2) and poll(2)
/// depends on an argument of the call, see [`CallClass`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Class {
    /// Short, bounded, takes no contended lock: no attempt.
    Harmless,
    /// Bounded set-up, then sleep: no attempt, and it may wake on an RT CPU.
    Sleeping,
    /// Everything else: an attempt, and an eviction on an RT CPU.
    Endangering,
}

/// One system call that does not endanger.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name as in the kernel's table.
    pub name: &'static str,
    /// Class by default.
    pub class: Class,
    /// What bounds its time in the kernel.
    pub why: &'static str,
}

const fn harmless(name: &'static str, why: &'static str) -> Entry {
    Entry { name, class: Class::Harmless, why }
}

const fn sleeping(name: &'static str, why: &'static str) -> Entry {
    Entry { name, class: Class::Sleeping, why }
}

/// The calls that do not endanger by default. Names that an architecture lacks
/// are skipped there.
pub const DEFAULTS: &[Entry] = &[
    harmless("getpid", "reads a field of the task"),
    harmless("gettid", "reads a field of the task"),
    harmless("getppid", "reads one pointer under RCU"),
    harmless("getpgrp", "reads one pointer under RCU"),
    harmless("getuid", "reads a field of the credentials"),
    harmless("geteuid", "reads a field of the credentials"),
    harmless("getgid", "reads a field of the credentials"),
    harmless("getegid", "reads a field of the credentials"),
    harmless("getcpu", "reads the CPU number, copies two words"),
    harmless("time", "reads a timekeeper field"),
    harmless("gettimeofday", "reads the clock source under a sequence count, copies two words"),
    harmless("clock_gettime", "reads the clock source under a sequence count, copies two words"),
    harmless("clock_getres", "reads a constant of the clock, copies two words"),
    harmless("sched_yield", "the lock of this CPU's run queue, then the scheduler itself"),
    sleeping("pause", "sets the task's state and schedules"),
    sleeping("nanosleep", "arms one timer of this CPU and schedules"),
    sleeping("clock_nanosleep", "arms one timer of this CPU and schedules"),
    sleeping("rt_sigsuspend", "swaps the signal mask under the task's own lock and schedules"),
    sleeping(
        "rt_sigtimedwait",
        "looks at the pending signals under the task's own lock, arms one timer",
    ),
    sleeping(
        "epoll_wait",
        "asks what is ready, if it takes up to --poll-fds-max events; with more it endangers",
    ),
    sleeping("epoll_pwait", "as epoll_wait, after swapping the signal mask"),
    sleeping("epoll_pwait2", "as epoll_wait, after swapping the signal mask"),
    sleeping(
        "futex",
        "FUTEX_WAIT and FUTEX_WAIT_BITSET: one hash bucket lock; other operations endanger",
    ),
    sleeping("futex_wait", "one hash bucket lock, arms one timer"),
    sleeping(
        "poll",
        "asks each descriptor once, up to --poll-fds-max of them; with more it endangers",
    ),
    sleeping("ppoll", "as poll, after swapping the signal mask"),
];

/// The class of each system call on this machine.
#[derive(Clone, Debug)]
pub struct CallTable {
    classes: BTreeMap<Sysno, (Class, &'static str)>,
}

/// `NAME=CLASS` of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Name of the system call, not yet looked up.
    pub name: String,
    /// Its class.
    pub class: Class,
}

impl FromStr for Override {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, class) =
            text.split_once('=').ok_or("write NAME=CLASS, for example getrandom=harmless")?;
        let class = Class::from_str(class, true).map_err(|_| {
            format!("\"{class}\" is no class; one of harmless, sleeping, endangering")
        })?;
        Ok(Self { name: name.to_owned(), class })
    }
}

impl CallTable {
    /// The default table with `overrides` applied, or, when `strict`, a table
    /// in which every call endangers.
    ///
    /// # Errors
    /// A name that the kernel does not have, or two classes for one call.
    pub fn new(strict: bool, overrides: &[Override]) -> Result<Self, ConfigError> {
        let mut classes = BTreeMap::new();
        if !strict {
            for entry in DEFAULTS {
                if let Ok(call) = Sysno::from_str(entry.name) {
                    classes.insert(call, (entry.class, entry.why));
                }
            }
        }
        let mut given = BTreeMap::new();
        for Override { name, class } in overrides {
            let call = Sysno::from_str(name).map_err(|()| unknown_call(name))?;
            if let Some(first) = given.insert(call, *class).filter(|first| first != class) {
                return Err(ConfigError::CallTwice { name: name.clone(), first, second: *class });
            }
            classes.insert(call, (*class, "by --call"));
        }
        Ok(Self { classes })
    }

    /// The class of each system-call number, for `struct artis_policy`.
    pub fn by_number(&self) -> [u8; NR_CALLS] {
        let mut table = [CallClass::Endangering as u8; NR_CALLS];
        for (call, (class, _)) in &self.classes {
            if let Some(slot) = usize::try_from(call.id()).ok().and_then(|nr| table.get_mut(nr)) {
                *slot = class.of_call(*call) as u8;
            }
        }
        table
    }
}

impl Class {
    /// What BPF does for a call of this class: for some an argument decides.
    fn of_call(self, call: Sysno) -> CallClass {
        match (self, call.name()) {
            (Self::Harmless, "clock_gettime" | "clock_getres") => CallClass::HarmlessClock,
            (Self::Harmless, _) => CallClass::Harmless,
            (Self::Endangering, _) => CallClass::Endangering,
            (Self::Sleeping, "futex") => CallClass::SleepingFutex,
            (Self::Sleeping, "poll" | "ppoll") => CallClass::SleepingPoll,
            (Self::Sleeping, "epoll_wait" | "epoll_pwait" | "epoll_pwait2") => {
                CallClass::SleepingEpoll
            }
            (Self::Sleeping, _) => CallClass::Sleeping,
        }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Harmless => "harmless",
            Self::Sleeping => "sleeping",
            Self::Endangering => "endangering",
        })
    }
}

impl std::fmt::Display for CallTable {
    /// The table as text: number, name, class and why, by class, then number.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut rows: Vec<_> = self.classes.iter().collect();
        rows.sort_by_key(|(call, (class, _))| (*class, call.id()));
        let mut text = String::new();
        for (call, (class, why)) in rows {
            writeln!(
                text,
                "{:>4}  {:<16} {:<12} {why}",
                call.id(),
                call.name(),
                class.to_string()
            )?;
        }
        writeln!(text, "   *  {:<16} {:<12} every other call", "", Class::Endangering.to_string())?;
        f.write_str(&text)
    }
}

fn unknown_call(name: &str) -> ConfigError {
    let nearest = Sysno::iter()
        .map(|call| (strsim::damerau_levenshtein(name, call.name()), call.name()))
        .min()
        .filter(|(distance, _)| *distance <= 1 + name.len() / 3)
        .map(|(_, nearest)| nearest);
    ConfigError::UnknownCall { name: name.to_owned(), nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class_of(table: &CallTable, name: &str) -> u8 {
        let call = Sysno::from_str(name).expect("a system call");
        table.by_number()[call.id() as usize]
    }

    fn overrides(texts: &[&str]) -> Vec<Override> {
        texts.iter().map(|text| text.parse().expect("NAME=CLASS")).collect()
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn every_default_is_a_call_of_this_kernel() {
        for entry in DEFAULTS {
            assert!(Sysno::from_str(entry.name).is_ok(), "{}", entry.name);
            assert!(!entry.why.is_empty(), "{}", entry.name);
            assert_ne!(entry.class, Class::Endangering, "{}", entry.name);
        }
    }

    #[test]
    fn defaults() {
        let table = CallTable::new(false, &[]).expect("a table");
        assert_eq!(class_of(&table, "getpid"), CallClass::Harmless as u8);
        assert_eq!(class_of(&table, "clock_gettime"), CallClass::HarmlessClock as u8);
        assert_eq!(class_of(&table, "clock_nanosleep"), CallClass::Sleeping as u8);
        assert_eq!(class_of(&table, "futex"), CallClass::SleepingFutex as u8);
        assert_eq!(class_of(&table, "futex_wait"), CallClass::Sleeping as u8);
        assert_eq!(class_of(&table, "ppoll"), CallClass::SleepingPoll as u8);
        assert_eq!(class_of(&table, "epoll_pwait"), CallClass::SleepingEpoll as u8);
        for name in ["read", "write", "fork", "mmap", "futex_waitv", "kill", "ioctl"] {
            if Sysno::from_str(name).is_ok() {
                assert_eq!(class_of(&table, name), CallClass::Endangering as u8, "{name}");
            }
        }
    }

    #[test]
    fn strict_leaves_nothing() {
        let table = CallTable::new(true, &[]).expect("a table");
        assert_eq!(table.by_number(), [CallClass::Endangering as u8; NR_CALLS]);
    }

    #[test]
    fn overrides_win() {
        let table = CallTable::new(
            false,
            &overrides(&["getpid=endangering", "getrandom=harmless", "poll=sleeping"]),
        )
        .expect("a table");
        assert_eq!(class_of(&table, "getpid"), CallClass::Endangering as u8);
        assert_eq!(class_of(&table, "getrandom"), CallClass::Harmless as u8);
        assert_eq!(class_of(&table, "poll"), CallClass::SleepingPoll as u8);
        assert!(table.to_string().contains("by --call"));
    }

    #[test]
    fn unknown_name_gets_the_nearest() {
        let error =
            CallTable::new(false, &overrides(&["clock_getime=harmless"])).expect_err("unknown");
        assert!(error.to_string().contains("clock_gettime"), "{error}");
        let error =
            CallTable::new(false, &overrides(&["xyzzyplugh=harmless"])).expect_err("unknown");
        assert!(!error.to_string().contains("did you mean"), "{error}");
    }

    #[test]
    fn two_classes_for_one_call() {
        let error = CallTable::new(false, &overrides(&["read=harmless", "read=sleeping"]))
            .expect_err("twice");
        assert!(
            error.to_string().contains("harmless") && error.to_string().contains("sleeping"),
            "{error}"
        );
        CallTable::new(false, &overrides(&["read=harmless", "read=harmless"]))
            .expect("the same twice is fine");
    }
}
