//! `radosstriper://`: files striped over the objects of a Ceph pool.

mod volume;

use std::sync::Arc;

use super::options::{CONF, KEYRING, USER, first};
use super::rados::{pool_words, wrong_pool};
use super::{Choice, Engine, Held, Location, Memory, Reaches, Scheme, Storage, Wrong};
use crate::sys::ceph::librados::Librados;
use crate::sys::ceph::libradosstriper::Libradosstriper;
use crate::volume::names::Operation;
pub use volume::{StripedPool, striped_name};

const WORDS: &str = "files striped over a Ceph pool's objects through libradosstriper, as XRootD's Ceph plug-in keeps them";

pub static SCHEME: Scheme = Scheme {
    example: "radosstriper://pool?stripe_unit=1M&stripe_count=4&object_size=4M&user=bench",
    package: "libradosstriper1",
    choices: CHOICES,
    operations: &[Operation::FirstByte],
    storage: Storage::Cluster,
    keeps: "objects",
    ack_means: "on the stores of every OSD of its placement groups: all replicas",
    reaches: Some(Reaches {
        what: "pool",
        erasure: false,
        namespaces: false,
    }),
    check: |location| {
        let known = matches!(location.text("calls"), "aio" | "threads");
        first([
            wrong_pool(location),
            (!known).then_some(Wrong::Value("calls must be aio or threads")),
            wrong_stripes(location),
        ])
    },
    describe: |location| {
        let mut words = pool_words("RADOS through libradosstriper", location);
        words.push(format!(", {}", layout_words(location)).into());
        words
    },
    missing: || {
        Librados::get()
            .err()
            .or_else(|| Libradosstriper::get().err())
    },
    connect: Some(|location| Ok(Arc::new(volume::StripedPool::connect(location)?))),
    ..Scheme::new(
        "radosstriper",
        WORDS,
        &[Engine {
            memory: MEMORY,
            ..Engine::new("radosstriper", WORDS)
        }],
    )
};

/// The library copies what is written whole, and keeps it until the last piece has ended; what is read comes through
/// buffers of its own, in pieces. With `calls=threads` each thread has a buffer besides.
const MEMORY: Memory = Memory {
    read: Held {
        copies: 1.0,
        copies_max_bytes: Some(112 << 20),
        ..Held::BUFFERS
    },
    write: Held {
        request: 0.0,
        stream: 1.0,
        ..Held::COPIED
    },
    stream_bytes: 64 << 20,
};

const CHOICES: &[Choice] = &[
    CONF,
    USER,
    KEYRING,
    Choice::size(
        "stripe_unit",
        "4M",
        "bytes that go to one object before the next one's turn, a multiple of 64K",
    ),
    Choice::number(
        "stripe_count",
        "1",
        "objects that a file is spread over at a time",
    ),
    Choice::size(
        "object_size",
        "4M",
        "an object's size, a multiple of stripe_unit",
    ),
    Choice::text(
        "calls",
        "aio",
        "aio: the library's asynchronous calls; threads: its blocking ones, a thread for each in flight",
    ),
];

/// The layout in the URL's words.
pub fn layout_words(location: &Location) -> String {
    let word = |name: &str| format!("{name} {}", location.text(name));
    ["stripe_unit", "stripe_count", "object_size"]
        .map(word)
        .join(", ")
}

/// What libradosstriper demands of a layout (file_layout_t::is_valid of Ceph).
fn wrong_stripes(location: &Location) -> Option<Wrong> {
    let (unit, object) = (location.size("stripe_unit"), location.size("object_size"));
    let count = location.number("stripe_count").unwrap_or_default();
    if !(65536..=1 << 30).contains(&unit) || !unit.is_multiple_of(65536) {
        Some(Wrong::Value(
            "stripe_unit must be a multiple of 64K, from 64K to 1G",
        ))
    } else if !(unit..=1 << 30).contains(&object) || !object.is_multiple_of(unit) {
        Some(Wrong::Value(
            "object_size must be a multiple of stripe_unit, up to 1G",
        ))
    } else if !(1..=1024).contains(&count) {
        Some(Wrong::Value("stripe_count must be from 1 to 1024"))
    } else {
        None
    }
}
