// SPDX-License-Identifier: GPL-2.0-only
//! `lollobrigida scenes`, `check` and `convert`: scenes as files.

use std::fmt::Write as _;
use std::io::{IsTerminal, stderr};
use std::path::Path;

use anyhow::Error;

use super::exit::Failure;
use super::output::{self, Target};
use crate::outlets::table;
use crate::scene;

/// Every scene that comes with the program, and why it exists.
///
/// # Errors
/// When standard output cannot be written.
pub fn list() -> Result<(), Failure> {
    let mut text = String::new();
    for (name, _) in scene::shipped() {
        let scene = scene::find(name).map_err(|error| unusable(&error))?;
        let why = match scene.why.is_empty() {
            true => "in the thesis's format, which has no place for a reason: see its comments",
            false => &scene.why,
        };
        let tasks: u32 = scene.groups.iter().map(|group| group.count).sum();
        let _ = writeln!(text, "{name} ({tasks} tasks)");
        text += &table::item(why, table::Style::of_stdout(false).width);
    }
    output::to_stdout(text.as_bytes())
}

/// The file of one of them.
///
/// # Errors
/// When there is none of that name.
pub fn print(name: &str) -> Result<(), Failure> {
    match scene::shipped().find(|(shipped, _)| *shipped == name) {
        Some((_, text)) => output::to_stdout(text.as_bytes()),
        None => Err(Failure::Usage(format!(
            "no scene of the name '{name}' comes with the program: 'lollobrigida scenes' lists them"
        ))),
    }
}

/// Reads each of the scenes; all mistakes in all of them are told.
///
/// # Errors
/// When there is a mistake in any.
pub fn check(scenes: &[String]) -> Result<(), Failure> {
    let (mut sound, mut mistakes) = (String::new(), Vec::new());
    for name in scenes {
        match scene::find(name) {
            Ok(scene) => {
                let tasks: u32 = scene.groups.iter().map(|group| group.count).sum();
                let groups = scene.groups.len();
                let _ = writeln!(sound, "{name}: sound: {tasks} tasks in {groups} groups");
            }
            Err(error) => mistakes.push(render(&error)),
        }
    }
    output::to_stdout(sound.as_bytes())?;
    if mistakes.is_empty() { Ok(()) } else { Err(Failure::Usage(mistakes.join("\n"))) }
}

/// Writes a scene in the TOML form.
///
/// # Errors
/// When it cannot be read, or not be written there.
pub fn convert(file: &Path, out: Option<&Path>) -> Result<(), Failure> {
    let scene = scene::read(file).map_err(|error| unusable(&error))?;
    let text = scene::convert(&scene);
    match out {
        Some(path) => Ok(Target::open(path)?.put(&text)?),
        None => output::to_stdout(text.as_bytes()),
    }
}

/// A scene that cannot be used, as it is best told on stderr.
pub fn unusable(error: &Error) -> Failure {
    Failure::Usage(render(error))
}

fn render(error: &Error) -> String {
    scene::render(error, stderr().is_terminal())
}
