// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis top`: from a stream to the view, or to lines for programs.

use std::io::{self, ErrorKind, Write};
use std::thread;

use anyhow::Context;
use crossbeam_channel::bounded;

use super::pump::{self, Pump};
use super::rows::Order;
use super::run::{self, EndSignals, Pace};
use super::store::Wish;
use super::terminal;
use crate::cli::Top;
use crate::exit::Failure;
use crate::feed::{self, Source, Wanted};
use crate::model::Snapshot;
use crate::outlets::{csv, json, line};

/// Shows or prints what `top` asks for, until its end.
///
/// # Errors
/// When there is nothing to watch, or no way to show it.
pub fn execute(top: &Top) -> Result<(), Failure> {
    let view = !top.json && !top.csv && terminal::is_fit();
    // nobody but the view and JSON shows events
    let events = view || top.json;
    let source =
        feed::source(top.replay.as_deref(), Wanted { events, ..Wanted::every(top.interval) })?;
    if view {
        return show(top, source);
    }
    match print(top, source) {
        // whoever read it has enough: head, say
        Err(Broken::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(Broken::Output(error)) => Err(error).context("writing to stdout")?,
        Err(Broken::Stream(failure)) => Err(failure),
        Ok(()) => Ok(()),
    }
}

fn show(top: &Top, source: Source) -> Result<(), Failure> {
    let wish = Wish {
        order: Order::by(top.sort),
        filter: top.filter.clone(),
        theme: terminal::theme(),
        replay: top.replay.as_ref().map(|_| top.speed),
        events: true,
    };
    let pace = Pace::new(top.speed);
    let (tell, told) = bounded(pump::WAITING);
    let paced = top.replay.is_some().then(|| pace.clone());
    let pump = Pump { source, tell, pace: paced, count: top.count };
    // it ends with the process: it may wait for an interval for a long time
    thread::Builder::new()
        .name("stream".into())
        .spawn(move || pump.run())
        .context("starting the thread that reads the stream")?;
    Ok(run::run(wish, &told, &pace, EndSignals::Ours).context("showing it on the terminal")?)
}

enum Broken {
    Output(io::Error),
    Stream(Failure),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<::csv::Error> for Broken {
    fn from(error: ::csv::Error) -> Self {
        Self::Output(match error.into_kind() {
            ::csv::ErrorKind::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        })
    }
}

/// Prints an interval.
type Printer<'a> = Box<dyn FnMut(&Snapshot) -> Result<(), Broken> + 'a>;

fn print(top: &Top, mut source: Source) -> Result<(), Broken> {
    let mut out = io::stdout().lock();
    let mut printer: Printer<'_> = if top.json {
        let mut lines = json::Lines::default();
        Box::new(move |snapshot| Ok(lines.write(&mut out, snapshot).and_then(|()| out.flush())?))
    } else if top.csv {
        let mut rows = csv::Rows::begin(out)?;
        Box::new(move |snapshot| Ok(rows.write(snapshot)?))
    } else {
        Box::new(move |snapshot| {
            writeln!(out, "{}", line::render(&snapshot.machine))?;
            Ok(out.flush()?)
        })
    };
    let mut left = top.count.unwrap_or(u64::MAX);
    while left > 0 {
        match source.next(None).map_err(Broken::Stream)? {
            Some(snapshot) => printer(snapshot)?,
            None => break,
        }
        left -= 1;
    }
    Ok(())
}
