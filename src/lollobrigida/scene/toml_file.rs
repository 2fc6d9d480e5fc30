// SPDX-License-Identifier: GPL-2.0-only
//! Reads the TOML form: tables into checked keys, keys into groups.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Scene;
use super::fields::Fields;
use super::group::{self, Read};
use super::keys::{MOST_TASKS, Place};
use super::mistake::{Found, Span};
use super::value::Raw;
use super::whole;

/// The scene, or what is wrong with it: one of both, `found` being empty or not.
pub(super) fn parse(name: &str, text: &str, found: &mut Vec<Found>) -> Option<Scene> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let first_line = 0..text.find('\n').unwrap_or(text.len());
    let mut top = Fields::new(first_line.clone());
    let mut groups = Vec::new();
    for (key, value) in table.get_ref() {
        match &**key.get_ref() {
            "group" => groups = tables("group", key.span(), value, found),
            _ => enter(&mut top, &[Place::Scene], key, value, found),
        }
    }
    top.need("why", "no `why`", "add `why`: the question that the scene asks", found);
    if groups.is_empty() && !table.get_ref().contains_key("group") {
        let expected = "add a [[group]]: nothing would run";
        found.push(Found::new(first_line, "no group", expected).key("group").missing());
    }
    if let Some((_, span)) = groups.get(MOST_TASKS as usize) {
        let seen = format!("{} groups", groups.len());
        let expected = format!("expected {MOST_TASKS} tasks in all at most");
        found.push(Found::new(span.clone(), seen, expected).key("group"));
        groups.truncate(MOST_TASKS as usize);
    }
    let limited = top.has("limit_ms");
    let read: Vec<Read> =
        groups.into_iter().map(|(table, span)| read_group(table, span, limited, found)).collect();
    whole::check(&read, found);
    keep_first_causes(text, found, errors);
    found.is_empty().then(|| Scene {
        name: name.to_owned(),
        why: top.text("why").unwrap_or_default().to_owned(),
        good: top.text("good").unwrap_or_default().to_owned(),
        seed: top.whole("seed").unwrap_or(Scene::SEED),
        limit_ms: top.whole("limit_ms"),
        rt_cpus: top.cpus("rt_cpus").cloned(),
        groups: read.into_iter().map(Read::finish).collect(),
    })
}

fn read_group(table: &DeTable<'_>, span: Span, limited: bool, found: &mut Vec<Found>) -> Read {
    let phase_tables = match table.get_key_value("phase") {
        Some((key, value)) => tables("phase", key.span(), value, found),
        None => Vec::new(),
    };
    let (mut fields, mut phases) = (Fields::new(span), Vec::new());
    // With phases, what a task does is in them and nowhere else.
    let places: &[Place] = match phase_tables.is_empty() {
        true => &[Place::Group, Place::Phase],
        false => &[Place::Group],
    };
    for (key, value) in table.iter().filter(|(key, _)| *key.get_ref() != "phase") {
        enter(&mut fields, places, key, value, found);
    }
    for (table, span) in phase_tables {
        let mut phase = Fields::new(span);
        for (key, value) in table {
            enter(&mut phase, &[Place::Phase], key, value, found);
        }
        phases.push(phase);
    }
    group::build(fields, &phases, limited, found)
}

type Key<'a> = Spanned<std::borrow::Cow<'a, str>>;

fn enter(
    fields: &mut Fields,
    places: &[Place],
    key: &Key<'_>,
    value: &Spanned<DeValue<'_>>,
    found: &mut Vec<Found>,
) {
    let name = (&**key.get_ref(), key.span());
    fields.enter(places, name, (&raw(value.get_ref()), value.span()), found);
}

/// The tables of `[[name]]`. A single table counts as one, so that its keys are looked at.
fn tables<'a>(
    name: &str,
    key: Range<usize>,
    value: &'a Spanned<DeValue<'a>>,
    found: &mut Vec<Found>,
) -> Vec<(&'a DeTable<'a>, Span)> {
    let brackets = if name == "phase" { "[[group.phase]]" } else { "[[group]]" };
    let not_tables = |span, seen: &str| {
        Found::new(span, format!("`{name}` is {seen}"), format!("expected {brackets}")).key(name)
    };
    match value.get_ref() {
        DeValue::Table(table) => {
            found.push(not_tables(key, "a single table"));
            vec![(table, value.span())]
        }
        DeValue::Array(array) if !array.is_empty() => {
            let mut all = Vec::new();
            for item in array.iter() {
                match item.get_ref() {
                    DeValue::Table(table) => all.push((table, item.span())),
                    other => found.push(not_tables(item.span(), what(other))),
                }
            }
            all
        }
        DeValue::Array(_) => {
            found.push(not_tables(value.span(), "an empty list"));
            Vec::new()
        }
        other => {
            found.push(not_tables(value.span(), what(other)));
            Vec::new()
        }
    }
}

fn what(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(n) => Raw::Whole { digits: n.as_str().to_owned(), radix: n.radix() },
        DeValue::Float(n) => Raw::Number(n.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Array(items) => {
            Raw::List(items.iter().map(|i| (raw(i.get_ref()), i.span())).collect())
        }
        other => Raw::Other(what(other)),
    }
}

/// Adds the mistakes of syntax, and takes out those that may be their consequence: what is
/// missing, and whatever else is on their lines.
fn keep_first_causes(text: &str, found: &mut Vec<Found>, errors: Vec<toml::de::Error>) {
    if errors.is_empty() {
        return;
    }
    let newlines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = |offset: usize| newlines.partition_point(|newline| *newline < offset);
    let spans: Vec<Span> = errors.iter().map(|e| e.span().unwrap_or(0..0)).collect();
    let mut lines: Vec<usize> = spans.iter().map(|s| line(s.start)).collect();
    lines.sort_unstable();
    found.retain(|f| !f.missing && lines.binary_search(&line(f.span.start)).is_err());
    for (error, span) in errors.iter().zip(spans) {
        let mut mistake = Found::new(span, "not TOML", error.message().replace('\n', ", "));
        mistake.key = key_of_line(text, mistake.span.start);
        found.push(mistake);
    }
}

/// What stands before the = of the line, if that is a key.
fn key_of_line(text: &str, offset: usize) -> Option<String> {
    let offset = text.floor_char_boundary(offset);
    let line = text[text[..offset].rfind('\n').map_or(0, |at| at + 1)..].lines().next()?;
    let key = line.split_once('=')?.0.trim();
    let bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    (!key.is_empty() && key.chars().all(bare)).then(|| key.to_owned())
}
