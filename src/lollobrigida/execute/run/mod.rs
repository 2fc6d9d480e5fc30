// SPDX-License-Identifier: GPL-2.0-only
//! One run of a plan on this machine. In this order: the board, the task processes; when
//! all sleep, each is placed (cgroup, CPUs, policy) and the meters are opened; the runner
//! gets out of the way; start; end, limit or signal; the figures are read while the tasks
//! that ended still sleep; release, reports, and everything is put back.

mod calm;
pub(super) mod cgroup;
mod children;
mod fill;
mod place;
mod policy;
pub(crate) mod poll;
pub mod signals;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::unistd::Pid;

use super::Interrupted;
use crate::actor::board::{Board, State, Wait};
use crate::measure::meters::Meters;
use crate::measure::notes::Notes;
use crate::plan::Plan;
use crate::result::{Run, Scheduler};
use calm::Calm;
use cgroup::Cgroups;
use children::Children;
use fill::Ended;
use signals::Signals;
use watch::{Waiter, Watch, Woke};

/// For memory to be touched and locked, on a slow machine with many tasks.
const PREPARING: Duration = Duration::from_secs(120);

/// What a run needs to know besides its plan.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The program with the hidden subcommand `actor`: the runner itself.
    pub program: PathBuf,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { program: PathBuf::from("/proc/self/exe") }
    }
}

/// Runs the plan once under the scheduler in charge, which `scheduler` names. Waits for
/// another run of this process to end. SIGINT, SIGTERM and SIGHUP cut the run
/// ([`signals::came`] tells); a task that dies is in the result.
///
/// # Errors
/// When no run could be made: no processes, a task that cannot prepare, a signal before the
/// start. Nothing is left behind.
pub fn run(plan: &Plan, scheduler: Scheduler, opts: &RunOptions) -> Result<Run> {
    let signals = Signals::catch()?;
    let mut notes = Notes::default();
    // dropped in the other direction: the tasks go before their groups
    let cgroups = Cgroups::make(plan, &mut notes);
    let board = Arc::new(Board::create(plan)?);
    let mut children = Children::start(opts.program.as_os_str(), &board)?;
    let deaths = BTreeMap::new();
    let mut watch = Watch { children: &mut children, board: &board, signals: &signals, deaths };
    ready(&mut watch)?;

    let pids = watch.children.pids();
    let rt = place::place(plan, &pids, cgroups.as_ref(), &mut notes);
    let pids: Vec<i32> = pids.into_iter().map(Pid::as_raw).collect();
    let mut meters = Meters::open(&pids, &mut notes)?;
    let calm = Calm::begin();
    let waiter = Waiter::begin(&board, Calm::begin, |board| board.wait_done(None))?;
    let before = meters.begin()?;
    let start_ns = board.start();

    let limit = plan.limit_us.map(Duration::from_micros);
    let until = limit.map(|limit| Instant::now() + limit);
    let woke = watch.sleep(&waiter, meters.rings(), until)?;
    if woke != Woke::Over {
        watch.stop(&waiter, meters.rings())?;
    }
    let cut = match woke {
        Woke::Over => None,
        Woke::Late => Some(format!("the limit of {:?}", limit.unwrap_or_default())),
        Woke::Signal => Some("a signal to the runner".to_owned()),
    };
    let figures = meters.end(before, scheduler.ops.as_deref(), &mut notes)?;
    drop(calm);
    let deaths = watch.deaths;
    board.release();
    for task in children.reap() {
        notes.missing("report", format!("task {task} did not write its report and was killed"));
    }
    let reports = (0..plan.tasks.len()).map(|task| board.report(task)).collect();
    fill::run(plan, scheduler, notes, Ended { start_ns, cut, rt, deaths, reports, figures })
}

/// Waits until all tasks sleep before their begin.
fn ready(watch: &mut Watch) -> Result<()> {
    let waiter = Waiter::begin(
        watch.board,
        || (),
        |board| match board.wait_ready(PREPARING) {
            Wait::Interrupted => Wait::Interrupted,
            // a task that is late is told by its state
            Wait::All | Wait::Late => Wait::All,
        },
    )?;
    if watch.sleep(&waiter, None, None)? == Woke::Signal {
        return Err(Interrupted.into());
    }
    let plan = watch.board.plan();
    for (task, planned) in plan.tasks.iter().enumerate() {
        let name = format!("task {} of group `{}`", planned.nth, plan.groups[planned.group]);
        match watch.board.state(task) {
            State::Ready => {}
            State::Failed => {
                let report = watch.board.report(task).and_then(|report| report.failed);
                bail!("{name} cannot prepare: {}", report.unwrap_or_else(|| "it died".into()));
            }
            state => bail!(
                "{name} is not ready after {PREPARING:?} ({state:?}): the machine is too busy or \
                 has too little memory for this scene"
            ),
        }
    }
    Ok(())
}
