// SPDX-License-Identifier: GPL-2.0-only
//! The values of a rule that say which tasks it is about: checked when they are read, shown as
//! they were written.

use globset::{GlobBuilder, GlobMatcher};
use nix::unistd::User as Account;
use regex::Regex;
use serde::{Deserialize, Deserializer, Serialize, de};

/// A glob: `*`, `?`, `[ab]`, `{one,other}`; of paths (`PATHS`) only `**` crosses a slash.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Glob<const PATHS: bool> {
    text: String,
    matcher: GlobMatcher,
}

/// A glob of names.
pub type NameGlob = Glob<false>;
/// A glob of paths.
pub type PathGlob = Glob<true>;

impl<const PATHS: bool> Glob<PATHS> {
    /// Does it match all of `text`?
    pub fn is_match(&self, text: &str) -> bool {
        self.matcher.is_match(text)
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl PathGlob {
    /// Does it match the path, or one that this is below?
    pub fn is_match_above(&self, path: &str) -> bool {
        std::path::Path::new(path).ancestors().any(|path| self.matcher.is_match(path))
    }
}

impl<const PATHS: bool> TryFrom<String> for Glob<PATHS> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if PATHS && !text.starts_with(['/', '*', '?', '[', '{']) {
            return Err(format!("\"{text}\" matches no path: paths begin with a slash"));
        }
        let glob = GlobBuilder::new(&text).literal_separator(PATHS).build();
        let matcher = glob
            .map_err(|error| format!("\"{text}\" is no glob: {}", error.kind()))?
            .compile_matcher();
        Ok(Self { text, matcher })
    }
}

impl<const PATHS: bool> From<Glob<PATHS>> for String {
    fn from(glob: Glob<PATHS>) -> Self {
        glob.text
    }
}

impl<const PATHS: bool> PartialEq for Glob<PATHS> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<const PATHS: bool> Eq for Glob<PATHS> {}

/// A regular expression; it matches anywhere in a name unless it says `^` and `$`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Regex);

impl Pattern {
    /// Does it match in `text`?
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Regex::new(&text).map(Self).map_err(|error| {
            // many lines, of which the last one says what is wrong
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("\"{text}\" is no regular expression: {why}")
        })
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0.as_str().to_owned()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

/// A name or a number, as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum NameOrId {
    Name(String),
    Id(u32),
}

// not by #[serde(untagged)], which forgets what is wrong
impl<'de> Deserialize<'de> for NameOrId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = NameOrId;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a name or a number")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<NameOrId, E> {
                Ok(NameOrId::Name(name.to_owned()))
            }

            fn visit_u64<E: de::Error>(self, id: u64) -> Result<NameOrId, E> {
                let id = u32::try_from(id);
                id.map(NameOrId::Id).map_err(|_| E::custom("there are no such numbers"))
            }

            fn visit_i64<E: de::Error>(self, id: i64) -> Result<NameOrId, E> {
                let id = u64::try_from(id).map_err(|_| E::custom("a number below 0"))?;
                self.visit_u64(id)
            }
        }
        from.deserialize_any(Visitor)
    }
}

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "NameOrId", into = "NameOrId")]
pub struct User {
    written: NameOrId,
    /// The id.
    pub uid: u32,
}

impl TryFrom<NameOrId> for User {
    type Error = String;

    fn try_from(written: NameOrId) -> Result<Self, String> {
        let uid = match &written {
            NameOrId::Id(uid) => *uid,
            NameOrId::Name(name) => match Account::from_name(name) {
                Ok(Some(account)) => account.uid.as_raw(),
                Ok(None) => return Err(format!("this machine has no user \"{name}\"")),
                Err(error) => return Err(format!("looking for the user \"{name}\": {error}")),
            },
        };
        Ok(Self { written, uid })
    }
}

impl From<User> for NameOrId {
    fn from(user: User) -> Self {
        user.written
    }
}

/// The process that a task is a child of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "NameOrId", into = "NameOrId")]
pub enum Parent {
    /// By its name.
    Name(NameGlob),
    /// By its process id.
    Id(u32),
}

impl TryFrom<NameOrId> for Parent {
    type Error = String;

    fn try_from(written: NameOrId) -> Result<Self, String> {
        Ok(match written {
            NameOrId::Name(name) => Self::Name(name.try_into()?),
            NameOrId::Id(id) => Self::Id(id),
        })
    }
}

impl From<Parent> for NameOrId {
    fn from(parent: Parent) -> Self {
        match parent {
            Parent::Name(name) => Self::Name(name.into()),
            Parent::Id(id) => Self::Id(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> PathGlob {
        text.to_owned().try_into().expect("a glob")
    }

    #[test]
    fn paths_are_matched_level_by_level() {
        let glob = paths("/system.slice/*.service");
        assert!(glob.is_match("/system.slice/jack.service"));
        assert!(!glob.is_match("/system.slice/a/b.service"), "* does not cross a slash");
        assert!(paths("/usr/**").is_match("/usr/lib/a/b"));
        assert!(glob.is_match_above("/system.slice/jack.service/inner/most"));
        assert!(!glob.is_match_above("/system.slice"));
        assert!(paths("/").is_match_above("/any"));
        let name: NameGlob = "kworker*".to_owned().try_into().expect("a glob");
        assert!(name.is_match("kworker/0:1"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (glob, words) in [("a/b", "begin with a slash"), ("/a[", "is no glob")] {
            let error = PathGlob::try_from(glob.to_owned()).expect_err(glob);
            assert!(error.contains(words), "{error}");
        }
        let error = Pattern::try_from("a(".to_owned()).expect_err("no regex");
        assert!(error.contains("unclosed group") && !error.contains('\n'), "{error}");
        let error = User::try_from(NameOrId::Name("no-such-user".into())).expect_err("nobody");
        assert!(error.contains("no user \"no-such-user\""), "{error}");
        let root = User::try_from(NameOrId::Name("root".into())).expect("root");
        assert_eq!(root.uid, 0);
    }
}
