// SPDX-License-Identifier: GPL-2.0-only
//! Figures over several tasks.

use crate::result::Summary;

/// Mean, standard deviation of a sample (n-1), least and greatest. All 0 without values.
#[must_use]
pub fn summary(values_ns: &[u64]) -> Summary {
    let (Some(&min_ns), Some(&max_ns)) = (values_ns.iter().min(), values_ns.iter().max()) else {
        return Summary::default();
    };
    let n = values_ns.len() as f64;
    let mean_ns = values_ns.iter().map(|&v| v as f64).sum::<f64>() / n;
    let squares: f64 = values_ns.iter().map(|&v| (v as f64 - mean_ns).powi(2)).sum();
    let stdev_ns = if values_ns.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
    Summary { mean_ns, stdev_ns, min_ns, max_ns }
}

/// Jain's fairness index, (Σx)² / (n Σx²): 1 when all are equal, 1/n when one has all.
/// 1 when all are 0 (nobody has more than another), and 0 without values.
///
/// Source: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and
/// Discrimination for Resource Allocation in Shared Computer Systems", DEC-TR-301, 1984.
#[must_use]
pub fn jain(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    // by the greatest: squares of very large or small values stay in range
    let max = values.iter().copied().fold(0.0, f64::max);
    if max <= 0.0 {
        return 1.0;
    }
    let sum: f64 = values.iter().map(|v| v / max).sum();
    let squares: f64 = values.iter().map(|v| (v / max).powi(2)).sum();
    sum * sum / (values.len() as f64 * squares)
}
