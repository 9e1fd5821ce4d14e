//! `radosstriper://`: files striped over the objects of a Ceph pool.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::options::{CONF, KEYRING, USER, choices, first, wrong_value};
use super::rados::{pool_words, wrong_pool};
use super::{Choice, Engine, Held, Location, Memory, Reaches, Scheme, Storage, Wrong};
use crate::schemes::rados::Pool;
use crate::sys::ceph::librados::Librados;
use crate::sys::ceph::libradosstriper::{Libradosstriper, Striper, StriperRefusal, Stripes};
use crate::sys::file::OpenHow;
use crate::volume::names::{Names, Operation, WholePath};
use crate::volume::{Handle, Outcome, Space, Volume, VolumeError};

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
            wrong_value(!known, "calls must be aio or threads"),
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
    connect: Some(|location| Ok(Arc::new(StripedPool::connect(location)?))),
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

const CHOICES: &[Choice] = choices! {
    CONF, USER, KEYRING;
    size "stripe_unit" = "4M": "bytes that go to one object before the next one's turn, a multiple of 64K";
    number "stripe_count" = "1": "objects that a file is spread over at a time";
    size "object_size" = "4M": "an object's size, a multiple of stripe_unit";
    text "calls" = "aio":
        "aio: the library's asynchronous calls; threads: its blocking ones, a thread for each outstanding one";
};

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

/// The library's lock on the first object of a file, held around every operation.
const LOCK: &str = "striper.lock";

/// Keeps marks and lists apart from those of plain objects.
const LEAD: &str = "/";

/// A pool, and how new files are cut.
pub struct StripedPool {
    pool: Pool,
    striper: Arc<Striper>,
}

/// A file's name as the library takes it.
pub fn striped_name(path: &str) -> CString {
    CString::new(path).unwrap_or_default()
}

fn first_object(path: &str) -> CString {
    CString::new(format!("{path}.{:016x}", 0)).unwrap_or_default()
}

fn bytes_of(location: &Location, option: &str) -> u32 {
    u32::try_from(location.size(option)).unwrap_or(u32::MAX)
}

impl StripedPool {
    /// Connects, opens the pool and sets the layout of new files.
    pub fn connect(location: &Location) -> Outcome<Self> {
        let pool = Pool::connect_with(location, LEAD)?;
        let stripes = Stripes {
            unit_bytes: bytes_of(location, "stripe_unit"),
            count: location.number("stripe_count").unwrap_or(1),
            object_bytes: bytes_of(location, "object_size"),
        };
        let striper = Striper::new(pool.context(), stripes).map_err(|why| match why {
            StriperRefusal::Library(missing) => missing.into(),
            StriperRefusal::Errno(errno) => {
                let remedy = "check stripe_unit=, stripe_count= and object_size=";
                VolumeError::new(errno, "set the layout of", &location.url).with_remedy(remedy)
            }
        })?;
        Ok(Self {
            pool,
            striper: Arc::new(striper),
        })
    }

    /// For asynchronous I/O.
    pub fn striper(&self) -> &Arc<Striper> {
        &self.striper
    }

    /// librados's version.
    pub fn version(&self) -> String {
        self.pool.context().cluster().version()
    }

    /// Removes a file of ours. The library locks a file around each operation and has no end for such a lock: one
    /// that a killed process left would keep the file for ever, and is taken away.
    fn remove(&self, path: &str) -> Outcome<()> {
        let name = striped_name(path);
        let mut result = self.striper.remove(&name);
        if result == -i64::from(libc::EBUSY) {
            let lock = CString::new(LOCK).unwrap_or_default();
            let broken = self.pool.context().break_lock(&first_object(path), &lock);
            self.pool.done(broken, "break the lock of", path)?;
            result = self.striper.remove(&name);
        }
        if result == -i64::from(libc::ENOENT) {
            return Ok(());
        }
        self.pool.done(result, "remove", path)
    }
}

impl Volume for StripedPool {
    fn make_directory(&self, path: &str) -> Outcome<()> {
        self.pool.make_directory(path)
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Outcome<()> {
        self.pool.put(path, bytes)
    }

    fn get(&self, path: &str, limit: usize) -> Outcome<Option<Vec<u8>>> {
        self.pool.get(path, limit)
    }

    fn names_in(&self, directory: &str, limit: usize) -> Outcome<Vec<String>> {
        self.pool.names_in(directory, limit)
    }

    fn open(&self, path: &str, how: OpenHow, file_bytes: u64) -> Outcome<Arc<dyn Handle>> {
        if how.write {
            self.pool.note(path, file_bytes)?;
        }
        if how.fresh {
            self.remove(path)?;
        }
        Ok(Arc::new(Striped {
            striper: Arc::clone(&self.striper),
            name: striped_name(path),
        }))
    }

    fn space(&self) -> Outcome<Space> {
        self.pool.space()
    }

    fn remove_files(&self, directory: &str, prefix: &str, until: Instant) -> Outcome<bool> {
        self.pool
            .remove_listed(directory, prefix, until, |name, _| {
                self.remove(name).map(|()| 0)
            })
    }

    fn remove_directory(&self, directory: &str, mark: &str) -> Outcome<()> {
        self.pool.remove_directory(directory, mark)
    }

    fn names(&self) -> Outcome<Box<dyn Names>> {
        Ok(Box::new(StripedNames {
            striper: Arc::clone(&self.striper),
            path: WholePath::default(),
            file: CString::default(),
        }))
    }
}

/// A striped file, by synchronous calls.
struct Striped {
    striper: Arc<Striper>,
    name: CString,
}

impl Handle for Striped {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> i64 {
        self.striper.read(&self.name, buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> i64 {
        match self.striper.write(&self.name, buffer, offset) {
            0 => buffer.len() as i64,
            result => result,
        }
    }

    /// A write is acknowledged when all OSDs of its placement group have it on their stores.
    fn sync(&self, _data_only: bool) -> i64 {
        0
    }

    fn size(&self) -> i64 {
        match self.striper.size(&self.name) {
            missing if missing == -i64::from(libc::ENOENT) => 0,
            bytes => bytes,
        }
    }
}

/// One thread's place in a pool: the first block of striped files, which have neither directories nor attributes.
struct StripedNames {
    striper: Arc<Striper>,
    path: WholePath,
    file: CString,
}

impl Names for StripedNames {
    fn enter(&mut self, directory: &Path) -> i32 {
        let directory = striped_name(&directory.to_string_lossy());
        self.path.enter(&directory);
        0
    }

    /// Nothing is asked of the cluster: the library opens a file with each operation.
    fn open(&mut self, name: &CStr, _direct: bool) -> i32 {
        self.file = self.path.of(name).to_owned();
        0
    }

    fn read(&mut self, buffer: &mut [u8]) -> i32 {
        self.striper.read(&self.file, buffer, 0) as i32
    }

    fn close(&mut self) -> i32 {
        0
    }
}
