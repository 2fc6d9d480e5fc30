// SPDX-License-Identifier: GPL-2.0-only
//! From the arguments to a plan.

use std::collections::BTreeSet;

use super::SceneArgs;
use super::exit::Failure;
use super::files::unusable;
use crate::execute::Unfit;
use crate::measure::machine::online_cpus;
use crate::plan::calibration::Calibration;
use crate::plan::{Expectation, Plan, build, expect};
use crate::result::Warning;
use crate::scene::{self, Cpus};

/// What `--short` lets a run last, as far as that can be foretold, in µs.
const SHORT_US: f64 = 5e5;

/// A machine on which no scene lacks a CPU.
const MANY_CPUS: u32 = 1024;

/// How much slower the median of the calibration's bursts may be than the best.
const DOUBT: f64 = 0.1;

/// A scene ready to run on this machine.
pub struct Prepared {
    /// What is run.
    pub plan: Plan,
    /// What it will take.
    pub expectation: Expectation,
    /// The scene's RT CPUs that this machine has.
    pub rt_cpus: Option<Cpus>,
    /// Of all that is random.
    pub seed: u64,
    /// About how the scene was read.
    pub warnings: Vec<Warning>,
}

/// Reads the scene and plans it for this machine.
///
/// # Errors
/// When the scene cannot be used, with all that is wrong with it.
pub fn prepare(args: &SceneArgs) -> Result<Prepared, Failure> {
    let mut scene = scene::find(&args.scene).map_err(|error| unusable(&error))?;
    scene.seed = args.seed.unwrap_or(scene.seed);
    if let Some(secs) = args.limit {
        scene.limit_ms = Some((secs * 1e3).ceil() as u64);
    }
    let calibration = match args.loops_per_us {
        Some(loops_per_us) => Calibration::given(loops_per_us)?,
        None => Calibration::cached_or_measured(),
    };
    let online = Cpus(online_cpus()?.into_iter().collect());
    let plan_at = |work: f64| {
        let scale = calibration.scale(work, args.iteration_us);
        build(&scene, &scale, &online).map_err(|error| {
            let told = format!("{}: {error:#}", args.scene);
            match build(&scene, &scale, &Cpus((0..MANY_CPUS).collect())) {
                Ok(_) => Failure::from(anyhow::Error::from(Unfit(told))),
                Err(_) => Failure::Usage(told),
            }
        })
    };
    let cpus = online.0.len() as u32;
    let mut plan = plan_at(args.scale)?;
    let mut expectation = expect(&plan, cpus);
    if args.short && expectation.duration_us > SHORT_US {
        plan = plan_at(SHORT_US / expectation.duration_us)?;
        expectation = expect(&plan, cpus);
    }
    let here = |cpus: &Cpus| Cpus(cpus.0.intersection(&online.0).copied().collect::<BTreeSet<_>>());
    Ok(Prepared {
        rt_cpus: scene.rt_cpus.as_ref().map(here),
        seed: scene.seed,
        warnings: doubts(&calibration, args.short.then_some(plan.scale.work)),
        plan,
        expectation,
    })
}

fn doubts(calibration: &Calibration, short: Option<f64>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if calibration.spread > DOUBT {
        warnings.push(Warning::new(
            "calibration",
            format!(
                "this machine's speed was measured while it was disturbed (the usual burst took \
                 {:.0} % longer than the best): times of computing are converted by it. Give it \
                 by --loops-per-us, or remove ~/.cache/lollobrigida when the machine is quiet",
                calibration.spread * 100.0
            ),
        ));
    }
    if let Some(note) = &calibration.note {
        warnings.push(Warning::new("calibration", note.as_str()));
    }
    if let Some(work) = short {
        warnings.push(Warning::new(
            "short",
            format!(
                "--short did {:.3} % of the scene's work: enough to see that it runs, too \
                 little to judge a scheduler by",
                work * 100.0
            ),
        ));
    }
    warnings
}
