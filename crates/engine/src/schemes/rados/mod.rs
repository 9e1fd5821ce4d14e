//! `rados://`: objects of a Ceph pool.

mod volume;

use std::sync::Arc;

use super::options::{CONF, KEYRING, USER, first, wrong_object_size};
use super::{Choice, Engine, Held, Location, Memory, Reaches, Scheme, Storage, Word, Wrong};
use crate::sys::ceph::librados::Librados;
use crate::volume::names::Operation;
pub use volume::{Pool, object_name};

const WORDS: &str =
    "objects of a Ceph pool through librados, asynchronous: no file system, no cache";

pub static SCHEME: Scheme = Scheme {
    example: "rados://pool/namespace?object_size=4M&user=bench",
    package: "librados2",
    choices: &[
        CONF,
        USER,
        KEYRING,
        Choice::size(
            "object_size",
            "4M",
            "a file of the job is cut into objects of this size",
        ),
    ],
    operations: &[Operation::FirstByte],
    storage: Storage::Cluster,
    keeps: "objects",
    ack_means: "on the stores of every OSD of its placement group: all replicas, or all shards",
    reaches: Some(Reaches {
        what: "pool",
        erasure: true,
        namespaces: true,
    }),
    check: |location| {
        first([
            wrong_pool(location),
            wrong_object_size(location.size("object_size")),
        ])
    },
    describe: |location| {
        let mut words = pool_words("RADOS through librados", location);
        words.extend([
            ", objects of ".into(),
            Word::Bytes(location.size("object_size")),
        ]);
        words
    },
    missing: || Librados::get().err(),
    connect: Some(|location| Ok(Arc::new(Pool::connect(location)?))),
    ..Scheme::new(
        "rados",
        WORDS,
        &[Engine {
            memory: MEMORY,
            ..Engine::new("rados", WORDS)
        }],
    )
};

/// librados copies what is written, so that one buffer is enough, and lets no more than `objecter_inflight_op_bytes` (100
/// MiB) be in flight of each connection; what is read comes through buffers of its own.
const MEMORY: Memory = Memory {
    read: Held {
        copies: 1.0,
        copies_max_bytes: Some(IN_FLIGHT_BYTES),
        ..Held::BUFFERS
    },
    write: Held {
        request: 0.0,
        stream: 1.0,
        copies: 1.0,
        copies_max_bytes: Some(IN_FLIGHT_BYTES),
    },
    stream_bytes: 32 << 20,
};
const IN_FLIGHT_BYTES: u64 = 112 << 20;

/// What is wrong with the pool and the namespace of a URL.
pub fn wrong_pool(location: &Location) -> Option<Wrong> {
    if location.container.is_empty() {
        Some(Wrong::Form("the pool is missing"))
    } else if location.path.contains('/') {
        Some(Wrong::Form("a namespace has no `/` in it"))
    } else {
        None
    }
}

/// The library, the pool and the namespace.
pub fn pool_words(library: &str, location: &Location) -> Vec<Word> {
    let mut words = vec![library.into(), Word::Pool];
    if !location.path.is_empty() {
        words.push(format!(", namespace {}", location.path).into());
    }
    words
}
