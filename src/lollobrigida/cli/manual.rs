// SPDX-License-Identifier: GPL-2.0-only
//! The manual page: options from the command line's declaration, the rest by hand.

use std::io::{self, Write};

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use super::Opts;

/// MEASURES to SEE ALSO.
const BY_HAND: &str = include_str!("manual.man");

/// lollobrigida(1).
///
/// # Errors
/// When clap's declaration cannot be rendered.
pub fn page() -> Result<Vec<u8>> {
    let mut page = Vec::new();
    write_page(&mut page).context("making the manual page")?;
    Ok(page)
}

fn write_page(page: &mut Vec<u8>) -> io::Result<()> {
    let mut command = Opts::command().after_help("").after_long_help("");
    command.build();
    let man = Man::new(command.clone()).manual("User Commands").source(env!("CARGO_PKG_NAME"));
    man.render_title(page)?;
    man.render_name_section(page)?;
    writeln!(page, ".SH SYNOPSIS")?;
    for each in shown(&command) {
        let usage = each.clone().render_usage().to_string();
        writeln!(page, ".nf\n{}\n.fi", escaped(usage.trim_start_matches("Usage: ")))?;
    }
    man.render_description_section(page)?;
    writeln!(page, ".SH COMMANDS")?;
    for each in shown(&command) {
        writeln!(page, ".SS {}", each.get_name())?;
        let about = each.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(page, "{}.", escaped(&about))?;
        let mut options = Vec::new();
        Man::new(each.clone()).render_options_section(&mut options)?;
        let options = String::from_utf8_lossy(&options).into_owned();
        let lines = options.lines().map(|line| line.replacen(".SH OPTIONS", "", 1));
        let lines = lines.map(|line| line.replacen(".SH", ".PP\n.B", 1));
        for line in lines.filter(|line| !line.is_empty()) {
            writeln!(page, "{line}")?;
        }
    }
    page.write_all(BY_HAND.as_bytes())
}

/// The commands that users call.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|each| !each.is_hide_set() && each.get_name() != "help")
}

/// As roff reads it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}
