// SPDX-License-Identifier: GPL-2.0-only
//! How many steps this machine's CPU makes in a microsecond: measured once, kept with
//! the CPU's identity, or given.

mod cpu;
mod measure;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::{STEPS_PER_LOOP, Scale};
use cpu::Identity;

/// The speed of the computing kernel here.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Steps in a microsecond.
    pub steps_per_us: f64,
    /// How much slower the median of the bursts was than the best, 0.05 for 5 %: the
    /// calibration's own doubt. 0 if it was given.
    pub spread: f64,
    /// Where it is from.
    pub origin: Origin,
    /// Why it could not be kept for the next time.
    pub note: Option<String>,
}

/// Where a calibration is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user.
    Given,
    /// Measured by an earlier run on this CPU.
    Cached,
    /// Measured now.
    Measured,
}

/// What is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    identity: Identity,
    steps_per_us: f64,
    spread: f64,
}

impl Calibration {
    /// As the user says (`--loops-per-us`): iterations of [`STEPS_PER_LOOP`] steps in a
    /// microsecond.
    ///
    /// # Errors
    /// When that is no speed.
    pub fn given(loops_per_us: f64) -> Result<Self> {
        ensure!(
            loops_per_us.is_finite() && loops_per_us > 0.0,
            "--loops-per-us {loops_per_us} is no speed: give iterations in a microsecond, above 0"
        );
        let steps_per_us = loops_per_us * STEPS_PER_LOOP as f64;
        Ok(Self { steps_per_us, spread: 0.0, origin: Origin::Given, note: None })
    }

    /// As kept in `$XDG_CACHE_HOME/lollobrigida` (or `~/.cache`) by an earlier run of this
    /// routine on this CPU, or else measured now, which takes a tenth of a second, and kept.
    #[must_use]
    pub fn cached_or_measured() -> Self {
        Self::with_cache(cache_file().as_deref(), Identity::of_this_cpu(), measure::speed)
    }

    /// How to read a scene with it: its work times `work`, and where `iteration_us` is
    /// told, iterations that take so long here, so that old scenes keep their ratio of
    /// computing to sleep.
    #[must_use]
    pub fn scale(&self, work: f64, iteration_us: Option<f64>) -> Scale {
        let steps_per_loop =
            iteration_us.map_or(STEPS_PER_LOOP as f64, |us| us * self.steps_per_us);
        Scale { steps_per_us: self.steps_per_us, steps_per_loop, work }
    }

    fn with_cache(
        file: Option<&Path>,
        identity: Identity,
        measure: impl FnOnce() -> (f64, f64),
    ) -> Self {
        if let Some(kept) = file.and_then(|file| read(file, &identity)) {
            let Kept { steps_per_us, spread, .. } = kept;
            return Self { steps_per_us, spread, origin: Origin::Cached, note: None };
        }
        let (steps_per_us, spread) = measure();
        let note = match file {
            Some(file) => {
                let kept = Kept { identity, steps_per_us, spread };
                keep(file, &kept).err().map(|e| format!("the calibration is not kept: {e:#}"))
            }
            None => {
                Some("the calibration is not kept: neither XDG_CACHE_HOME nor HOME is set".into())
            }
        };
        Self { steps_per_us, spread, origin: Origin::Measured, note }
    }
}

/// What was kept, if it is of this CPU and routine and makes sense.
fn read(file: &Path, identity: &Identity) -> Option<Kept> {
    let kept: Kept = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let sane = kept.steps_per_us.is_finite() && kept.steps_per_us > 0.0;
    (sane && kept.identity == *identity).then_some(kept)
}

/// Never leaves half a file: runs may measure at the same time.
fn keep(file: &Path, kept: &Kept) -> Result<()> {
    let dir = file.parent().context("no directory")?;
    fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    let text = serde_json::to_vec_pretty(kept)?;
    // the directory may be another user's while root runs this: the name cannot be foreseen
    let write = || -> io::Result<()> {
        let mut new = NamedTempFile::new_in(dir)?;
        new.write_all(&text)?;
        new.persist(file)?;
        Ok(())
    };
    write().with_context(|| format!("{} cannot be written", file.display()))
}

/// By the XDG base directory specification: a relative path is none.
fn cache_file() -> Option<PathBuf> {
    let dir = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = dir("XDG_CACHE_HOME").or_else(|| Some(dir("HOME")?.join(".cache")))?;
    Some(cache.join("lollobrigida/calibration.json"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says where")]
mod tests {
    use super::*;

    fn cpu(microcode: &str) -> Identity {
        Identity::of(&format!("model name : A\nmicrocode : {microcode}\n"), None)
    }

    fn calibrate(file: &Path, identity: Identity, speed: f64) -> Calibration {
        Calibration::with_cache(Some(file), identity, || (speed, 0.25))
    }

    #[test]
    fn a_cache_is_honoured_until_the_cpu_is_another_or_the_file_is_spoilt() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("below/calibration.json");
        let first = calibrate(&file, cpu("1"), 100.0);
        assert_eq!((first.origin, first.note), (Origin::Measured, None));

        let again = calibrate(&file, cpu("1"), 999.0);
        assert_eq!((again.origin, again.steps_per_us, again.spread), (Origin::Cached, 100.0, 0.25));

        let foreign = calibrate(&file, cpu("2"), 200.0);
        assert_eq!((foreign.origin, foreign.steps_per_us), (Origin::Measured, 200.0));
        assert_eq!(calibrate(&file, cpu("2"), 999.0).origin, Origin::Cached);

        for spoilt in ["", "{\"steps_per_us\":"] {
            fs::write(&file, spoilt).unwrap();
            assert_eq!(calibrate(&file, cpu("2"), 300.0).origin, Origin::Measured);
        }
        let zero = fs::read_to_string(&file).unwrap().replace("300", "-1");
        fs::write(&file, zero).unwrap();
        assert_eq!(calibrate(&file, cpu("2"), 400.0).steps_per_us, 400.0);
    }

    #[test]
    fn another_routine_is_measured_anew() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("calibration.json");
        calibrate(&file, cpu("1"), 100.0);
        let text = fs::read_to_string(&file).unwrap();
        let other = text.replace(crate::actor::kernel::ROUTINE, "0");
        assert_ne!(text, other);
        fs::write(&file, other).unwrap();
        assert_eq!(calibrate(&file, cpu("1"), 200.0).origin, Origin::Measured);
    }

    #[test]
    fn what_cannot_be_kept_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let in_the_way = dir.path().join("file");
        fs::write(&in_the_way, "").unwrap();
        let told = calibrate(&in_the_way.join("calibration.json"), cpu("1"), 100.0);
        assert_eq!(told.steps_per_us, 100.0);
        assert!(told.note.is_some_and(|n| n.contains("is not kept")));
    }

    #[test]
    fn given_speeds_count_iterations() {
        let given = Calibration::given(0.5).unwrap();
        assert_eq!(given.steps_per_us, 2048.0);
        assert_eq!(given.scale(1.0, None).steps_per_loop, 4096.0);
        assert_eq!(given.scale(1.0, Some(9.0)).steps_per_loop, 9.0 * 2048.0);
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Calibration::given(wrong).is_err());
        }
    }
}
