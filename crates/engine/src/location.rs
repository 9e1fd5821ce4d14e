//! Where I/O goes when it is not a mounted path: a URL, read and checked. Touches nothing.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::error::EngineError;
use crate::job::EngineName;
use crate::scheme::{Kind, SCHEMES, Scheme};

/// A URL that was read: `container` is the pool (`rados`), `path` what follows it, without `/` at either end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub url: String,
    pub scheme: &'static str,
    pub container: String,
    pub path: String,
    options: BTreeMap<&'static str, String>,
}

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
        let Some(scheme) = SCHEMES.iter().find(|scheme| scheme.name == name) else {
            let known: Vec<_> = SCHEMES.iter().map(|scheme| scheme.name).collect();
            return Err(refuse(format!(
                "{name}:// is no scheme that this version measures; it knows {}",
                known.join(", ")
            )));
        };
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        if authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.contains(':'))
        {
            return Err(refuse(format!(
                "{name}://…: a password has no place in a URL; see `leadline engines {name}` for where it has one"
            )));
        }
        if url.chars().any(char::is_control) {
            return Err(refuse(format!("{url:?} holds a control character")));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (container, path) = place.split_once('/').unwrap_or((place, ""));
        let location = Self {
            url: url.to_owned(),
            scheme: scheme.name,
            container: decoded(container)?,
            path: decoded(path.trim_matches('/'))?,
            options: options(scheme, query)?,
        };
        location.check(scheme)?;
        Ok(location)
    }

    /// The engine that the scheme stands for.
    pub fn engine(&self) -> EngineName {
        self.described().engine
    }

    /// The scheme's own words and options.
    pub fn described(&self) -> &'static Scheme {
        SCHEMES
            .iter()
            .find(|scheme| scheme.name == self.scheme)
            .expect("a location has one of the schemes")
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

    /// Bytes of a part of an object; those of an object where it is not cut.
    pub fn part_bytes(&self) -> u64 {
        match self.text("part_size") {
            "" => self.size("object_size"),
            _ => self.size("part_size"),
        }
    }

    /// An option that is a number; `None` where it is empty.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.text(name).parse().ok()
    }

    /// The server of a container `server:port`, and the port.
    pub fn server(&self) -> Option<(&str, Option<u16>)> {
        match self.container.rsplit_once(':') {
            Some((server, port)) if !port.contains(']') => {
                Some((server, Some(port.parse().ok().filter(|port| *port > 0)?)))
            }
            _ => Some((&self.container, None)),
        }
    }

    /// The server that a URL names itself; `None` where something else names it.
    pub fn server_name(&self) -> Option<&str> {
        match self.scheme {
            "nfs" => self.server().map(|(server, _)| server),
            "s3" => {
                let place = self.text("endpoint").strip_prefix("http://")?;
                let place = place.split('/').next()?;
                let port_at = place.rfind(':').filter(|at| !place[*at..].contains(']'));
                Some(&place[..port_at.unwrap_or(place.len())])
            }
            _ => None,
        }
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

    fn check(&self, scheme: &Scheme) -> Result<(), EngineError> {
        let example = scheme.example;
        if scheme.name == "s3" && self.text("endpoint").contains('@') {
            let words =
                "endpoint= holds an @: credentials belong into the environment or a profile=";
            return Err(EngineError::Job(words.to_owned()));
        }
        let wrong = match scheme.name {
            "rados" | "radosstriper" if self.container.is_empty() => Some("the pool is missing"),
            "rados" | "radosstriper" if self.path.contains('/') => {
                Some("a namespace has no `/` in it")
            }
            "cephfs" if !self.container.is_empty() => {
                Some("a path of the file system follows, with three slashes")
            }
            "root" if self.user_and_host().1.is_empty() => Some("the host is missing"),
            "root" if self.path.contains(['?', '&']) => Some("the path must not hold `?` or `&`"),
            "smb" if self.user_and_host().1.is_empty() => Some("the host is missing"),
            "smb" if self.path.is_empty() => Some("the share is missing"),
            "cephfs" | "smb" | "root" if self.climbs() => {
                Some("the path must not hold `.` or `..`")
            }
            "nfs" => self.wrong_with_nfs(),
            "s3" => self.wrong_with_s3(),
            _ => None,
        };
        match wrong {
            Some(what) => Err(EngineError::Job(format!(
                "{}: {what}; for example {example}",
                self.url
            ))),
            None => self.check_sizes(),
        }
    }

    fn climbs(&self) -> bool {
        self.path.split('/').any(|part| part == ".." || part == ".")
    }

    fn wrong_with_nfs(&self) -> Option<&'static str> {
        let port_of = |name: &str| self.number(name).is_none_or(|port| port < 65_536);
        match self.server() {
            _ if self.container.is_empty() => Some("the server is missing"),
            None => Some("the port is no number from 1 to 65535"),
            Some((server, _)) if server.contains('@') => Some("a user is given by uid="),
            Some((_, Some(_))) if !self.text("nfsport").is_empty() => {
                Some("the port is given twice")
            }
            _ if self.climbs() => Some("the path must not hold `.` or `..`"),
            _ if !matches!(self.text("version"), "3" | "4") => Some("version is 3 or 4"),
            _ if !port_of("nfsport") || !port_of("mountport") => Some("a port is at most 65535"),
            _ if !matches!(self.number("timeout"), Some(1..=3600)) => {
                Some("timeout is from 1 to 3600 seconds")
            }
            _ => None,
        }
    }

    fn wrong_with_s3(&self) -> Option<&'static str> {
        let endpoint = self.text("endpoint");
        let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let (object, part) = (self.size("object_size"), self.part_bytes());
        match endpoint.strip_prefix("http://") {
            _ if self.container.is_empty() => Some("the bucket is missing"),
            _ if !self.container.bytes().all(named) => Some("no bucket has such a name"),
            _ if endpoint.is_empty() => Some("endpoint= is missing"),
            _ if endpoint.starts_with("https://") => Some(
                "https:// is not part of this version: name an http:// endpoint, or a proxy of your own",
            ),
            None | Some("") => Some("endpoint= is no http://host:port"),
            Some(place) if place.contains('/') && !place.ends_with('/') => {
                Some("endpoint= is a host and a port, without a path")
            }
            _ if self.climbs() => Some("the prefix must not hold `.` or `..`"),
            _ if part > object || !object.is_multiple_of(part.max(1)) => {
                Some("object_size is a multiple of part_size")
            }
            _ if !matches!(self.number("timeout"), Some(1..=3600)) => {
                Some("timeout is from 1 to 3600 seconds")
            }
            _ => None,
        }
    }

    fn check_sizes(&self) -> Result<(), EngineError> {
        let wrong = match self.scheme {
            "rados" | "s3" => wrong_object_size(self.size("object_size")),
            "radosstriper" if !matches!(self.text("calls"), "aio" | "threads") => {
                Some("calls must be aio or threads")
            }
            "smb" if !matches!(self.text("encrypt"), "yes" | "no") => {
                Some("encrypt must be yes or no")
            }
            "root" if !matches!(self.number("streams"), Some(1..=16)) => {
                Some("streams is from 1 to 16")
            }
            "root" if !matches!(self.number("readv"), Some(1..=1024)) => {
                Some("readv is from 1 to 1024")
            }
            "root" => wrong_timeout(self.number("timeout"))
                .or_else(|| wrong_timeout(self.number("connect_timeout"))),
            "smb" => wrong_timeout(self.number("timeout")),
            "radosstriper" => wrong_stripes(
                self.size("stripe_unit"),
                u64::from(self.number("stripe_count").unwrap_or_default()),
                self.size("object_size"),
            ),
            _ => None,
        };
        match wrong {
            Some(words) => Err(EngineError::Job(format!("{}: {words}", self.url))),
            None => Ok(()),
        }
    }
}

fn wrong_object_size(bytes: u64) -> Option<&'static str> {
    let right = (4096..=1 << 30).contains(&bytes) && bytes.is_multiple_of(4096);
    (!right).then_some("object_size must be a multiple of 4K, from 4K to 1G")
}

fn wrong_timeout(seconds: Option<u32>) -> Option<&'static str> {
    let right = matches!(seconds, Some(1..=3600));
    (!right).then_some("timeout is from 1 to 3600 seconds")
}

/// What libradosstriper demands of a layout (file_layout_t::is_valid of Ceph).
fn wrong_stripes(unit: u64, count: u64, object: u64) -> Option<&'static str> {
    if !(65536..=1 << 30).contains(&unit) || !unit.is_multiple_of(65536) {
        Some("stripe_unit must be a multiple of 64K, from 64K to 1G")
    } else if !(unit..=1 << 30).contains(&object) || !object.is_multiple_of(unit) {
        Some("object_size must be a multiple of stripe_unit, up to 1G")
    } else if !(1..=1024).contains(&count) {
        Some("stripe_count must be from 1 to 1024")
    } else {
        None
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
            ("s3://b?endpoint=http://key:secret@h", "profile="),
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
        let words = refusal("smb://ann:secret\t@host/share");
        assert!(words.contains("no place"), "{words}");
        assert!(!words.contains("secret"), "{words}");
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
