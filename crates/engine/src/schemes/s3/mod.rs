//! `s3://`: objects of a bucket over HTTP.

pub mod connection;
mod store;
mod volume;

use std::sync::Arc;

use super::options::{choices, climbs, first, is_timeout, wrong_object_size};
use super::{Choice, Engine, Held, Location, Memory, Scheme, Word, Wrong};
use crate::volume::names::Operation;
pub use connection::Connection;
pub use store::{Problem, Store};
pub use volume::store;

const WORDS: &str =
    "objects of an S3 bucket by HTTP, asynchronous: PUT, multi-part upload, ranged GET";

pub static SCHEME: Scheme = Scheme {
    example: "s3://bucket/prefix?endpoint=http://host:7480&object_size=4M",
    choices: CHOICES,
    operations: &[
        Operation::Create,
        Operation::Stat,
        Operation::Readdir,
        Operation::Unlink,
        Operation::FirstByte,
    ],
    whole_objects: true,
    ack_means: "stored by the service as a whole object",
    check: |location| {
        let secret = "endpoint= holds an @: credentials belong into the environment or a profile=";
        first([
            location
                .text("endpoint")
                .contains('@')
                .then_some(Wrong::Secret(secret)),
            wrong_with(location).map(Wrong::Form),
            wrong_object_size(location.size("object_size")),
        ])
    },
    describe: |location| {
        let (endpoint, bucket) = (location.text("endpoint"), &location.container);
        let size = Word::Bytes(location.size("object_size"));
        vec![
            format!("S3 bucket {bucket} of {endpoint}, objects of ").into(),
            size,
        ]
    },
    server,
    connect: Some(|location| Ok(Arc::new(volume::Bucket::connect(location)?))),
    ..Scheme::new(
        "s3",
        WORDS,
        &[Engine {
            memory: MEMORY,
            ..Engine::new("s3", WORDS)
        }],
    )
};

const CHOICES: &[Choice] = choices! {
    text "endpoint" = "": "the service, http://host:port; the bucket follows in the path";
    text "region" = "us-east-1": "the region that a signature names";
    text "profile" = "":
        "of AWS's credentials file; empty: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the default one";
    size "object_size" = "4M": "a file of the job is cut into objects of this size, which are written whole";
    size "part_size" = "": "an object that is longer is uploaded in parts of this size; empty: in one";
    number "timeout" = "60": "seconds after which a request without an answer is an error";
};

/// Bytes of a part of an object; those of an object where it is not cut.
fn part_bytes(location: &Location) -> u64 {
    match location.text("part_size") {
        "" => location.size("object_size"),
        _ => location.size("part_size"),
    }
}

fn server(location: &Location) -> Option<String> {
    let place = location.text("endpoint").strip_prefix("http://")?;
    let place = place.split('/').next()?;
    let port_at = place.rfind(':').filter(|at| !place[*at..].contains(']'));
    Some(place[..port_at.unwrap_or(place.len())].to_owned())
}

fn wrong_with(location: &Location) -> Option<&'static str> {
    let endpoint = location.text("endpoint");
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let (object, part) = (location.size("object_size"), part_bytes(location));
    match endpoint.strip_prefix("http://") {
        _ if location.container.is_empty() => Some("the bucket is missing"),
        _ if !location.container.bytes().all(named) => Some("no bucket has such a name"),
        _ if endpoint.is_empty() => Some("endpoint= is missing"),
        _ if endpoint.starts_with("https://") => Some(
            "https:// is not part of this version: name an http:// endpoint, or a proxy of your own",
        ),
        None | Some("") => Some("endpoint= is no http://host:port"),
        Some(place) if place.contains('/') && !place.ends_with('/') => {
            Some("endpoint= is a host and a port, without a path")
        }
        _ if climbs(location) => Some("the prefix must not hold `.` or `..`"),
        _ if part > object || !object.is_multiple_of(part.max(1)) => {
            Some("object_size is a multiple of part_size")
        }
        _ if !is_timeout(location.number("timeout")) => Some("timeout is from 1 to 3600 seconds"),
        _ => None,
    }
}

/// An object is copied as it is sent, and may be as large as a request.
const MEMORY: Memory = Memory {
    write: Held::COPIED,
    ..Memory::OWN_BUFFERS
};
