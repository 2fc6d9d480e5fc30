// SPDX-License-Identifier: GPL-2.0-only
//! One scenario on one kernel: how often it is tried, and the verdict.
//!
//! A failed trial is a failure. It is tried again only when something else than the scheduler was
//! measured to be the reason (docs/decisions/0018-one-try.md), and the sum of a run counts these.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::counters::Counters;
use super::failure;
use super::lanes::AT_ONCE;
use super::machine::{Boot, End, Machine, Ran};
use super::noise::FOREIGN_MAX_PCT;
use super::results::{self, Results};
use crate::scenarios::{Host, Outcome, Scenario};

/// See [`Outcome::SKIPPED`].
const SKIPPED: i32 = Outcome::SKIPPED as i32;
/// So often a guest is booted again that died of the emulator, see [`failure::is_emulators`].
const EMULATOR_RETRIES: u32 = 2;

/// What a trial came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All that is demanded was so.
    Passed,
    /// It cannot run there, and why.
    Skipped(String),
    /// The text of the failure.
    Failed(String),
}

/// Why a trial was tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Again {
    /// Other programs used too much of the host, so a comparison of times shows nothing.
    Noise,
    /// The emulator broke the guest.
    Emulator,
}

impl Again {
    /// May the trial be tried once more for this, after `before` times?
    fn allows(self, before: u32) -> bool {
        before
            < match self {
                Self::Noise => 1,
                Self::Emulator => EMULATOR_RETRIES,
            }
    }

    /// As the sum of a run names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Noise => "again for noise of the host",
            Self::Emulator => "again for a fault of the emulator",
        }
    }
}

/// Why what failed so is no verdict; None: it is one.
fn excuse(scenario: &Scenario, ran: &Ran) -> Option<Again> {
    let died = match ran.end {
        End::Died(code) => failure::is_emulators(code, &ran.console),
        _ => false,
    };
    if died {
        Some(Again::Emulator)
    } else {
        let noisy = scenario.host == Host::Timed && ran.foreign_pct > FOREIGN_MAX_PCT;
        noisy.then_some(Again::Noise)
    }
}

/// Guests, and what came of the trials so far.
pub struct Guests {
    root: PathBuf,
    options: Vec<String>,
    logs: PathBuf,
    deadline: Instant,
    /// One for each trial at a time.
    machines: [Mutex<Option<Machine>>; AT_ONCE],
    /// Held while a machine is chosen.
    choice: Mutex<()>,
    book: Mutex<Book>,
}

/// What is told at the end.
#[derive(Default)]
struct Book {
    boots: u32,
    /// See [`Machine::slowness`]: the most of all guests.
    slowness: f64,
    again: BTreeMap<Again, Vec<String>>,
    rows: Vec<String>,
    counters: Counters,
    results: Results,
}

impl Guests {
    /// `root` is the repository's, `options` all guests have; what trials print goes to the folder
    /// `logs`. No trial begins after `limit`.
    pub fn new(
        root: PathBuf,
        options: Vec<String>,
        logs: PathBuf,
        limit: Duration,
    ) -> Result<Self> {
        fs::create_dir_all(&logs).with_context(|| logs.display().to_string())?;
        Ok(Self {
            root,
            options,
            logs,
            deadline: Instant::now() + limit,
            machines: Default::default(),
            choice: Mutex::default(),
            book: Mutex::default(),
        })
    }

    /// Tries a scenario on a kernel.
    pub fn trial(&self, kernel: &str, scenario: &Scenario) -> Result<Verdict> {
        ensure!(Instant::now() < self.deadline, "not tried: the time for the whole run is over");
        let mut tried = BTreeMap::<Again, u32>::new();
        loop {
            let mut ran = self.run(kernel, scenario, false)?;
            let (figures, output) = results::take(&ran.output);
            ran.output = output;
            let secs = ran.took.as_secs_f64();
            let text = match ran.end {
                End::Code(0) => {
                    held(&self.book).results.add(kernel, scenario.name, true, secs, figures);
                    return Ok(Verdict::Passed);
                }
                End::Code(SKIPPED) => {
                    let why = ran.output.lines().last().unwrap_or("").to_string();
                    held(&self.book).results.skipped(kernel, scenario.name, &why);
                    return Ok(Verdict::Skipped(why));
                }
                _ => failure::text(&ran),
            };
            let excuse = excuse(scenario, &ran);
            let Some(again) = excuse.filter(|a| a.allows(tried.get(a).copied().unwrap_or(0)))
            else {
                held(&self.book).results.add(kernel, scenario.name, false, secs, figures);
                let again =
                    if ran.first { String::new() } else { self.diagnosis(kernel, scenario) };
                return Ok(Verdict::Failed(again + &text));
            };
            *tried.entry(again).or_default() += 1;
            eprintln!("{kernel}::{}: {}. It said:\n{text}", scenario.name, again.name());
            let name = format!("{kernel}::{}", scenario.name);
            let mut book = held(&self.book);
            book.again.entry(again).or_default().push(name);
            book.results.again(kernel, scenario.name);
        }
    }

    /// Runs it in a new guest if it has to be `fresh`, else in one that is there, if there is any.
    fn run(&self, kernel: &str, scenario: &Scenario, fresh: bool) -> Result<Ran> {
        let mut options = self.options.clone();
        options.extend(scenario.boot.iter().map(ToString::to_string));
        let boot = Boot { kernel: kernel.into(), options };
        let mut place = self.place(&boot);
        let machine = match place.take() {
            Some(machine) if !fresh && *machine.boot() == boot => Ok(machine),
            other => {
                other.map(Machine::end);
                held(&self.book).boots += 1;
                Machine::start(&self.root, &boot)?
            }
        };
        let mut ran = match machine {
            Ok(machine) => {
                let mut book = held(&self.book);
                if !boot.gives_way() {
                    book.slowness = book.slowness.max(machine.slowness());
                }
                drop(book);
                let patience = f64::from(Scenario::PATIENCE) * machine.slowness();
                let limit = Duration::from_secs(scenario.secs.into()).mul_f64(patience);
                let limit = limit.max(Scenario::LIMIT_MIN) * boot.waits();
                let (ran, machine) = machine.run(scenario.name, limit)?;
                *place = machine;
                ran
            }
            Err(never) => never,
        };
        if !matches!(ran.end, End::Code(0 | SKIPPED)) {
            // what failed may have left anything
            ran.console += &place.take().map(Machine::end).unwrap_or_default();
        }
        drop(place);
        self.keep(kernel, scenario, &ran)?;
        let mut book = held(&self.book);
        ran.output = book.counters.take(&ran.output);
        drop(book);
        Ok(ran)
    }

    /// A place that no other trial uses: one with such a guest, if there is any.
    fn place(&self, boot: &Boot) -> MutexGuard<'_, Option<Machine>> {
        let _chosen_by_one = held(&self.choice);
        let mut free: Vec<_> = self.machines.iter().filter_map(|m| m.try_lock().ok()).collect();
        let fits = free.iter().position(|m| m.as_ref().is_some_and(|m| m.boot() == boot));
        if free.is_empty() { held(&self.machines[0]) } else { free.swap_remove(fits.unwrap_or(0)) }
    }

    /// Does it fail in a guest that has run nothing before, too? Changes no verdict.
    fn diagnosis(&self, kernel: &str, scenario: &Scenario) -> String {
        if Instant::now() > self.deadline {
            return String::new();
        }
        match self.run(kernel, scenario, true) {
            Ok(Ran { end: End::Code(0), .. }) => "in a fresh guest it passes\n".into(),
            Ok(ran) => {
                let text = failure::text(&ran);
                format!("in a fresh guest, too: {}\n", text.lines().last().unwrap_or(""))
            }
            Err(e) => format!("no fresh guest: {e:#}\n"),
        }
    }

    /// Keeps what it printed, also of what passed: a drift towards a bar is seen there.
    fn keep(&self, kernel: &str, scenario: &Scenario, ran: &Ran) -> Result<()> {
        let name = format!("{kernel}::{}", scenario.name);
        let end = match ran.end {
            End::Code(0) => "passed".to_string(),
            End::Code(SKIPPED) => "skipped".to_string(),
            _ => format!("failed: {}", failure::text(ran).lines().last().unwrap_or("")),
        };
        let row = format!(
            "{name:<30} {:6.1} s of {:3}, {:2.0} % of the host foreign: {end}",
            ran.took.as_secs_f64(),
            scenario.secs,
            ran.foreign_pct
        );
        let mut book = held(&self.book);
        book.rows.push(row.clone());
        let n = book.rows.iter().filter(|r| r.split_whitespace().next() == Some(&name)).count();
        drop(book);
        let path = self.logs.join(format!("{kernel}-{}.{n}.log", scenario.name));
        let all = format!("{}{}{row}\n", ran.output, ran.console);
        fs::write(&path, all).with_context(|| path.display().to_string())
    }

    /// Fails unless each counter has counted in one of the trials so far.
    pub fn ensure_all_counted(&self) -> Result<()> {
        held(&self.book).counters.ensure_all_counted()
    }

    /// What came of the trials so far, see [`Results::tables`].
    pub fn tables(&self) -> String {
        held(&self.book).results.tables()
    }

    /// Ends the guests. Returns the times, and how often what was tried again.
    pub fn finish(&self) -> String {
        for machine in &self.machines {
            held(machine).take().map(Machine::end);
        }
        let book = held(&self.book);
        let mut text = String::new();
        for row in &book.rows {
            let _ = writeln!(text, "{row}");
        }
        let _ = writeln!(
            text,
            "{} guests, which took up to {:.1} times as long to boot as on the host that the times are \
             for; what they printed: {}",
            book.boots,
            book.slowness,
            self.logs.display()
        );
        for again in [Again::Noise, Again::Emulator] {
            if let Some(names) = book.again.get(&again) {
                let _ = writeln!(text, "{}: {} ({})", again.name(), names.len(), names.join(" "));
            }
        }
        text
    }
}

/// A panic of a test that held it has spoilt nothing.
fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Again, End, Ran, excuse};
    use crate::scenarios::{ALL, Host, Scope, counts_instructions, find};

    fn failed(end: End, console: &str, foreign_pct: f64) -> Ran {
        let took = Duration::from_secs(1);
        let output = String::new();
        Ran { end, output, console: console.into(), took, foreign_pct, first: true }
    }

    #[test]
    fn only_what_was_measured_excuses() {
        let counts = find("tally").expect("tally");
        let times = find("everyone_runs").expect("everyone_runs");
        let int3 = "  | [ 11.2] Oops: int3: 0000 [#1] SMP\n";
        let quiet = failed(End::Code(1), "", 3.0);
        let busy = failed(End::Code(1), "", 60.0);
        assert_eq!(excuse(counts, &quiet), None);
        assert_eq!(excuse(times, &quiet), None);
        assert_eq!(excuse(counts, &busy), None, "a count is one on a busy host, too");
        assert_eq!(excuse(times, &busy), Some(Again::Noise));
        let died = failed(End::Died(Some(125)), int3, 3.0);
        assert_eq!(excuse(counts, &died), Some(Again::Emulator));
        assert_eq!(excuse(counts, &failed(End::Overdue, int3, 3.0)), None);
    }

    #[test]
    fn guests_that_count_instructions_take_what_is_left() {
        let shorter = ALL.iter().filter(|s| s.scope != Scope::Named);
        let others = shorter.filter(|s| (s.host == Host::Shared) != counts_instructions(s.boot));
        assert_eq!(others.map(|s| s.name).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn nothing_is_tried_for_ever() {
        for (again, times) in [(Again::Noise, 1), (Again::Emulator, 2)] {
            assert!((0..times).all(|before| again.allows(before)));
            assert!(!again.allows(times));
        }
    }
}
