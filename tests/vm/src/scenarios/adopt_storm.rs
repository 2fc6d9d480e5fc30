// SPDX-License-Identifier: GPL-2.0-only
//! SIGKILL of the daemon in the midst of adoptions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail, ensure};
use nix::sys::signal::Signal;

use super::adopt::stay_out;
use super::{Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::cpus::Cpus;
use crate::daemon::Daemon;
use crate::guest::{PATIENCE, pause, until};
use crate::policy::{EXT, Policy, gettid};
use crate::residue::Inventory;

/// Catches: a task that is changed before it is remembered, or forgotten before it is put back; a
/// child that nobody had heard of when the daemon died.
pub const ADOPT_STORM: Scenario = Scenario {
    name: "adopt_storm",
    what: "the daemon killed 20 times while tasks come, go and change: each is what it wants to be",
    scope: Scope::Nightly,
    boot: &[],
    secs: 140,
    host: Host::Alone,
    complaints: &[],
    run: adopt_storm,
};

const ROUNDS: u32 = 20;
/// Tasks that change, and have children.
const MEMBERS: u64 = 6;
/// Adopted tasks at the moments of death, all rounds together: one for each.
const ADOPTED_MIN: u64 = ROUNDS as u64;

/// What all members share.
struct Storm {
    /// Members keep still.
    still: AtomicBool,
    resting: AtomicU32,
    end: AtomicBool,
    /// What each living thread wants to be.
    wants: Mutex<BTreeMap<i32, Policy>>,
    /// Those that change; all others are children.
    members: Mutex<BTreeSet<i32>>,
    changes: AtomicU32,
    all: Cpus,
    rt: Cpus,
}

/// Numbers that look random (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

impl Storm {
    fn note(&self, tid: i32, wants: Option<Policy>) {
        let mut all = self.wants.lock().unwrap_or_else(PoisonError::into_inner);
        match wants {
            Some(policy) => drop(all.insert(tid, policy)),
            None => drop(all.remove(&tid)),
        }
    }

    /// A child: it is what its parent was, and lives for a while, or to the end of the round.
    fn child(self: &Arc<Self>, parent: Policy, lives_ms: u64) -> Result<()> {
        let storm = Arc::clone(self);
        let wants = match parent {
            Policy { reset_on_fork: true, .. } => Policy::new(libc::SCHED_OTHER, 0),
            parent => parent,
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            let own = gettid();
            storm.note(own, Some(wants));
            pause(lives_ms as f64 / 1e3);
            storm.wait_until_looked_at();
            storm.note(own, None);
        })?;
        Ok(())
    }

    /// Nobody changes or ends while everybody is looked at. It looks seldom: a hundred real-time tasks
    /// that look each millisecond leave an emulated machine no time for anybody else.
    fn wait_until_looked_at(&self) {
        while self.still.load(Ordering::SeqCst) {
            pause(0.02);
        }
    }

    /// One step of a member.
    fn step(self: &Arc<Self>, dice: &mut Dice, is: &mut Policy) -> Result<()> {
        match dice.below(8) {
            0..=2 => {
                let policy = if dice.below(3) == 0 { libc::SCHED_RR } else { libc::SCHED_FIFO };
                let priority = 1 + dice.below(50) as u32;
                let reset_on_fork = dice.below(6) == 0;
                *is = Policy { reset_on_fork, ..Policy::new(policy, priority) };
                is.set(0)?;
            }
            3 => {
                *is = Policy::new(libc::SCHED_OTHER, 0);
                is.set(0)?;
            }
            4 => {
                *is = Policy::new(libc::SCHED_BATCH, 0);
                is.set(0)?;
            }
            5 => {
                let cpus = if dice.below(3) == 0 { self.rt } else { self.all };
                cpus.bind(0)?;
            }
            _ => {
                self.child(*is, 1 + dice.below(30))?;
            }
        }
        self.note(gettid(), Some(*is));
        self.changes.fetch_add(1, Ordering::Relaxed);
        pause((2000 + dice.below(8000)) as f64 * 1e-6);
        Ok(())
    }

    fn member(self: &Arc<Self>, seed: u64) -> Result<()> {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut is = Policy::new(libc::SCHED_OTHER, 0);
        is.set(0)?;
        self.all.bind(0)?;
        self.members.lock().unwrap_or_else(PoisonError::into_inner).insert(gettid());
        while !self.end.load(Ordering::SeqCst) {
            self.step(&mut dice, &mut is)?;
            if self.still.load(Ordering::SeqCst) {
                self.resting.fetch_add(1, Ordering::SeqCst);
                self.wait_until_looked_at();
                self.resting.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.note(gettid(), None);
        Ok(())
    }

    /// Nobody changes from here on.
    fn rest(&self) -> Result<()> {
        self.still.store(true, Ordering::SeqCst);
        until("the storm rests", PATIENCE, || {
            Ok(u64::from(self.resting.load(Ordering::SeqCst)) == MEMBERS)
        })?;
        pause(0.05); // children that have just begun
        Ok(())
    }

    fn go_on(&self) {
        self.still.store(false, Ordering::SeqCst);
    }

    fn policies(&self) -> Result<Vec<(i32, Policy, Policy)>> {
        let wants = self.wants.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut all = Vec::new();
        for (tid, wants) in wants {
            if let Some(is) = Policy::of(tid)? {
                all.push((tid, wants, is));
            }
        }
        Ok(all)
    }

    /// Is there a child that is adopted, or whose parent was?
    fn has_child(&self) -> Result<bool> {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let all = self.policies()?;
        Ok(all.iter().any(|(tid, _, is)| is.policy == EXT && !members.contains(tid)))
    }

    fn ensure_as_wanted(&self, when: &str) -> Result<usize> {
        let all = self.policies()?;
        let wrong: Vec<_> = all.iter().filter(|(_, wants, is)| wants != is).collect();
        ensure!(wrong.is_empty(), "{when}: of {} tasks (tid, wants, is) {wrong:?}", all.len());
        Ok(all.len())
    }
}

fn adopt_storm(ctx: &Ctx) -> Result<Outcome> {
    stay_out(ctx)?;
    let before = Inventory::now();
    let storm = Arc::new(Storm {
        still: AtomicBool::new(false),
        resting: AtomicU32::new(0),
        end: AtomicBool::new(false),
        wants: Mutex::new(BTreeMap::new()),
        members: Mutex::new(BTreeSet::new()),
        changes: AtomicU32::new(0),
        all: ctx.all(),
        rt: ctx.rt,
    });
    let begin = |seed| {
        let storm = Arc::clone(&storm);
        std::thread::spawn(move || storm.member(seed))
    };
    let members: Vec<_> = (1..=MEMBERS).map(begin).collect();
    pause(0.2);
    storm.rest()?;
    storm.ensure_as_wanted("control, without scx_artis")?;
    storm.go_on();
    let outcome = rounds(ctx, &storm);
    storm.end.store(true, Ordering::SeqCst);
    storm.go_on();
    for member in members {
        match member.join() {
            Ok(ended) => ended?,
            Err(_) => bail!("a member of the storm panicked"),
        }
    }
    outcome?;
    before.ensure_same()?;
    Ok(Outcome::Passed)
}

fn rounds(ctx: &Ctx, storm: &Arc<Storm>) -> Result<()> {
    let (mut dice, mut adopted, mut seen) = (Dice(u64::from(std::process::id()) | 1), 0, 0);
    for round in 0..ROUNDS {
        let daemon = ctx.load(&["--adopt"])?;
        pause(dice.below(400) as f64 / 1e3);
        // The daemon looks at all news at once and then rests, in proportion to what that took: so it
        // dies soon after it has looked. Which tasks have made their last change by then is chance.
        until("a child is adopted, or that of an adopted task", PATIENCE, || storm.has_child())?;
        storm.still.store(true, Ordering::SeqCst);
        pause(dice.below(6000) as f64 / 1e6);
        daemon.stop(Signal::SIGKILL)?;
        storm.rest()?;
        adopted += storm.policies()?.iter().filter(|(_, _, is)| is.policy == EXT).count() as u64;
        if round % 2 == 0 {
            let ended = Daemon::run(&ctx.program, &["--restore"])?;
            ensure!(ended.code == 0, "--restore: {}\n{}", ended.code, ended.output);
            seen += storm.ensure_as_wanted(&format!("round {round}, --restore"))?;
        } else {
            let next = ctx.load(&[])?;
            seen += storm.ensure_as_wanted(&format!("round {round}, the next start"))?;
            next.finish()?;
        }
        say(&format!("death {round}: {adopted} adopted tasks were left so far, {seen} looked at"));
        storm.go_on();
    }
    say(&format!(
        "{ROUNDS} deaths amid {} changes: {adopted} adopted tasks were left, {seen} looked at, all \
         as they want to be",
        storm.changes.load(Ordering::Relaxed)
    ));
    enough(adopted, ADOPTED_MIN, "adopted tasks were left by the dead")
}
