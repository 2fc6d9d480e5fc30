// SPDX-License-Identifier: GPL-2.0-only
//! Puts schedulers in charge and takes them out again, and knows whether the one that was
//! put there is still.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

use super::daemon::{Daemon, POLL};
use super::sched_ext::{InCharge, SchedExt, running_programs};
use super::{Interrupted, Under, Unfit, interrupt};
use crate::result::Scheduler;

/// How long is waited.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a started program to be in charge. Loading takes seconds in an emulated guest.
    pub start: Duration,
    /// For a program to end after each signal, and then for the kernel's own scheduler.
    pub stop: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { start: Duration::from_secs(60), stop: Duration::from_secs(15) }
    }
}

/// Which scheduler is in charge, by our doing.
#[derive(Debug)]
pub struct Schedulers {
    kernel: SchedExt,
    patience: Patience,
    daemon: Option<Daemon>,
    /// When the present scheduler was found in charge.
    since: Option<InCharge>,
}

impl Schedulers {
    /// Changes nothing yet.
    #[must_use]
    pub fn new(kernel: SchedExt, patience: Patience) -> Self {
        Self { kernel, patience, daemon: None, since: None }
    }

    /// Says what keeps schedulers from being put in charge here.
    ///
    /// # Errors
    /// [`Unfit`], with what to do.
    pub fn ensure_ours_to_choose(&self, programs: bool) -> Result<()> {
        match self.kernel.read() {
            None if programs => Err(Unfit(
                "this kernel has no sched_ext (there is no /sys/kernel/sched_ext): only --under \
                 default can run here. sched_ext is in Linux 6.12 and newer, with \
                 CONFIG_SCHED_CLASS_EXT=y; scripts/vm boots such a kernel"
                    .into(),
            )
            .into()),
            Some(found) if !found.is_default() => Err(occupied(&found).into()),
            _ => Ok(()),
        }
    }

    /// Takes whichever scheduler is in charge as it is.
    pub fn accept(&mut self) -> Scheduler {
        self.since = self.kernel.read();
        InCharge::scheduler(self.since.as_ref())
    }

    /// Puts `under` in charge.
    ///
    /// # Errors
    /// [`Unfit`] when another one is in charge, [`Interrupted`], and when its program ends
    /// or takes too long; its last words are told. Nothing of it is left then.
    pub fn start(&mut self, under: &Under) -> Result<Scheduler> {
        self.ensure_ours_to_choose(under.command.is_some())?;
        if let Some(command) = &under.command {
            let before = self.kernel.read();
            let mut daemon = Daemon::spawn(command)?;
            match self.wait_until_in_charge(&mut daemon, before.as_ref()) {
                Ok(()) => self.daemon = Some(daemon),
                Err(error) => {
                    let stopped = daemon.stop(self.patience.stop);
                    self.wait_for_the_kernels_own()?;
                    return Err(stopped.err().unwrap_or(error));
                }
            }
        }
        self.since = self.kernel.read();
        let found = InCharge::scheduler(self.since.as_ref());
        Ok(Scheduler { name: under.title.clone(), ..found })
    }

    fn wait_until_in_charge(&self, daemon: &mut Daemon, before: Option<&InCharge>) -> Result<()> {
        let seq_before = before.and_then(|found| found.enable_seq);
        let began = Instant::now();
        loop {
            let now = self.kernel.read();
            let changed = now.as_ref().is_some_and(|now| {
                now.is_enabled() && now.ops.is_some() && now.enable_seq != seq_before
            });
            if changed {
                return Ok(());
            }
            if let Some(status) = daemon.ended()? {
                bail!("it ended before it was in charge: {status}{}", daemon.last_words());
            }
            if interrupt::pending() {
                return Err(Interrupted.into());
            }
            if began.elapsed() > self.patience.start {
                bail!(
                    "it is not in charge after {:?}: /sys/kernel/sched_ext/state says '{}'{}",
                    self.patience.start,
                    now.map_or_else(|| "nothing".into(), |now| now.state),
                    daemon.last_words()
                );
            }
            sleep(POLL);
        }
    }

    /// Tells what happened if what was put in charge is not any more.
    ///
    /// # Errors
    /// When the kernel does not say whether the program runs.
    pub fn lost(&mut self) -> Result<Option<String>> {
        let words = self.daemon.as_ref().map(Daemon::last_words).unwrap_or_default();
        let ended = self.daemon.as_mut().map(Daemon::ended).transpose()?.flatten();
        let now = self.kernel.read();
        Ok(match ended {
            Some(status) => Some(format!("its program ended: {status}{words}")),
            None if now != self.since => Some(format!(
                "in charge before: {}, now: {}{words}",
                describe(self.since.as_ref()),
                describe(now.as_ref())
            )),
            None => None,
        })
    }

    /// Ends the program that was started, if any, and waits for the kernel's own scheduler.
    ///
    /// # Errors
    /// When it does not go away.
    pub fn stop(&mut self) -> Result<()> {
        self.since = None;
        let Some(mut daemon) = self.daemon.take() else { return Ok(()) };
        daemon.stop(self.patience.stop)?;
        self.wait_for_the_kernels_own()
    }

    fn wait_for_the_kernels_own(&self) -> Result<()> {
        let began = Instant::now();
        loop {
            match self.kernel.read() {
                Some(now) if !now.is_default() => {
                    if began.elapsed() > self.patience.stop {
                        return Err(anyhow!(
                            "the program was stopped, yet the kernel has {} in charge. {HOW_TO_RESET}",
                            describe(Some(&now))
                        ));
                    }
                }
                _ => return Ok(()),
            }
            sleep(POLL);
        }
    }
}

const HOW_TO_RESET: &str =
    "As root, 'echo S > /proc/sysrq-trigger' gives the machine back to the kernel's own scheduler";

fn occupied(found: &InCharge) -> Unfit {
    let programs = running_programs();
    let who = if programs.is_empty() {
        String::new()
    } else {
        format!("; running: {}", programs.join(", "))
    };
    Unfit(format!(
        "another scheduler is in charge, {}{who}: the figures would be about it. Stop it where it \
         was started (systemctl stop scx, or scx_loader, if a service did). {HOW_TO_RESET}",
        describe(Some(found))
    ))
}

fn describe(found: Option<&InCharge>) -> String {
    match found.filter(|found| !found.is_default()) {
        None => "the kernel's own scheduler".into(),
        Some(InCharge { state, ops, .. }) => {
            format!("sched_ext scheduler '{}' ({state})", ops.as_deref().unwrap_or("?"))
        }
    }
}
