//! S3 as far as leadline needs it: objects, their parts, ranges and lists. The signing is `rusty_s3`'s, HTTP is
//! `hyper`'s. Asynchronous, on whatever runtime of one thread its caller has.

use std::time::Duration;

use jiff::Timestamp;
use rusty_s3::{Bucket, Method, UrlStyle, signing};

use super::credentials::Credentials;
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
