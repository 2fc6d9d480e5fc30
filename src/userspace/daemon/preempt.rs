// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's preemption model: which one it is, and switching it for as long
//! as the scheduler runs.
//!
//! Under `full`, `lazy` and PREEMPT_RT a task leaves an RT CPU before the body
//! of its call; under `none` and `voluntary` at the next preemption point.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::sys::utsname::uname;
use serde::{Deserialize, Serialize};

use super::run_dir;
use crate::cli::PreemptChoice;

/// The knob of kernels with CONFIG_PREEMPT_DYNAMIC.
pub const KNOB: &str = "/sys/kernel/debug/sched/preempt";

/// A preemption model, as far as it can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// `none`: at the return to user mode.
    None,
    /// `voluntary`: and at some points within the kernel.
    Voluntary,
    /// `lazy`: wherever a kick asks for it.
    Lazy,
    /// `full`: wherever it is possible.
    Full,
    /// PREEMPT_RT.
    Realtime,
    /// Neither debugfs nor the version text tells.
    Unknown,
}

impl Model {
    /// The model that is in force now.
    pub fn now() -> Self {
        let version = uname()
            .map_or_else(|_| String::new(), |name| name.version().to_string_lossy().into_owned());
        let cmdline = fs::read_to_string("/proc/cmdline").unwrap_or_default();
        Self::detect(fs::read_to_string(KNOB).ok().as_deref(), &version, &cmdline)
    }

    /// The model by the content of [`KNOB`] (`None`: it cannot be read), by the kernel's version
    /// text (`uname -v`), and by its command line.
    pub fn detect(knob: Option<&str>, version: &str, cmdline: &str) -> Self {
        let has = |word: &str| version.split_whitespace().any(|part| part == word);
        if has("PREEMPT_RT") {
            return Self::Realtime;
        }
        // the last one is in force; a kernel that cannot switch does not look at it
        let booted = || cmdline.split_whitespace().rev().find_map(|w| w.strip_prefix("preempt="));
        let booted = has("PREEMPT_DYNAMIC").then(booted).flatten();
        match knob.and_then(current).or(booted) {
            Some("none") => Self::None,
            Some("voluntary") => Self::Voluntary,
            Some("lazy") => Self::Lazy,
            Some("full") => Self::Full,
            _ if has("PREEMPT_LAZY") => Self::Lazy,
            _ if has("PREEMPT") => Self::Full,
            _ => Self::Unknown,
        }
    }

    /// Do tasks leave an RT CPU before the body of their call? Else their returns have to
    /// be hooked, to count those bodies.
    pub fn moves_at_once(self) -> bool {
        matches!(self, Self::Lazy | Self::Full | Self::Realtime)
    }
}

/// The word in brackets: `none voluntary (full) lazy`.
fn current(knob: &str) -> Option<&str> {
    knob.split_whitespace().find_map(|word| word.strip_prefix('(')?.strip_suffix(')'))
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Voluntary => "voluntary",
            Self::Lazy => "lazy",
            Self::Full => "full",
            Self::Realtime => "PREEMPT_RT",
            Self::Unknown => "unknown",
        })
    }
}

impl PreemptChoice {
    fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Lazy => "lazy",
        }
    }
}

/// What is to be put back; written before anything is changed.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    preempt: String,
}

/// A changed preemption model, and the file that remembers the one before.
///
/// Dropping it puts the model back. When the program dies without that, the
/// file stays and [`Switch::repair`] does it later.
#[derive(Debug)]
pub struct Switch {
    knob: PathBuf,
    state: PathBuf,
}

impl Switch {
    /// Switches the model at `knob` to `choice` after saving it in `state`.
    /// Nothing happens if it is the model already.
    ///
    /// # Errors
    /// When the knob is missing (no CONFIG_PREEMPT_DYNAMIC, or no debugfs) or
    /// does not offer the model, or `state` cannot be written.
    pub fn to(choice: PreemptChoice, knob: &Path, state: &Path) -> Result<Option<Self>> {
        let text = fs::read_to_string(knob).with_context(|| {
            format!(
                "--set-preempt needs {}, which cannot be read: the kernel is built without \
                 CONFIG_PREEMPT_DYNAMIC, debugfs is not mounted \
                 (mount -t debugfs none /sys/kernel/debug), or the kernel is locked down \
                 (scx_artis --check): boot with preempt={} then",
                knob.display(),
                choice.word()
            )
        })?;
        let word = choice.word();
        let offered = text.split_whitespace().any(|model| model.trim_matches(['(', ')']) == word);
        if !offered {
            bail!(
                "this kernel does not offer the preemption model {word}; it has: {}",
                text.trim()
            );
        }
        let before = current(&text).context("no preemption model is marked as current")?;
        if before == word {
            return Ok(None);
        }
        run_dir::save(state, &Saved { preempt: before.to_owned() })
            .context("the old model could not be put back")?;
        let switch = Self { knob: knob.to_owned(), state: state.to_owned() };
        fs::write(knob, word).with_context(|| format!("writing {word} to {}", knob.display()))?;
        Ok(Some(switch))
    }

    /// Puts back what a dead predecessor saved in `state`. The caller holds the
    /// lock that shows it dead.
    ///
    /// Returns the model that is in force again, or `None` if nothing was left.
    ///
    /// # Errors
    /// When `state` is there but cannot be understood, or the knob written to.
    pub fn repair(knob: &Path, state: &Path) -> Result<Option<String>> {
        let Some(text) = run_dir::saved(state)? else { return Ok(None) };
        let saved = saved(&text).with_context(|| {
            format!(
                "{} is damaged; write the model you want to {} and remove it",
                state.display(),
                knob.display()
            )
        })?;
        fs::write(knob, &saved)
            .with_context(|| format!("writing {saved} to {}", knob.display()))?;
        run_dir::forget(state)?;
        Ok(Some(saved))
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        match Self::repair(&self.knob, &self.state) {
            Ok(Some(model)) => log::info!("preemption model is {model} again"),
            Ok(None) => {}
            Err(error) => log::warn!(
                "the preemption model could not be put back: {error:#}; scx_artis --restore tries again"
            ),
        }
    }
}

/// The model in a text that [`run_dir::save`] has written.
pub(crate) fn saved(text: &str) -> serde_json::Result<String> {
    serde_json::from_str(text).map(|Saved { preempt }| preempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_each_model() {
        let dynamic = "#1 SMP PREEMPT_DYNAMIC Debian";
        for (knob, model) in [
            ("none (voluntary) full lazy\n", Model::Voluntary),
            ("(none) voluntary full\n", Model::None),
            ("full (lazy)\n", Model::Lazy),
            ("none voluntary (full)\n", Model::Full),
        ] {
            assert_eq!(Model::detect(Some(knob), dynamic, "preempt=none"), model, "{knob}");
        }
        assert_eq!(Model::detect(None, dynamic, "quiet"), Model::Unknown);
        assert_eq!(Model::detect(None, dynamic, "preempt=none preempt=full"), Model::Full);
        assert_eq!(Model::detect(None, "#1 SMP PREEMPT_LAZY x", "preempt=none"), Model::Lazy);
        assert_eq!(Model::detect(None, "#1 SMP PREEMPT x", ""), Model::Full);
        assert_eq!(Model::detect(Some("full (lazy)"), "#1 SMP PREEMPT_RT x", ""), Model::Realtime);
    }

    struct Fake {
        _dir: tempfile::TempDir,
        knob: PathBuf,
        state: PathBuf,
    }

    fn fake(knob: &str) -> Fake {
        let dir = tempfile::tempdir().expect("a directory");
        let fake = Fake {
            knob: dir.path().join("preempt"),
            state: dir.path().join("state.json"),
            _dir: dir,
        };
        fs::write(&fake.knob, knob).expect("written");
        fake
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).expect("readable")
    }

    #[test]
    fn switches_and_puts_back() {
        let fake = fake("none (voluntary) full lazy\n");
        let switch = Switch::to(PreemptChoice::Full, &fake.knob, &fake.state).expect("switched");
        assert_eq!(read(&fake.knob), "full");
        assert!(fake.state.exists());
        drop(switch);
        assert_eq!(read(&fake.knob), "voluntary");
        assert!(!fake.state.exists());
    }

    #[test]
    fn a_crash_is_repaired_later() {
        let fake = fake("(none) voluntary full\n");
        let switch = Switch::to(PreemptChoice::Full, &fake.knob, &fake.state).expect("switched");
        std::mem::forget(switch); // SIGKILL
        assert_eq!(Switch::repair(&fake.knob, &fake.state).expect("repaired"), Some("none".into()));
        assert_eq!(read(&fake.knob), "none");
        assert_eq!(Switch::repair(&fake.knob, &fake.state).expect("nothing left"), None);
    }

    #[test]
    fn nothing_is_changed_without_need_or_offer() {
        let same = fake("none voluntary (full)\n");
        assert!(Switch::to(PreemptChoice::Full, &same.knob, &same.state).expect("fine").is_none());
        assert!(!same.state.exists());

        let old = fake("none voluntary (full)\n");
        let error =
            Switch::to(PreemptChoice::Lazy, &old.knob, &old.state).expect_err("no lazy there");
        assert!(error.to_string().contains("does not offer"), "{error}");
        assert_eq!(read(&old.knob), "none voluntary (full)\n");

        let missing = Path::new("/nonexistent/preempt");
        let error = Switch::to(PreemptChoice::Full, missing, &old.state).expect_err("no knob");
        assert!(error.to_string().contains("CONFIG_PREEMPT_DYNAMIC"), "{error}");
    }

    #[test]
    fn a_damaged_state_is_not_guessed_at() {
        let fake = fake("(full)");
        fs::write(&fake.state, "{").expect("written");
        let error = Switch::repair(&fake.knob, &fake.state).expect_err("damaged");
        assert!(error.to_string().contains("damaged"), "{error}");
        assert_eq!(read(&fake.knob), "(full)");
    }
}
