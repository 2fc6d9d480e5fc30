// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis ctl`: from the command line to a request, from the reply to text.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, anyhow};
use serde::Serialize;

use super::{Reply, Request, RuleRequest, State, ask, plain, rule_list, table};
use crate::cli::{CtlCommand, RuleCommand, Run};
use crate::config::rules::of_words;
use crate::config::{ConfigError, Knob};
use crate::exit::Failure;

/// Does what `command` says with the daemon that listens at `path`; writes what there is to
/// tell to `out`.
///
/// # Errors
/// What is wrong with the command whatever the daemon thinks ([`Failure::Config`]), no daemon
/// ([`Failure::Unfit`]), or what the daemon says.
pub fn execute(command: &CtlCommand, path: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let request = request(command)?;
    let text = match (ask(path, &request)?, command) {
        (Reply::State(state), CtlCommand::Get { name, json }) => {
            show(&state, name.as_deref(), *json)?
        }
        (Reply::Rules(rules), CtlCommand::Rule(RuleCommand::List { json })) => match json {
            true => to_json(&rules)?,
            false => rule_list::render(&rules),
        },
        (
            Reply::Done { text, warnings },
            CtlCommand::Set { .. }
            | CtlCommand::RtCpus { .. }
            | CtlCommand::Class { .. }
            | CtlCommand::Rule(_),
        ) => {
            for warning in warnings {
                eprintln!("scx_artis: warning: {warning}");
            }
            text + "\n"
        }
        _ => {
            return Err(
                anyhow!("scx_artis answered something else: are the versions the same?").into()
            );
        }
    };
    Ok(out.write_all(text.as_bytes()).context("writing to stdout")?)
}

/// What to ask for. A wrong name or value is to be told even where no daemon runs; the
/// daemon looks again.
fn request(command: &CtlCommand) -> Result<Request, Failure> {
    Ok(match command {
        CtlCommand::Get { name, .. } => {
            name.as_deref().map(Knob::named).transpose()?;
            Request::Get
        }
        CtlCommand::Set { name, value } => {
            let knob = Knob::named(name)?;
            knob.parse(value).map_err(|error| ConfigError::Knob { name: knob.name(), error })?;
            Request::Set { name: name.clone(), value: value.clone() }
        }
        CtlCommand::Class { pid, class } => Request::Class { pid: *pid, class: class.class() },
        CtlCommand::RtCpus { cpus } => Request::RtCpus { cpus: cpus.to_string() },
        CtlCommand::Rule(command) => Request::Rule(match command {
            RuleCommand::List { .. } => RuleRequest::List,
            RuleCommand::Add { before, rule } => {
                let rule = of_words(rule).map_err(|mistake| Failure::Told {
                    code: 2,
                    text: format!("ctl rule add: {mistake}"),
                })?;
                RuleRequest::Add { rule: Box::new(rule), before: *before }
            }
            RuleCommand::Remove { nr } => RuleRequest::Remove { nr: *nr },
            RuleCommand::Reload => RuleRequest::Reload,
        }),
    })
}

/// Becomes the program of `run`, with its class.
///
/// # Errors
/// What the daemon that listens at `path` says, or a program that cannot be run.
pub fn run(run: &Run, path: &Path) -> Result<(), Failure> {
    let (Some(program), args) = (run.command.first(), run.command.get(1..).unwrap_or_default())
    else {
        return Err(anyhow!("there is no program to run").into());
    };
    ask(path, &Request::Class { pid: std::process::id().cast_signed(), class: run.class.class() })?;
    let error = Command::new(program).args(args).exec();
    Err(Failure::Told { code: 2, text: format!("{}: {error}", program.display()) })
}

fn show(state: &State, name: Option<&str>, json: bool) -> Result<String, Failure> {
    let Some(name) = name else {
        return if json { to_json(state) } else { Ok(table::render(state)) };
    };
    let value = state.values.get(name);
    let value = value.with_context(|| format!("the scx_artis that runs has no {name}"))?;
    if json { to_json(value) } else { Ok(plain(&value.value) + "\n") }
}

fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(value).context("writing JSON")? + "\n")
}
