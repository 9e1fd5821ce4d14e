//! S3 as far as leadline needs it: objects, their parts, ranges and lists. The signing is `rusty_s3`'s, HTTP is
//! `hyper`'s. Asynchronous, on whatever runtime of one thread its caller has.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use rusty_s3::{Bucket, Method, UrlStyle, signing};

use super::part_bytes;
use crate::schemes::Location;

/// How long a signature is good for: longer than any request takes.
const EXPIRES_S: u64 = 3600;

/// What went wrong: the system's nearest errno, and the service's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub errno: i32,
    pub words: String,
}

impl Problem {
    pub fn new(errno: i32, words: impl Into<String>) -> Self {
        Self {
            errno,
            words: words.into(),
        }
    }
}

pub type Outcome<T> = Result<T, Problem>;

/// A bucket of a service, and whose it is. The credentials are in nothing that is printed.
pub struct Store {
    bucket: Bucket,
    credentials: Credentials,
    pub host: String,
    pub port: u16,
    /// What stands before every key, with its `/`.
    pub prefix: String,
    pub object_bytes: u64,
    pub part_bytes: u64,
    pub timeout: Duration,
}

impl Store {
    /// The bucket of a location, with the credentials that are found. Touches the network not yet.
    pub fn new(location: &Location) -> Outcome<Self> {
        let wrong = |words: &str| Problem::new(libc::EINVAL, words);
        let endpoint =
            url::Url::parse(location.text("endpoint")).map_err(|_| wrong("endpoint= is no URL"))?;
        let host = endpoint
            .host_str()
            .ok_or_else(|| wrong("endpoint= has no host"))?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let port = endpoint.port_or_known_default().unwrap_or(80);
        let credentials = Credentials::find(location.text("profile"))?;
        let (name, region) = (
            location.container.clone(),
            location.text("region").to_owned(),
        );
        let bucket = Bucket::new(endpoint, UrlStyle::Path, name, region)
            .map_err(|_| wrong("endpoint= or the bucket's name cannot be used"))?;
        let prefix = match location.path.as_str() {
            "" => String::new(),
            path => format!("{path}/"),
        };
        Ok(Self {
            bucket,
            credentials,
            host,
            port,
            prefix,
            object_bytes: location.size("object_size"),
            part_bytes: part_bytes(location),
            timeout: Duration::from_secs(u64::from(location.number("timeout").unwrap_or(60))),
        })
    }

    /// The path and query of a request, signed; `query` is sorted by name. The payload is not part of the signature.
    pub fn signed(&self, method: Method, key: &str, query: &[(&str, &str)]) -> Outcome<String> {
        // A URL's `..` leads to another key.
        if key.split('/').any(|part| [".", ".."].contains(&part)) {
            let words = format!("the key {key:?} cannot be written as a URL");
            return Err(Problem::new(libc::EINVAL, words));
        }
        let url = self
            .bucket
            .object_url(key)
            .map_err(|_| Problem::new(libc::EINVAL, "the key cannot be written as a URL"))?;
        let signed = signing::sign(
            &Timestamp::now(),
            method,
            url,
            &self.credentials.key,
            &self.credentials.secret,
            self.credentials.token.as_deref(),
            self.bucket.region(),
            EXPIRES_S,
            query.iter().copied(),
            std::iter::empty(),
        );
        let query = signed.query().unwrap_or_default();
        Ok(format!("{}?{query}", signed.path()))
    }

    /// The key of a volume's path.
    pub fn key(&self, path: &str) -> String {
        format!("{}{}", self.prefix, path.trim_start_matches('/'))
    }

    /// The key of the object that holds `offset` of a file.
    pub fn object_key(&self, file: &str, offset: u64) -> String {
        let number = offset / self.object_bytes;
        format!("{}.{number:012x}", self.key(file))
    }
}

/// The text of the first element `name`.
pub fn first(text: &str, name: &str) -> Option<String> {
    elements(text, name).next().map(unescaped)
}

/// The inside of every element `name`, which does not hold another of its name.
pub fn elements<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (begin, end) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = text;
    std::iter::from_fn(move || {
        let from = rest.find(&begin)? + begin.len();
        let length = rest[from..].find(&end)?;
        let inside = &rest[from..from + length];
        rest = &rest[from + length + end.len()..];
        Some(inside)
    })
}

fn unescaped(text: &str) -> String {
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#34;", "\""),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Text as the inside of an element.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Who asks. Has no `Debug`, so that it cannot be printed by mistake.
pub struct Credentials {
    pub key: String,
    pub secret: String,
    pub token: Option<String>,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Credentials {
    /// Those of `profile` where one is named; else of the environment, else of the file's default profile.
    pub fn find(profile: &str) -> Outcome<Self> {
        if profile.is_empty()
            && let (Some(key), Some(secret)) = (
                variable("AWS_ACCESS_KEY_ID"),
                variable("AWS_SECRET_ACCESS_KEY"),
            )
        {
            let token = variable("AWS_SESSION_TOKEN");
            return Ok(Self { key, secret, token });
        }
        let named = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let wanted = if profile.is_empty() {
            named.as_str()
        } else {
            profile
        };
        let path = variable("AWS_SHARED_CREDENTIALS_FILE")
            .map(PathBuf::from)
            .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".aws/credentials")));
        let text = path
            .as_ref()
            .and_then(|path| std::fs::read_to_string(path).ok())
            .unwrap_or_default();
        Self::of_profile(&text, wanted).ok_or_else(|| {
            let file = path.map_or_else(|| "no file".to_owned(), |path| path.display().to_string());
            let words = format!(
                "no credentials: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are set, nor has {file} a \
                 profile {wanted} with both"
            );
            Problem::new(libc::EACCES, words)
        })
    }

    /// One profile of a file of `[name]` and `key = value`.
    fn of_profile(text: &str, wanted: &str) -> Option<Self> {
        let (mut here, mut key, mut secret, mut token) = (false, None, None, None);
        for line in text.lines().map(str::trim) {
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
            {
                here = name.trim() == wanted;
            } else if let (true, Some((name, value))) = (here, line.split_once('=')) {
                let value = Some(value.trim().to_owned());
                match name.trim() {
                    "aws_access_key_id" => key = value,
                    "aws_secret_access_key" => secret = value,
                    "aws_session_token" => token = value,
                    _ => {}
                }
            }
        }
        Some(Self {
            key: key?,
            secret: secret?,
            token,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_in_their_order_and_unescaped() {
        let text =
            "<L><Contents><Key>a&amp;b</Key></Contents><Contents><Key>c</Key></Contents></L>";
        let keys: Vec<_> = elements(text, "Contents")
            .filter_map(|part| first(part, "Key"))
            .collect();
        assert_eq!(keys, ["a&b", "c"]);
    }

    #[test]
    fn what_is_no_xml_has_no_elements() {
        assert_eq!(first("<Key>open", "Key"), None);
        assert_eq!(first("nonsense", "Key"), None);
    }

    const FILE: &str = "[default]\naws_access_key_id = A\naws_secret_access_key = B=C\n\n[half]\n\
                        aws_access_key_id=D\n[whole]\naws_access_key_id=E\naws_secret_access_key=F\naws_session_token=G";

    #[test]
    fn a_profile_is_read_from_its_section_alone() {
        let found = Credentials::of_profile(FILE, "whole").unwrap();
        assert_eq!((found.key.as_str(), found.secret.as_str()), ("E", "F"));
        assert_eq!(found.token.as_deref(), Some("G"));
        assert_eq!(
            Credentials::of_profile(FILE, "default").unwrap().secret,
            "B=C"
        );
    }

    #[test]
    fn a_profile_without_both_is_none() {
        assert!(Credentials::of_profile(FILE, "half").is_none());
        assert!(Credentials::of_profile(FILE, "other").is_none());
    }
}
