// SPDX-License-Identifier: GPL-2.0-only
//! How a figure is described: once, where it is defined. The view's titles,
//! `--help-stats`, JSON, CSV, OpenMetrics and docs/statistics.md all come from here.

/// One figure of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name: that of the Rust field, of the JSON key and of the metric.
    pub name: &'static str,
    /// A few letters for the head of a column.
    pub title: &'static str,
    /// Its unit as people write it (`%`, `us`, `1/s`); may be empty.
    pub unit: &'static str,
    /// What kind of figure it is.
    pub kind: Kind,
    /// What it is, in a sentence.
    pub desc: &'static str,
}

/// What kind of figure a [`Field`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Says what the figures are about: an id, a name.
    Label,
    /// Goes up and down.
    Gauge,
    /// A total: only grows while the same daemon and the same watch last.
    Counter,
}

/// A figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Text.
    Text(&'a str),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
}

impl From<&u64> for Value<'_> {
    fn from(number: &u64) -> Self {
        Self::Int(i64::try_from(*number).unwrap_or(i64::MAX))
    }
}

impl From<&i64> for Value<'_> {
    fn from(number: &i64) -> Self {
        Self::Int(*number)
    }
}

impl From<&f64> for Value<'_> {
    fn from(number: &f64) -> Self {
        Self::Float(*number)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

/// A struct all of whose figures are described.
pub trait Described {
    /// What the struct is about, in a few words.
    const ABOUT: &'static str;
    /// Its figures.
    const FIELDS: &'static [Field];

    /// The figures, in the order of [`Self::FIELDS`].
    fn values(&self) -> Vec<Value<'_>>;
}

/// Declares a struct whose every field is described, for [`Described`], for serde and for the
/// server of scx_stats. A field is `name: type = Kind "unit" "title", "description";`, with
/// attributes of scx_stats before it (`#[stat(_om_skip)]`: not for scx's OpenMetrics script).
macro_rules! described {
    (
        $(#[$attr:meta])*
        struct $Name:ident ($about:literal) {
            $($(#[$for_scx:meta])* $field:ident: $ty:ident =
                $kind:ident $unit:literal $title:literal, $desc:literal;)*
        }
    ) => {
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[derive(scx_stats_derive::Stats, schemars::JsonSchema)]
        #[stat(desc = $about)]
        #[serde(default)]
        $(#[$attr])*
        pub struct $Name {
            $(#[doc = $desc] #[stat(desc = $desc)] $(#[$for_scx])* pub $field: $ty,)*
        }

        impl $crate::model::Described for $Name {
            const ABOUT: &'static str = $about;
            const FIELDS: &'static [$crate::model::Field] = &[$($crate::model::Field {
                name: stringify!($field),
                title: $title,
                unit: $unit,
                kind: $crate::model::Kind::$kind,
                desc: $desc,
            },)*];

            fn values(&self) -> Vec<$crate::model::Value<'_>> {
                vec![$($crate::model::Value::from(&self.$field),)*]
            }
        }
    };
}
pub(super) use described;
