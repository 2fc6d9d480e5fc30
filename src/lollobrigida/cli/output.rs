// SPDX-License-Identifier: GPL-2.0-only
//! Where results go: standard output, and files that are written whole or not at all.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write, stdout};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use page::link::{self, Place};
use tempfile::NamedTempFile;

use super::OutputArgs;
use super::exit::Failure;
use crate::outlets::table::{self, Style};
use crate::outlets::{csv, html, json};
use crate::result::Run;
use crate::result::comparison::Comparison;

/// What is shown.
#[derive(Clone, Copy)]
pub enum Shown<'a> {
    /// One run.
    Run(&'a Run),
    /// Several.
    Comparison(&'a Comparison),
}

/// All outlets that the user asked for, ready to be written to.
pub struct Outlets {
    json: Option<Target>,
    csv: Option<Target>,
    html: Option<Target>,
    table: Option<Style>,
}

impl Outlets {
    /// Before the runs: a directory that cannot be written is to be known before hours of
    /// work, not after.
    ///
    /// # Errors
    /// When two want standard output, or a file cannot be made.
    pub fn open(args: &OutputArgs) -> Result<Self, Failure> {
        let files = [&args.json, &args.csv, &args.html].into_iter().flatten();
        let to_stdout = files.filter(|path| is_stdout(path)).count();
        if to_stdout > 1 {
            return Err(Failure::Usage(
                "two of --json, --csv and --html would mix on standard output: name a file for one"
                    .into(),
            ));
        }
        let target = |path: &Option<PathBuf>| path.as_deref().map(Target::open).transpose();
        let table = (!args.quiet && to_stdout == 0).then(|| Style::of_stdout(args.tasks));
        Ok(Self {
            json: target(&args.json)?,
            csv: target(&args.csv)?,
            html: target(&args.html)?,
            table,
        })
    }

    /// Writes them.
    ///
    /// # Errors
    /// When one cannot be made or written; the others are tried all the same.
    pub fn write(self, shown: Shown<'_>) -> Result<()> {
        let json = |shown| match shown {
            Shown::Run(run) => json::write(&json::Document::Run(run)),
            Shown::Comparison(all) => json::write(&json::Document::Comparison(all)),
        };
        let csv = |shown| match shown {
            Shown::Run(run) => csv::run(run),
            Shown::Comparison(all) => csv::comparison(all),
        };
        let html = |shown| match shown {
            Shown::Run(run) => html::run(run),
            Shown::Comparison(all) => html::comparison(all),
        };
        let mut done = Ok(());
        if let Some(style) = self.table {
            let text = match shown {
                Shown::Run(run) => table::run(run, style),
                Shown::Comparison(all) => table::comparison(all, style),
            };
            done = done.and(to_stdout_or_nobody(text.as_bytes()));
        }
        if let Some(target) = self.json {
            done = done.and(json(shown).context("making JSON").and_then(|text| target.put(&text)));
        }
        if let Some(target) = self.csv {
            done = done.and(csv(shown).context("making CSV").and_then(|text| target.put(&text)));
        }
        if let Some(target) = self.html {
            done = done.and(html(shown).context("making HTML").and_then(|text| target.put(&text)));
        }
        done
    }
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A place for a text.
pub enum Target {
    /// Standard output.
    Stdout,
    /// Something that is no file: a device, a named pipe.
    Special(Place),
    /// A file, which gets its name when it is whole.
    File(NamedTempFile, PathBuf),
}

impl Target {
    /// `-` is standard output.
    ///
    /// # Errors
    /// When it cannot be written there.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if is_stdout(path) {
            return Ok(Self::Stdout);
        }
        let cannot = |why: &dyn std::fmt::Display| {
            Failure::Usage(format!("cannot write {}: {why}", path.display()))
        };
        // a link stays a link: the file it leads to is replaced
        let place = link::follow(path).map_err(|why| cannot(&why))?;
        match fs::metadata(place.path()) {
            Ok(meta) if meta.is_dir() => return Err(cannot(&"it is a directory")),
            Ok(meta) if !meta.is_file() => return Ok(Self::Special(place)),
            _ => {}
        }
        let path = place.path().to_owned();
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let file = tempfile::Builder::new()
            .prefix(".lollobrigida.")
            .permissions(Permissions::from_mode(0o666)) // less the umask
            .tempfile_in(dir.unwrap_or(Path::new(".")))
            .map_err(|error| cannot(&error))?;
        Ok(Self::File(file, path))
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// When that fails; there is no file then, or the old one.
    pub fn put(self, text: &str) -> Result<()> {
        match self {
            Self::Stdout => to_stdout_or_nobody(text.as_bytes()),
            Self::Special(place) => place
                .create()
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .with_context(|| format!("writing {}", place.path().display())),
            Self::File(mut file, path) => file
                .write_all(text.as_bytes())
                .and_then(|()| Ok(file.persist(&path).map(drop)?))
                .with_context(|| format!("writing {}", path.display())),
        }
    }
}

/// Prints a text.
///
/// # Errors
/// When standard output cannot be written.
pub fn to_stdout(text: &[u8]) -> Result<(), Failure> {
    Ok(to_stdout_or_nobody(text)?)
}

/// A reader that has gone away (`| head`) has read enough.
fn to_stdout_or_nobody(text: &[u8]) -> Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("writing to standard output"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_not_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("r.json");
        fs::write(&path, "old").expect("written");
        let dropped = Target::open(&path).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(fs::read_to_string(&path).expect("read"), "old", "nothing yet");
        drop(dropped);
        assert_eq!(fs::read_dir(dir.path()).expect("listed").count(), 1, "nothing is left behind");
        let target = Target::open(&path).unwrap_or_else(|e| panic!("{e}"));
        target.put("new").expect("put");
        assert_eq!(fs::read_to_string(&path).expect("read"), "new");
    }

    /// A directory, a file in it that says "old", and a link to that.
    fn linked() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        (dir, file, link)
    }

    #[test]
    fn a_link_and_a_pipe_stay_what_they_are() {
        let (dir, file, link) = linked();
        Target::open(&link).unwrap_or_else(|e| panic!("{e}")).put("new").expect("put");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(&file).expect("read"), "new");

        // no device: a mistake here would replace the machine's own
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("made");
        let target = Target::open(&pipe).unwrap_or_else(|e| panic!("{e}"));
        assert!(matches!(target, Target::Special(_)));
        let path = pipe.clone();
        let reader = std::thread::spawn(move || fs::read_to_string(path).expect("read"));
        target.put("text").expect("put");
        assert_eq!(reader.join().expect("read"), "text");
        assert!(!fs::metadata(&pipe).expect("there").is_file());
    }

    #[test]
    fn a_link_of_somebody_else_is_not_followed() {
        let (_dir, file, link) = linked();
        if std::os::unix::fs::lchown(&link, Some(65534), None).is_err() {
            return; // only root can give it away
        }
        let Err(Failure::Usage(text)) = Target::open(&link) else { panic!("it is followed") };
        assert!(text.contains("link of user 65534"), "{text}");
        assert_eq!(fs::read_to_string(&file).expect("read"), "old");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_told_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        for path in [dir.path().to_owned(), dir.path().join("absent/r.json")] {
            assert!(matches!(Target::open(&path), Err(Failure::Usage(_))), "{}", path.display());
        }
    }
}
