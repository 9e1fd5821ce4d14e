//! The ways to reach storage without a mount: one table, from which options are checked, listed and explained.

use serde::Serialize;

use crate::job::EngineName;
use crate::metadata::Operation;
use crate::sys::libcephfs::Libcephfs;
use crate::sys::libnfs::Libnfs;
use crate::sys::librados::Librados;
use crate::sys::libradosstriper::Libradosstriper;
use crate::sys::libsmbclient::Libsmbclient;
use crate::sys::xrootd::Xrootd;

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

/// One way to reach storage without a mount.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Scheme {
    pub name: &'static str,
    #[serde(skip)]
    pub engine: EngineName,
    pub example: &'static str,
    pub words: &'static str,
    /// Debian's package with its library.
    pub package: &'static str,
    pub choices: &'static [Choice],
    /// What a metadata job can do there.
    pub operations: &'static [Operation],
}

const CONF: Choice = Choice {
    name: "conf",
    kind: Kind::Text,
    default: "",
    words: "Ceph's configuration file; empty: CEPH_CONF, or /etc/ceph/ceph.conf",
};
const USER: Choice = Choice {
    name: "user",
    kind: Kind::Text,
    default: "admin",
    words: "the part of the Ceph user's name behind `client.`",
};
const KEYRING: Choice = Choice {
    name: "keyring",
    kind: Kind::Text,
    default: "",
    words: "the file with the user's key; empty: what the configuration says",
};

const TIMEOUT: Choice = Choice {
    name: "timeout",
    kind: Kind::Number,
    default: "20",
    words: "seconds that a request waits for its answer",
};

impl Scheme {
    /// Why this host cannot use it; `None` where its library is there.
    pub fn missing(&self) -> Option<String> {
        let found = match self.engine {
            EngineName::Rados => Librados::get().map(|_| ()),
            EngineName::Libcephfs => Libcephfs::get().map(|_| ()),
            EngineName::Xrootd => Xrootd::get().map(|_| ()),
            EngineName::Libsmbclient => Libsmbclient::get().map(|_| ()),
            EngineName::Radosstriper => Librados::get().and(Libradosstriper::get().map(|_| ())),
            EngineName::Libnfs => Libnfs::get().map(|_| ()),
            _ => Ok(()),
        };
        found
            .err()
            .map(|missing| format!("{}; {}", missing.words, missing.remedy))
    }
}

/// All schemes.
pub const SCHEMES: &[Scheme] = &[
    Scheme {
        name: "rados",
        engine: EngineName::Rados,
        example: "rados://pool/namespace?object_size=4M&user=bench",
        words: "objects of a Ceph pool through librados, asynchronous: no file system, no cache",
        package: "librados2",
        choices: &[
            CONF,
            USER,
            KEYRING,
            Choice {
                name: "object_size",
                kind: Kind::Size,
                default: "4M",
                words: "a file of the job is cut into objects of this size",
            },
        ],
        operations: &[Operation::FirstByte],
    },
    Scheme {
        name: "radosstriper",
        engine: EngineName::Radosstriper,
        example: "radosstriper://pool?stripe_unit=1M&stripe_count=4&object_size=4M&user=bench",
        words: "files striped over a Ceph pool's objects through libradosstriper, as XRootD's Ceph plug-in keeps them",
        package: "libradosstriper1",
        choices: &[
            CONF,
            USER,
            KEYRING,
            Choice {
                name: "stripe_unit",
                kind: Kind::Size,
                default: "4M",
                words: "bytes that go to one object before the next one's turn, a multiple of 64K",
            },
            Choice {
                name: "stripe_count",
                kind: Kind::Number,
                default: "1",
                words: "objects that a file is spread over at a time",
            },
            Choice {
                name: "object_size",
                kind: Kind::Size,
                default: "4M",
                words: "an object's size, a multiple of stripe_unit",
            },
            Choice {
                name: "calls",
                kind: Kind::Text,
                default: "aio",
                words: "aio: the library's asynchronous calls; threads: its blocking ones, a thread for each in flight",
            },
        ],
        operations: &[Operation::FirstByte],
    },
    Scheme {
        name: "cephfs",
        engine: EngineName::Libcephfs,
        example: "cephfs:///projects?user=bench&fs=cephfs",
        words: "CephFS through libcephfs, without the kernel: as many threads as operations in flight",
        package: "libcephfs2",
        choices: &[
            CONF,
            USER,
            KEYRING,
            Choice {
                name: "fs",
                kind: Kind::Text,
                default: "",
                words: "the file system's name; empty: the cluster's default",
            },
        ],
        operations: Operation::ALL,
    },
    Scheme {
        name: "smb",
        engine: EngineName::Libsmbclient,
        example: "smb://user@host:445/share/directory?credentials=/etc/smb-credentials",
        words: "a share of an SMB server through libsmbclient: a connection and a thread for each operation in flight",
        package: "libsmbclient",
        choices: &[
            Choice {
                name: "credentials",
                kind: Kind::Text,
                default: "",
                words: "a file with username=, password= and domain= lines; empty: LEADLINE_SMB_PASSWORD has the password",
            },
            Choice {
                name: "domain",
                kind: Kind::Text,
                default: "",
                words: "the user's domain or workgroup",
            },
            Choice {
                name: "protocol",
                kind: Kind::Text,
                default: "",
                words: "the highest dialect, for example SMB2_10 or SMB3_11; empty: the library's highest",
            },
            Choice {
                name: "encrypt",
                kind: Kind::Text,
                default: "no",
                words: "yes: nothing goes over the wire in clear",
            },
            TIMEOUT,
            Choice {
                name: "smb_conf",
                kind: Kind::Text,
                default: "",
                words: "a smb.conf to follow; empty: none is read",
            },
        ],
        operations: Operation::ALL,
    },
    Scheme {
        name: "root",
        engine: EngineName::Xrootd,
        example: "root://host:1094//directory?timeout=60",
        words: "files of an XRootD server through its own client, asynchronous, with vector reads",
        package: "libxrdcl3",
        choices: &[
            Choice {
                name: "timeout",
                kind: Kind::Number,
                default: "60",
                words: "seconds that a request waits for its answer",
            },
            Choice {
                name: "connect_timeout",
                kind: Kind::Number,
                default: "10",
                words: "seconds that a connection may take",
            },
            Choice {
                name: "streams",
                kind: Kind::Number,
                default: "1",
                words: "TCP connections to the server, from 1 to 16",
            },
            Choice {
                name: "readv",
                kind: Kind::Number,
                default: "1",
                words: "reads handed over together that go as one vector read; 1: none do, 1024 at most",
            },
        ],
        operations: Operation::ALL,
    },
    Scheme {
        name: "nfs",
        engine: EngineName::Libnfs,
        example: "nfs://server:2049/export/directory?version=4",
        words: "an NFS export through libnfs, asynchronous, without the kernel and its cache",
        package: "libnfs13",
        choices: NFS,
        operations: Operation::ALL,
    },
    Scheme {
        name: "s3",
        engine: EngineName::S3,
        example: "s3://bucket/prefix?endpoint=http://host:7480&object_size=4M",
        words: "objects of an S3 bucket by HTTP, asynchronous: PUT, multi-part upload, ranged GET",
        package: "",
        choices: S3,
        operations: &[
            Operation::Create,
            Operation::Stat,
            Operation::Readdir,
            Operation::Unlink,
            Operation::FirstByte,
        ],
    },
];

const S3: &[Choice] = &[
    Choice {
        name: "endpoint",
        kind: Kind::Text,
        default: "",
        words: "the service, http://host:port; the bucket follows in the path",
    },
    Choice {
        name: "region",
        kind: Kind::Text,
        default: "us-east-1",
        words: "the region that a signature names",
    },
    Choice {
        name: "profile",
        kind: Kind::Text,
        default: "",
        words: "of AWS's credentials file; empty: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the default one",
    },
    Choice {
        name: "object_size",
        kind: Kind::Size,
        default: "4M",
        words: "a file of the job is cut into objects of this size, which are written whole",
    },
    Choice {
        name: "part_size",
        kind: Kind::Size,
        default: "",
        words: "an object that is longer is uploaded in parts of this size; empty: in one",
    },
    Choice {
        name: "timeout",
        kind: Kind::Number,
        default: "60",
        words: "seconds after which a request without an answer is an error",
    },
];

const NFS: &[Choice] = &[
    Choice {
        name: "version",
        kind: Kind::Number,
        default: "4",
        words: "of the protocol: 4, or 3",
    },
    Choice {
        name: "uid",
        kind: Kind::Number,
        default: "",
        words: "the user's number that the server is told; empty: this process's",
    },
    Choice {
        name: "gid",
        kind: Kind::Number,
        default: "",
        words: "the group's number that the server is told; empty: this process's",
    },
    Choice {
        name: "nfsport",
        kind: Kind::Number,
        default: "",
        words: "the server's port, as behind its name; empty: 2049 (version 4), asked for (version 3)",
    },
    Choice {
        name: "mountport",
        kind: Kind::Number,
        default: "",
        words: "the port of the server's mount daemon (version 3); empty: asked for",
    },
    Choice {
        name: "timeout",
        kind: Kind::Number,
        default: "60",
        words: "seconds after which a request without an answer is an error",
    },
];
