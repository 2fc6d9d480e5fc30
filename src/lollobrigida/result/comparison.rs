// SPDX-License-Identifier: GPL-2.0-only
//! The same scene under several schedulers, several runs each: every figure by scheduler
//! and run, with its ratio to the first scheduler's. Pure computing, no measuring.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::figures::{self, Better, Unit};
use super::{Missing, Run, SCHEMA, Warning};

/// A scene under several schedulers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The scene's name.
    pub scene: String,
    /// Why the scene exists.
    pub why: String,
    /// What a good scheduler shows there.
    pub good: String,
    /// The schedulers as the user named them; the first is what the others are compared to.
    pub unders: Vec<String>,
    /// By scheduler, then in the order in which they were made.
    pub runs: Vec<Vec<Run>>,
    /// What was compared; figures that no run has are left out.
    pub figures: Vec<Figure>,
    /// What may make these figures worth less: of all runs, and of the comparison itself.
    pub warnings: Vec<Warning>,
    /// Which figures are absent in some run, and why.
    pub missing: Vec<Missing>,
}

/// One figure under each scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Figure {
    /// A fixed word for programs: `makespan`, `wall_mean`, ...
    pub name: String,
    /// For people.
    pub title: String,
    /// What it is, in a sentence.
    pub meaning: String,
    /// Of values, mean and stdev.
    pub unit: Unit,
    /// Which way is good.
    pub better: Better,
    /// The group it is about; `None`: the whole run.
    pub group: Option<String>,
    /// By scheduler, by run; `None`: that run does not have it.
    pub values: Vec<Vec<Option<f64>>>,
    /// Mean of the runs, by scheduler.
    pub mean: Vec<Option<f64>>,
    /// Standard deviation of the runs (n-1), by scheduler; `None` below two values.
    pub stdev: Vec<Option<f64>>,
    /// To the first scheduler, by scheduler; `None`: one of the two has no value, or the
    /// first's mean is 0.
    pub ratio: Vec<Option<Ratio>>,
}

/// One scheduler's figure over the first one's. The first's own is 1 without spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ratio {
    /// Mean over mean.
    pub of_means: f64,
    /// Standard error of `of_means`: those of the two means, s/√n, propagated to the first
    /// order as for independent quantities, r·√((e₁/m₁)² + (e₀/m₀)²). (Taylor, An
    /// Introduction to Error Analysis, 3.8.) `None` when either has fewer than two runs.
    pub spread: Option<f64>,
    /// The least of the paired ratios: n-th run to n-th run, which are neighbours in time
    /// when the order alternates. `None` without a pair whose denominator is not 0.
    pub low: Option<f64>,
    /// The greatest of the paired ratios.
    pub high: Option<f64>,
}

/// Makes the figures. `runs` has one list for each of `unders`; a list that is absent or
/// empty gives figures without a value.
#[must_use]
pub fn compare(unders: Vec<String>, mut runs: Vec<Vec<Run>>) -> Comparison {
    runs.resize_with(unders.len(), Vec::new);
    let first = runs.iter().flatten().next();
    let text = |of: fn(&Run) -> &String| first.map(|run| of(run).clone()).unwrap_or_default();
    let (scene, why, good) = (text(|r| &r.scene), text(|r| &r.why), text(|r| &r.good));
    let figures: Vec<Figure> = figures::all(&runs)
        .into_iter()
        .map(|(kind, group, values)| Figure::new(kind, group, values))
        .collect();
    let warnings = warnings(&unders, &runs, &figures);
    let missing = unique(runs.iter().flatten().flat_map(|run| &run.missing), |m| {
        (m.what.clone(), m.why.clone())
    });
    Comparison { schema: SCHEMA, scene, why, good, unders, runs, figures, warnings, missing }
}

impl Figure {
    fn new(kind: &figures::Kind, group: Option<String>, values: Vec<Vec<Option<f64>>>) -> Self {
        let samples: Vec<Sample> = values.iter().map(|v| Sample::of(v)).collect();
        let ratio = (0..values.len()).map(|i| ratio(&values, &samples, i)).collect();
        Self {
            name: kind.name.into(),
            title: kind.title.into(),
            meaning: kind.meaning.into(),
            unit: kind.unit,
            better: kind.better,
            group,
            mean: samples.iter().map(|s| s.mean).collect(),
            stdev: samples.iter().map(|s| s.stdev).collect(),
            values,
            ratio,
        }
    }

    /// Indexes of the best mean and of those that the runs cannot tell from it: nearer than
    /// two standard errors of the difference, √(e₁² + e₂²). Empty when all are, when there
    /// is nothing to choose from, or when neither way is better.
    #[must_use]
    pub fn best(&self) -> Vec<usize> {
        let known: Vec<(usize, f64)> =
            self.mean.iter().enumerate().filter_map(|(i, m)| m.map(|m| (i, m))).collect();
        let by_mean = |a: &&(usize, f64), b: &&(usize, f64)| a.1.total_cmp(&b.1);
        let best = match self.better {
            Better::Less => known.iter().min_by(by_mean),
            Better::More => known.iter().max_by(by_mean),
            Better::Neither => None,
        };
        let Some(&(winner, mean)) = best else { return Vec::new() };
        let error = |i: usize| Sample::of(&self.values[i]).error().unwrap_or(0.0);
        let near: Vec<usize> = known
            .iter()
            .filter(|(i, m)| {
                let noise = 2.0 * error(*i).hypot(error(winner));
                (m - mean).abs() <= noise + 1e-9 * mean.abs() // sums differ in their last bits
            })
            .map(|(i, _)| *i)
            .collect();
        if near.len() == known.len() { Vec::new() } else { near }
    }
}

/// Of the runs under one scheduler.
struct Sample {
    count: usize,
    mean: Option<f64>,
    stdev: Option<f64>,
}

impl Sample {
    fn of(values: &[Option<f64>]) -> Self {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        let count = known.len();
        let mean = figures::mean(known.iter().copied());
        let stdev = mean.filter(|_| count > 1).map(|mean| {
            let squares: f64 = known.iter().map(|v| (v - mean).powi(2)).sum();
            (squares / (count - 1) as f64).sqrt()
        });
        Self { count, mean, stdev }
    }

    /// Standard error of the mean.
    fn error(&self) -> Option<f64> {
        self.stdev.map(|s| s / (self.count as f64).sqrt())
    }
}

fn ratio(values: &[Vec<Option<f64>>], samples: &[Sample], of: usize) -> Option<Ratio> {
    let (mean, base) = (samples[of].mean?, samples[0].mean.filter(|m| *m != 0.0)?);
    if of == 0 {
        return Some(Ratio { of_means: 1.0, spread: Some(0.0), low: Some(1.0), high: Some(1.0) });
    }
    let of_means = mean / base;
    // Not r·√(..): that would be 0/0 for a mean of 0, whose error still counts.
    let spread = samples[of]
        .error()
        .zip(samples[0].error())
        .map(|(error, base_error)| (error / base).hypot(of_means * base_error / base));
    let pairs: Vec<f64> = values[of]
        .iter()
        .zip(&values[0])
        .filter_map(|(v, b)| v.zip(b.filter(|b| *b != 0.0)).map(|(v, b)| v / b))
        .collect();
    let low = pairs.iter().copied().reduce(f64::min);
    let high = pairs.iter().copied().reduce(f64::max);
    Some(Ratio { of_means, spread, low, high })
}

fn warnings(unders: &[String], runs: &[Vec<Run>], figures: &[Figure]) -> Vec<Warning> {
    let mut all = unlike(runs.iter().flatten().flat_map(|run| &run.warnings));
    for (under, runs) in unders.iter().zip(runs) {
        let cut = runs.iter().filter(|run| run.cut).count();
        if cut > 0 {
            all.push(Warning::new(
                "cut",
                format!(
                    "{cut} of {} runs under {under} were stopped before their tasks had finished: \
                     their figures are of unlike work. Raise the scene's limit, or lower --scale.",
                    runs.len()
                ),
            ));
        }
    }
    let places: BTreeSet<String> = runs
        .iter()
        .flatten()
        .map(|r| format!("{} {} {} {:?}", r.machine.cpu, r.machine.cpus, r.machine.kernel, r.scale))
        .collect();
    if places.len() > 1 {
        all.push(Warning::new(
            "unlike",
            format!(
                "The runs are of unlike machines, kernels or calibrations ({}): ratios say as much \
                 about these as about the schedulers. Compare within one boot, with one \
                 --loops-per-us.",
                places.into_iter().collect::<Vec<_>>().join("; ")
            ),
        ));
    }
    for figure in figures.iter().filter(|f| f.name == "makespan") {
        for (i, under) in unders.iter().enumerate() {
            let share = figure.stdev[i].zip(figure.mean[i]).map_or(0.0, |(s, m)| s / m);
            if share > 0.05 {
                all.push(Warning::new(
                    "spread",
                    format!(
                        "The makespan under {under} varies by {:.0} % (standard deviation) from run \
                         to run: small ratios mean nothing here. Use more --runs, and stop what \
                         else runs on the machine.",
                        share * 100.0
                    ),
                ));
            }
        }
    }
    all
}

/// Each warning once, in the order of their first appearance. Those that differ by numbers
/// only are one, as of "up to 98 %" and "up to 100 %".
fn unlike<'a>(all: impl Iterator<Item = &'a Warning>) -> Vec<Warning> {
    let mut told: Vec<(String, Warning, BTreeSet<&str>)> = Vec::new();
    for warning in all {
        let form = warning.text.replace(|c: char| c.is_ascii_digit(), "");
        match told.iter_mut().find(|(f, first, _)| *f == form && first.code == warning.code) {
            Some((_, _, texts)) => _ = texts.insert(&warning.text),
            None => told.push((form, warning.clone(), BTreeSet::from([&*warning.text]))),
        }
    }
    let with_count = |(_, mut first, texts): (String, Warning, BTreeSet<&str>)| {
        if texts.len() > 1 {
            first.text += &format!(" (and {} more with other numbers)", texts.len() - 1);
        }
        first
    };
    told.into_iter().map(with_count).collect()
}

/// In the order of their first appearance.
fn unique<'a, T: Clone + 'a, K: Ord>(
    all: impl Iterator<Item = &'a T>,
    key: impl Fn(&T) -> K,
) -> Vec<T> {
    let mut seen = BTreeSet::new();
    all.filter(|item| seen.insert(key(item))).cloned().collect()
}
