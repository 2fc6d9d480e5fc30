// SPDX-License-Identifier: GPL-2.0-only
//! `--under NAME[:ARGS]`: which scheduler, and how it is started.

use std::env;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use thiserror::Error;

use crate::execute::{DEFAULT, Under};
use crate::scene::Cpus;

/// Stands for the scene's RT CPUs in the arguments.
pub const RT_CPUS: &str = "{rt_cpus}";

/// Why a `--under` cannot be used.
#[derive(Debug, Error)]
pub enum UnderError {
    /// Nothing before the colon.
    #[error(
        "--under '{0}' names no scheduler: write {DEFAULT}, or a program as scx_bpfland, with its arguments after a colon"
    )]
    NoName(String),
    /// `default:...`
    #[error("--under '{0}': the kernel's own scheduler takes no arguments")]
    DefaultWithArgs(String),
    /// A quote is not closed.
    #[error("--under '{0}': a quote in the arguments is not closed")]
    Quote(String),
    /// `{rt_cpus}` or a plain scx_artis, and a scene without them.
    #[error(
        "--under '{under}' wants the scene's RT CPUs, and {why}: name them, as in \
         --under 'scx_artis:--rt-cpus 1-3', or write rt_cpus into the scene"
    )]
    NoRtCpus {
        /// As written.
        under: String,
        /// Why there are none.
        why: &'static str,
    },
    /// Neither on PATH nor beside us.
    #[error("--under '{under}': there is no program '{program}' {place}{hint}")]
    NoProgram {
        /// As written.
        under: String,
        /// Its program.
        program: String,
        /// Where it was looked for.
        place: &'static str,
        /// What to do.
        hint: String,
    },
}

/// Where programs are looked for, in this order.
#[derive(Clone, Debug)]
pub struct Places(Vec<PathBuf>);

impl Places {
    /// PATH, the directory of this program, and the one beside it: `cargo build` puts
    /// both programs of this project into one directory.
    #[must_use]
    pub fn of_this_process() -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let own = env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
        Self(env::split_paths(&path).chain(own).collect())
    }

    /// For tests.
    #[must_use]
    pub fn only(places: Vec<PathBuf>) -> Self {
        Self(places)
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            let path = PathBuf::from(program);
            return is_program(&path).then_some(path);
        }
        self.0.iter().map(|place| place.join(program)).find(|path| is_program(path))
    }

    /// The program here that is spelled most like this one.
    fn nearest(&self, program: &str) -> Option<String> {
        let entries = self.0.iter().flat_map(|place| place.read_dir().into_iter().flatten());
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let schedulers = names.filter(|name| name.starts_with("scx_"));
        let near = schedulers.map(|name| (strsim::damerau_levenshtein(&name, program), name));
        near.min().filter(|(distance, _)| *distance <= 3).map(|(_, name)| name)
    }
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, AccessFlags::X_OK).is_ok()
}

/// Reads a `--under`. `rt_cpus` are the scene's, as far as this machine has them.
///
/// # Errors
/// See [`UnderError`].
pub fn parse(text: &str, rt_cpus: Option<&Cpus>, places: &Places) -> Result<Under, UnderError> {
    let (name, args) = match text.split_once(':') {
        Some((name, args)) => (name.trim(), Some(args)),
        None => (text.trim(), None),
    };
    if name.is_empty() {
        return Err(UnderError::NoName(text.into()));
    }
    if name == DEFAULT {
        return match args {
            None => Ok(Under { title: text.into(), command: None }),
            Some(_) => Err(UnderError::DefaultWithArgs(text.into())),
        };
    }
    let args = match args {
        Some(args) => args.to_owned(),
        // the one scheduler that cannot be started without being told
        None if Path::new(name).file_name().is_some_and(|n| n == "scx_artis") => {
            format!("--rt-cpus {RT_CPUS}")
        }
        None => String::new(),
    };
    let args = with_rt_cpus(text, &args, rt_cpus)?;
    let args = shell_words::split(&args).map_err(|_| UnderError::Quote(text.into()))?;
    let program = places.find(name).ok_or_else(|| no_program(text, name, places))?;
    let program = program.to_string_lossy().into_owned();
    Ok(Under { title: text.into(), command: Some([vec![program], args].concat()) })
}

fn with_rt_cpus(text: &str, args: &str, rt_cpus: Option<&Cpus>) -> Result<String, UnderError> {
    if !args.contains(RT_CPUS) {
        return Ok(args.to_owned());
    }
    let why = match rt_cpus {
        Some(cpus) if !cpus.0.is_empty() => return Ok(args.replace(RT_CPUS, &cpus.to_string())),
        Some(_) => "this machine has none of them",
        None => "it names none",
    };
    Err(UnderError::NoRtCpus { under: text.into(), why })
}

fn no_program(text: &str, program: &str, places: &Places) -> UnderError {
    let (place, hint) = if program.contains('/') {
        ("that can be run", ": is it built, and executable?".into())
    } else {
        ("on PATH nor beside lollobrigida", elsewhere(program, places))
    };
    UnderError::NoProgram { under: text.into(), program: program.into(), place, hint }
}

fn elsewhere(program: &str, places: &Places) -> String {
    match places.nearest(program) {
        Some(near) => format!("; did you mean '{near}'?"),
        None if program == "scx_artis" => {
            ": cargo build --release --workspace makes it beside lollobrigida".into()
        }
        None if program.starts_with("scx_") => {
            format!(": cargo install {program} makes many of these, or give its path")
        }
        None => ": give its path".into(),
    }
}

/// Makes the titles unequal, so that a scheduler that is compared with itself (which shows
/// how much of a ratio is noise) has columns that can be told apart.
pub fn tell_apart(unders: &mut [Under]) {
    for at in 1..unders.len() {
        let (before, rest) = unders.split_at_mut(at);
        let (plain, mut nth) = (rest[0].title.clone(), 1);
        while before.iter().any(|other| other.title == rest[0].title) {
            nth += 1;
            rest[0].title = format!("{plain} ({nth})");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn places_with(programs: &[&str]) -> (tempfile::TempDir, Places) {
        let dir = tempfile::tempdir().expect("a directory");
        for program in programs {
            let path = dir.path().join(program);
            fs::write(&path, "#!/bin/sh\n").expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        }
        let places = Places::only(vec![dir.path().to_owned()]);
        (dir, places)
    }

    fn args_of(under: &Under) -> &[String] {
        &under.command.as_ref().expect("a command")[1..]
    }

    #[test]
    fn default_is_the_kernels_own() {
        let (_dir, places) = places_with(&[]);
        let under = parse("default", None, &places).expect("parsed");
        assert_eq!(under, Under { title: "default".into(), command: None });
        parse("default:-v", None, &places).expect_err("arguments for nobody");
        parse(":-v", None, &places).expect_err("no name");
    }

    #[test]
    fn arguments_are_split_as_a_shell_does() {
        let (dir, places) = places_with(&["scx_x"]);
        let under = parse("scx_x:-a 'b c' --d=\"e f\"", None, &places).expect("parsed");
        assert_eq!(args_of(&under), ["-a", "b c", "--d=e f"]);
        assert_eq!(under.title, "scx_x:-a 'b c' --d=\"e f\"");
        let program = &under.command.as_ref().expect("a command")[0];
        assert_eq!(Path::new(program), dir.path().join("scx_x"));
        parse("scx_x:'b", None, &places).expect_err("an open quote");
    }

    #[test]
    fn rt_cpus_come_from_the_scene() {
        let (_dir, places) = places_with(&["scx_artis", "scx_x"]);
        let cpus = Cpus(BTreeSet::from([1, 2, 3]));
        let plain = parse("scx_artis", Some(&cpus), &places).expect("parsed");
        assert_eq!(args_of(&plain), ["--rt-cpus", "1-3"]);
        let own = parse("scx_artis:--rt-cpus 1 --strict", Some(&cpus), &places).expect("parsed");
        assert_eq!(args_of(&own), ["--rt-cpus", "1", "--strict"]);
        let other = parse("scx_x:-m {rt_cpus}", Some(&cpus), &places).expect("parsed");
        assert_eq!(args_of(&other), ["-m", "1-3"]);
        for none in [None, Some(&Cpus::default())] {
            let error = parse("scx_artis", none, &places).expect_err("no RT CPUs");
            assert!(error.to_string().contains("--rt-cpus 1-3"), "{error}");
        }
    }

    #[test]
    fn an_absent_program_is_told_with_what_to_do() {
        let (_dir, places) = places_with(&["scx_bpfland"]);
        let told = |text: &str| {
            parse(text, None, &places).expect_err("there is no such program").to_string()
        };
        assert!(
            told("scx_bplfand").contains("did you mean 'scx_bpfland'?"),
            "{}",
            told("scx_bplfand")
        );
        assert!(told("scx_layered").contains("cargo install scx_layered"));
        assert!(told("./scx_bpfland").contains("executable?"));
    }

    #[test]
    fn a_file_that_cannot_be_run_is_no_program() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("scx_x"), "").expect("written");
        parse("scx_x", None, &Places::only(vec![dir.path().to_owned()])).expect_err("not runnable");
    }

    #[test]
    fn equal_schedulers_get_unequal_titles() {
        let under = |title: &str| Under { title: title.into(), command: None };
        let mut unders = ["default", "default", "x", "default"].map(under);
        tell_apart(&mut unders);
        let titles = unders.map(|u| u.title);
        assert_eq!(titles, ["default", "default (2)", "x", "default (3)"]);
    }
}
