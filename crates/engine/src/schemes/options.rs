//! The options of a scheme's URLs, the checks that several have in common, and the words of what they lead to.

use serde::Serialize;

use super::Location;

/// How an option is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Text,
    /// Bytes, with K, M or G (IEC) behind.
    Size,
    /// A whole number; its default may be empty.
    Number,
}

/// One option of a scheme, as `leadline engines NAME` prints it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Choice {
    pub name: &'static str,
    pub kind: Kind,
    pub default: &'static str,
    pub words: &'static str,
}

impl Choice {
    pub const fn text(name: &'static str, default: &'static str, words: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Text,
            default,
            words,
        }
    }

    pub const fn size(name: &'static str, default: &'static str, words: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Size,
            default,
            words,
        }
    }

    pub const fn number(name: &'static str, default: &'static str, words: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Number,
            default,
            words,
        }
    }
}

/// A table of options: those of several schemes, then each its own by kind, name, default, and words.
macro_rules! choices {
    ($($shared:ident),+; $($kind:ident $name:literal = $default:literal: $words:literal;)*) => {
        &[$($shared,)+ $(Choice::$kind($name, $default, $words),)*]
    };
    ($($kind:ident $name:literal = $default:literal: $words:literal;)*) => {
        &[$(Choice::$kind($name, $default, $words),)*]
    };
}
pub(super) use choices;

/// Ceph's configuration, user and key.
pub const CONF: Choice = Choice::text(
    "conf",
    "",
    "Ceph's configuration file; empty: CEPH_CONF, or /etc/ceph/ceph.conf",
);
pub const USER: Choice = Choice::text(
    "user",
    "admin",
    "the part of the Ceph user's name behind `client.`",
);
pub const KEYRING: Choice = Choice::text(
    "keyring",
    "",
    "the file with the user's key; empty: what the configuration says",
);

/// What is wrong with a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// Its form, of which the scheme's example shows the right one.
    Form(&'static str),
    /// An option's value.
    Value(&'static str),
    /// It holds what must not be repeated.
    Secret(&'static str),
}

/// A part of the words on what a URL leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Word {
    Text(String),
    /// Printed as a size.
    Bytes(u64),
    /// The pool with its protection, which the cluster says.
    Pool,
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Word {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The first of what was found wrong.
pub fn first(wrongs: impl IntoIterator<Item = Option<Wrong>>) -> Result<(), Wrong> {
    wrongs.into_iter().flatten().next().map_or(Ok(()), Err)
}

pub fn wrong_form(is_wrong: bool, words: &'static str) -> Option<Wrong> {
    is_wrong.then_some(Wrong::Form(words))
}

pub fn wrong_value(is_wrong: bool, words: &'static str) -> Option<Wrong> {
    is_wrong.then_some(Wrong::Value(words))
}

/// `.` and `..` lead out of where a URL leads to.
pub fn climbs(location: &Location) -> bool {
    location
        .path
        .split('/')
        .any(|part| part == ".." || part == ".")
}

pub fn wrong_climb(location: &Location) -> Option<Wrong> {
    climbs(location).then_some(Wrong::Form("the path must not hold `.` or `..`"))
}

pub fn wrong_object_size(bytes: u64) -> Option<Wrong> {
    let right = (4096..=1 << 30).contains(&bytes) && bytes.is_multiple_of(4096);
    let words = "object_size must be a multiple of 4K, from 4K to 1G";
    (!right).then_some(Wrong::Value(words))
}

/// True for what a timeout may be.
pub fn is_timeout(seconds: Option<u32>) -> bool {
    matches!(seconds, Some(1..=3600))
}

pub fn wrong_timeout(seconds: Option<u32>) -> Option<Wrong> {
    (!is_timeout(seconds)).then_some(Wrong::Value("timeout is from 1 to 3600 seconds"))
}
