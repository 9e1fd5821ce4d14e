//! `cephfs://`: CephFS without the kernel.

mod volume;

use std::sync::Arc;

use super::options::{CONF, KEYRING, USER, first, wrong_climb};
use super::{Choice, Engine, Held, Memory, Reaches, Scheme, Storage, Word, Wrong};
use crate::sys::ceph::libcephfs::Libcephfs;
use crate::volume::names::Operation;

const WORDS: &str =
    "CephFS through libcephfs, without the kernel: as many threads as operations in flight";

pub static SCHEME: Scheme = Scheme {
    example: "cephfs:///projects?user=bench&fs=cephfs",
    package: "libcephfs2",
    choices: &[
        CONF,
        USER,
        KEYRING,
        Choice::text(
            "fs",
            "",
            "the file system's name; empty: the cluster's default",
        ),
    ],
    operations: Operation::ALL,
    storage: Storage::Cluster,
    ack_means: "in the cache of libcephfs in this process, and on OSDs once it is synced or written back",
    reaches: Some(Reaches {
        what: "file_system",
        erasure: true,
        namespaces: false,
    }),
    check: |location| {
        let three = "a path of the file system follows, with three slashes";
        first([
            (!location.container.is_empty()).then_some(Wrong::Form(three)),
            wrong_climb(location),
        ])
    },
    describe: |location| {
        let name = location.text("fs");
        let mut words = vec!["CephFS through libcephfs".into()];
        if !name.is_empty() {
            words.push(format!(", file system {name}").into());
        }
        words.push(Word::Pool);
        words
    },
    missing: || Libcephfs::get().err(),
    connect: Some(|location| Ok(Arc::new(volume::Mount::connect(location)?))),
    ..Scheme::new(
        "cephfs",
        WORDS,
        &[Engine {
            memory: MEMORY,
            ..Engine::new("libcephfs", WORDS)
        }],
    )
};

/// Each call copies what it is handed, into a cache of the client's own (`client_oc_size`, 200 MiB).
const MEMORY: Memory = Memory {
    read: Held::COPIED,
    write: Held::COPIED,
    stream_bytes: 256 << 20,
};
