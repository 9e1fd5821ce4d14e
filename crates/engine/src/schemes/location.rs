//! Where I/O goes when it is not a mounted path: a URL, read and checked. Touches nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::options::{Kind, Wrong};
use super::password::without_password;
use super::{Engine, SCHEMES, Scheme, located};
use crate::error::EngineError;

/// A URL that was read: `container` is the pool, host or bucket, `path` what follows it, without `/` at either end.
#[derive(Debug, Clone)]
pub struct Location {
    pub url: String,
    described: &'static Scheme,
    pub container: String,
    pub path: String,
    options: BTreeMap<&'static str, String>,
}

impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url
    }
}

impl Eq for Location {}

impl Serialize for Location {
    fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.serialize_str(&self.url)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.url)
    }
}

impl Location {
    /// Reads and checks a URL. Every error says what would be right.
    pub fn parse(url: &str) -> Result<Self, EngineError> {
        let refuse = |words: String| EngineError::Job(words);
        let Some((name, rest)) = url.split_once("://") else {
            return Err(refuse(format!("{url:?} is no URL; write SCHEME://…")));
        };
        let Some(scheme) = located().find(|scheme| scheme.name == name) else {
            let known: Vec<_> = located().map(|scheme| scheme.name).collect();
            return Err(refuse(format!(
                "{name}:// is no scheme that this version measures; it knows {}",
                known.join(", ")
            )));
        };
        if without_password(url) != url {
            return Err(refuse(format!(
                "{name}://…: a password has no place in a URL; see `leadline engines {name}` for where it has one (an @ \
                 in a path is written %40)"
            )));
        }
        if url.chars().any(char::is_control) {
            return Err(refuse(format!("{url:?} holds a control character")));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (container, path) = place.split_once('/').unwrap_or((place, ""));
        let location = Self {
            url: url.to_owned(),
            described: scheme,
            container: decoded(container)?,
            path: decoded(path.trim_matches('/'))?,
            options: options(scheme, query)?,
        };
        location.check()?;
        Ok(location)
    }

    /// The engine that the scheme stands for.
    pub fn engine(&self) -> EngineName {
        self.described.engine()
    }

    /// The scheme's own words and options.
    pub fn described(&self) -> &'static Scheme {
        self.described
    }

    /// The word before `://`.
    pub fn scheme(&self) -> &'static str {
        self.described.name
    }

    /// An option as text; its default where it was left out.
    pub fn text(&self, name: &str) -> &str {
        self.options.get(name).map_or_else(
            || {
                let choices = self.described().choices.iter();
                choices
                    .filter(|choice| choice.name == name)
                    .map(|choice| choice.default)
                    .next()
                    .unwrap_or_default()
            },
            String::as_str,
        )
    }

    /// An option in bytes.
    pub fn size(&self, name: &str) -> u64 {
        size_of(self.text(name)).unwrap_or_default()
    }

    /// Bytes of objects that are written whole there; `None`: any part can be.
    pub fn whole_object(&self) -> Option<u64> {
        let whole = self.described().whole_objects;
        whole.then(|| self.size("object_size"))
    }

    /// An option that is a number; `None` where it is empty.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.text(name).parse().ok()
    }

    /// All options, those left out with their defaults.
    pub fn options(&self) -> BTreeMap<&'static str, String> {
        let choices = self.described().choices.iter();
        choices
            .map(|choice| (choice.name, self.text(choice.name).to_owned()))
            .collect()
    }

    /// The user of `user@host:port`, if any, and the rest.
    pub fn user_and_host(&self) -> (&str, &str) {
        let found = self.container.rsplit_once('@');
        found.unwrap_or(("", &self.container))
    }

    fn check(&self) -> Result<(), EngineError> {
        let (url, example) = (&self.url, self.described.example);
        (self.described.check)(self).map_err(|wrong| {
            EngineError::Job(match wrong {
                Wrong::Form(what) => format!("{url}: {what}; for example {example}"),
                Wrong::Value(words) => format!("{url}: {words}"),
                Wrong::Secret(words) => words.to_owned(),
            })
        })
    }
}

fn options(scheme: &Scheme, query: &str) -> Result<BTreeMap<&'static str, String>, EngineError> {
    let mut found = BTreeMap::new();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let Some(choice) = scheme.choices.iter().find(|choice| choice.name == name) else {
            let known: Vec<_> = scheme.choices.iter().map(|choice| choice.name).collect();
            return Err(EngineError::Job(format!(
                "{}:// has no option {name:?}; it has {}",
                scheme.name,
                known.join(", ")
            )));
        };
        let value = decoded(value)?;
        let may_be_empty = choice.default.is_empty() && value.is_empty();
        if choice.kind == Kind::Size && size_of(&value).is_none() && !may_be_empty {
            return Err(EngineError::Job(format!(
                "{name}: {value:?} is no size; write it like {}",
                choice.default
            )));
        }
        if choice.kind == Kind::Number && !value.is_empty() && value.parse::<u32>().is_err() {
            return Err(EngineError::Job(format!("{name}: {value:?} is no number")));
        }
        if found.insert(choice.name, value).is_some() {
            return Err(EngineError::Job(format!("{name} is given twice")));
        }
    }
    Ok(found)
}

/// `4M` as bytes.
fn size_of(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'k', 'm', 'g']);
    let factor = match text.get(digits.len()..)?.to_ascii_uppercase().as_str() {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Resolves `%2F` and its like (RFC 3986, 2.1).
fn decoded(text: &str) -> Result<String, EngineError> {
    let wrong = || EngineError::Job(format!("{text:?} holds a % without two hexadecimal digits"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes().iter();
    while let Some(byte) = rest.next() {
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(*byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(wrong());
        };
        bytes.push((high * 16 + low) as u8);
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(wrong()),
    }
}

/// One of the table's engines, and the scheme that it serves.
#[derive(Clone, Copy)]
pub struct EngineName {
    scheme: &'static Scheme,
    engine: &'static Engine,
}

impl EngineName {
    pub(super) fn of(scheme: &'static Scheme, engine: &'static Engine) -> Self {
        Self { scheme, engine }
    }

    /// All, in the table's order.
    fn all() -> impl Iterator<Item = Self> {
        let of = |scheme: &'static Scheme| {
            let engines = scheme.engines.iter();
            engines.map(move |engine| Self { scheme, engine })
        };
        SCHEMES.iter().copied().flat_map(of)
    }

    /// The word for it in jobs and records.
    pub fn name(self) -> &'static str {
        self.engine.name
    }

    /// False: its library has no call that syncs a file.
    pub fn syncs(self) -> bool {
        self.scheme.syncs
    }

    /// True for engines that reach storage by a library, not by the kernel.
    pub fn needs_location(self) -> bool {
        self.scheme.has_locations()
    }
}

impl Deref for EngineName {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        self.engine
    }
}

impl fmt::Debug for EngineName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.engine.name)
    }
}

impl PartialEq for EngineName {
    fn eq(&self, other: &Self) -> bool {
        self.engine.name == other.engine.name
    }
}

impl Eq for EngineName {}

impl Serialize for EngineName {
    fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.serialize_str(self.engine.name)
    }
}

impl<'de> Deserialize<'de> for EngineName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word = String::deserialize(from)?;
        let mut found = Self::all().filter(|engine| engine.name() == word);
        found.next().ok_or_else(|| {
            let known: Vec<_> = Self::all().map(|one| format!("`{}`", one.name())).collect();
            let known = known.join(", ");
            serde::de::Error::custom(format!("unknown variant `{word}`, expected one of {known}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(url: &str) -> String {
        match Location::parse(url) {
            Err(EngineError::Job(words)) => words,
            other => panic!("{url} gave {other:?}"),
        }
    }

    #[test]
    fn pool_namespace_and_options_are_read() {
        let found = Location::parse("rados://bench/a%20b?object_size=64K&user=me").unwrap();
        assert_eq!(
            (found.container.as_str(), found.path.as_str()),
            ("bench", "a b")
        );
        assert_eq!(
            (found.size("object_size"), found.text("user")),
            (65536, "me")
        );
        assert_eq!(found.text("conf"), "");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (url, words) in [
            ("rados://", "the pool is missing"),
            ("rados://p/a/b", "namespace"),
            ("rados://p?objectsize=4M", "no option"),
            ("rados://p?object_size=4X", "no size"),
            ("rados://p?object_size=5", "multiple of 4K"),
            ("rados://p?user=a&user=b", "twice"),
            ("rados://p%zz", "hexadecimal"),
            ("radosstriper://", "the pool is missing"),
            ("radosstriper://p?stripe_unit=100K", "multiple of 64K"),
            ("radosstriper://p?stripe_unit=3M", "multiple of stripe_unit"),
            ("radosstriper://p?calls=io", "aio or threads"),
            ("radosstriper://p?stripe_count=0", "from 1 to"),
            ("radosstriper://p?stripe_count=4K", "no number"),
            ("cephfs://pool/a", "three slashes"),
            ("cephfs:///a/../b", ".."),
            ("root:////x", "the host is missing"),
            ("root://host//x?readv=0", "from 1 to 1024"),
            ("root://host//x?streams=99", "from 1 to 16"),
            ("root://host//../x", ".."),
            ("smb://", "the host is missing"),
            ("smb://host", "the share is missing"),
            ("smb://host/share/../x", ".."),
            ("smb://host/share?timeout=0", "3600"),
            ("smb://host/share?encrypt=maybe", "yes or no"),
            ("nfs:///export", "the server is missing"),
            ("nfs://host:port/export", "the port"),
            ("nfs://host:1/export?nfsport=2", "twice"),
            ("nfs://host/a/../b", ".."),
            ("nfs://host/a?version=2", "3 or 4"),
            ("nfs://host/a?uid=me", "no number"),
            ("nfs://host/a?timeout=0", "3600"),
            ("s3://?endpoint=http://h", "the bucket is missing"),
            ("s3://b", "endpoint= is missing"),
            ("s3://b?endpoint=https://h", "https"),
            ("s3://b?endpoint=host:80", "http://host:port"),
            ("s3://b?endpoint=http://key@h", "profile="),
            (
                "s3://b?endpoint=http://h&object_size=1M&part_size=3M",
                "multiple of part_size",
            ),
            ("ftp://x", "no scheme"),
            ("nothing", "no URL"),
        ] {
            assert!(refusal(url).contains(words), "{url}: {}", refusal(url));
        }
    }

    #[test]
    fn a_password_in_a_url_is_refused_and_not_repeated() {
        for url in [
            "smb://ann:secret@host/share",
            "smb://ann:a/secret@host/share",
            "s3://b?endpoint=http://k:secret@h",
        ] {
            let words = refusal(url);
            assert!(words.contains("no place"), "{words}");
            assert!(!words.contains("secret"), "{words}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_an_error_never_a_panic(text in ".{0,80}") {
            let _ = Location::parse(&text);
            let _ = Location::parse(&format!("rados://{text}"));
            let _ = Location::parse(&format!("cephfs:///{text}"));
            let _ = Location::parse(&format!("nfs://{text}"));
            let _ = Location::parse(&format!("s3://{text}?endpoint=http://{text}"));
        }
    }
}
