// SPDX-License-Identifier: GPL-2.0-only
//! What is wrong in a scene's file, where, and what was expected instead. Shown as a list,
//! one mistake a line, or on a terminal with the lines it is about.

use std::fmt::{self, Write};
use std::io::stderr;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anstream::{AutoStream, ColorChoice};

/// Bytes of the file.
pub(super) type Span = Range<usize>;

/// A mistake as its finder knows it, still without the file.
#[derive(Debug)]
pub(super) struct Found {
    /// Where.
    pub span: Span,
    /// The key it is about, if it is about one.
    pub key: Option<String>,
    /// What was seen.
    pub seen: String,
    /// What was expected there.
    pub expected: String,
    /// What to do, or the nearest known word.
    pub help: Option<String>,
    /// Where else to look, and why.
    pub also: Vec<(Span, &'static str)>,
    /// Something is not there: worth saying only where nothing was lost by broken syntax.
    pub missing: bool,
}

impl Found {
    pub fn new(span: Span, seen: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            span,
            key: None,
            seen: seen.into(),
            expected: expected.into(),
            help: None,
            also: Vec::new(),
            missing: false,
        }
    }

    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn also(mut self, span: Span, why: &'static str) -> Self {
        self.also.push((span, why));
        self
    }

    pub fn missing(mut self) -> Self {
        self.missing = true;
        self
    }
}

/// All mistakes of one file, in the file's order; never empty. `Display` gives the plain
/// list, [`render`] also the drawn one.
#[derive(Clone, Debug)]
pub struct Mistakes {
    file: String,
    text: String,
    list: Vec<Mistake>,
}

/// A mistake with its place.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The key it is about, if it is about one.
    pub key: Option<String>,
    /// What was seen.
    pub seen: String,
    /// What was expected there.
    pub expected: String,
    /// What to do, or the nearest known word.
    pub help: Option<String>,
    span: Span,
    also: Vec<(Span, &'static str)>,
}

impl Mistakes {
    /// Gives the mistakes their lines. `found` must not be empty.
    pub(super) fn new(file: &str, text: &str, mut found: Vec<Found>) -> Self {
        for mistake in &mut found {
            mistake.span = within(text, &mistake.span);
        }
        found.sort_by_key(|f| (f.span.start, f.span.end));
        let lines = LineStarts::of(text);
        let list = found.into_iter().map(|f| f.place(text, &lines)).collect();
        Self { file: file.to_owned(), text: text.to_owned(), list }
    }

    /// The mistakes, in the file's order.
    #[must_use]
    pub fn list(&self) -> &[Mistake] {
        &self.list
    }

    /// Writes a line for each mistake but the first `skipped`.
    fn write_lines(&self, out: &mut impl Write, skipped: usize) -> fmt::Result {
        for (i, mistake) in self.list.iter().skip(skipped).enumerate() {
            let newline = if i == 0 { "" } else { "\n" };
            let Mistake { line, column, seen, expected, .. } = mistake;
            write!(out, "{newline}{}:{line}:{column}: {seen}: {expected}", self.file)?;
            if let Some(help) = &mistake.help {
                write!(out, "; {help}")?;
            }
        }
        Ok(())
    }

    fn draw(&self) -> String {
        let renderer = match AutoStream::choice(&stderr()) {
            ColorChoice::Never => Renderer::plain(),
            _ => Renderer::styled(),
        };
        let mut drawn = String::new();
        for mistake in self.list.iter().take(MOST_DRAWN) {
            let also = mistake
                .also
                .iter()
                .map(|(span, why)| AnnotationKind::Context.span(span.clone()).label(*why));
            let snippet = Snippet::source(&self.text)
                .path(&self.file)
                .annotation(
                    AnnotationKind::Primary.span(mistake.span.clone()).label(&mistake.expected),
                )
                .annotations(also);
            let help = mistake.help.as_ref().map(|help| Level::HELP.message(help));
            let group = Level::ERROR.primary_title(&mistake.seen).element(snippet).elements(help);
            drawn += &renderer.render(&[group]);
            drawn += "\n\n";
        }
        let _ = self.write_lines(&mut drawn, MOST_DRAWN); // into memory
        drawn.truncate(drawn.trim_end().len());
        drawn
    }
}

impl Found {
    fn place(self, text: &str, lines: &LineStarts) -> Mistake {
        let (line, column) = lines.place(text, self.span.start);
        let also = self.also.into_iter().map(|(span, why)| (within(text, &span), why)).collect();
        Mistake {
            line,
            column,
            key: self.key,
            seen: self.seen,
            expected: self.expected,
            help: self.help,
            span: self.span,
            also,
        }
    }
}

/// The span cut to the text and widened to whole characters.
fn within(text: &str, span: &Span) -> Span {
    let start = text.floor_char_boundary(span.start);
    start..text.ceil_char_boundary(span.end.max(start))
}

/// Offsets at which lines begin.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        let after_newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        Self(std::iter::once(0).chain(after_newlines.map(|(i, _)| i + 1)).collect())
    }

    /// Line and column of an offset, both from 1.
    fn place(&self, text: &str, offset: usize) -> (usize, usize) {
        let line = self.0.partition_point(|start| *start <= offset).max(1);
        (line, text[self.0[line - 1]..offset].chars().count() + 1)
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_lines(f, 0)
    }
}

impl std::error::Error for Mistakes {}

/// Most mistakes that are drawn; the others are lines. Nobody looks at more drawings, and
/// each takes time in proportion to the file.
const MOST_DRAWN: usize = 20;

/// The error as it is best read: mistakes drawn for a terminal, else a line for each.
#[must_use]
pub fn render(error: &anyhow::Error, to_terminal: bool) -> String {
    match error.downcast_ref::<Mistakes>() {
        Some(mistakes) if to_terminal => mistakes.draw(),
        _ => error.to_string(),
    }
}
