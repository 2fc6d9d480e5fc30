// SPDX-License-Identifier: GPL-2.0-only
//! Rules about which task is of which class, as users write them: a TOML file of `[[rule]]`
//! tables, or words of a command line (docs/rules.md).

mod pattern;
mod rule;

pub use pattern::{Glob, NameGlob, Parent, PathGlob, Pattern, User};
pub use rule::{ClassName, Permission, PolicyName, Rule};

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

/// Where the rules are looked for when the user names no file.
pub const CONFIG: &str = "/etc/scx_artis/config.toml";

/// What is wrong in a file or in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", .line.map_or_else(String::new, |line| format!("line {line}: ")))]
pub struct Mistake {
    /// Where; `None`: in the words of a command line.
    pub line: Option<usize>,
    /// What, and what is expected.
    pub what: String,
}

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<Spanned<Rule>>,
}

/// The rules of a file, each with the number of its first line.
///
/// # Errors
/// The first line that is wrong, and why; or that the file cannot be read.
pub fn read(file: &Path) -> Result<Vec<(usize, Rule)>, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("{}: {error}; --config names another file", file.display()))?;
    parse(&text).map_err(|mistake| format!("{}, {mistake}", file.display()))
}

/// The same of the text of a file.
///
/// # Errors
/// The first line that is wrong, and why.
pub fn parse(text: &str) -> Result<Vec<(usize, Rule)>, Mistake> {
    let line_of = |at: usize| 1 + text[..at.min(text.len())].matches('\n').count();
    let file: File = toml::from_str(text).map_err(|error| Mistake {
        line: error.span().map(|span| line_of(span.start)),
        what: error.message().to_owned(),
    })?;
    let mut rules = Vec::new();
    for rule in file.rule {
        let line = line_of(rule.span().start);
        let rule = rule.into_inner();
        rule.check().map_err(|what| Mistake { line: Some(line), what })?;
        rules.push((line, rule));
    }
    Ok(rules)
}

/// A rule of `key=value` words, whose values need no quotes, or of one word that is a TOML table
/// in braces.
///
/// # Errors
/// What is wrong with it.
pub fn of_words(words: &[String]) -> Result<Rule, Mistake> {
    let mistake = |what: String| Mistake { line: None, what };
    let text = match words {
        [table] if table.trim_start().starts_with('{') => format!("rule = {table}"),
        words => {
            let pairs: Result<Vec<_>, _> = words.iter().map(|word| pair(word)).collect();
            format!("rule = {{ {} }}", pairs.map_err(mistake)?.join(", "))
        }
    };
    #[derive(Deserialize)]
    struct One {
        rule: Rule,
    }
    let One { rule } =
        toml::from_str(&text).map_err(|error| mistake(error.message().to_owned()))?;
    rule.check().map_err(mistake)?;
    Ok(rule)
}

/// `key=value` as TOML: a value that is none yet becomes a string.
fn pair(word: &str) -> Result<String, String> {
    let (key, value) = word.split_once('=').ok_or_else(|| {
        format!("\"{word}\" is no KEY=VALUE, for example comm=jackd class=rt1 priority=50")
    })?;
    let (key, value) = (key.trim(), value.trim());
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if key.is_empty() || !key.chars().all(is_key) {
        return Err(format!("\"{key}\" is no key of a rule"));
    }
    let is_toml = toml::from_str::<toml::Table>(&format!("value = {value}"));
    let value = match is_toml {
        Ok(table) if table.len() == 1 => value.to_owned(),
        _ => toml::Value::String(value.to_owned()).to_string(),
    };
    Ok(format!("{key} = {value}"))
}

#[cfg(test)]
mod tests;
