//! Where leadline moves data: one file a scheme, one line in the table. All that anybody asks about a scheme or its
//! engines is a field here; nothing else in the program knows one by its name. What its engines do is in `engines`.

mod cephfs;
mod local;
mod location;
pub(crate) mod nfs;
mod null;
mod options;
mod password;
pub(crate) mod rados;
pub(crate) mod radosstriper;
pub(crate) mod root;
pub(crate) mod s3;
mod smb;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use serde::Serialize;

use crate::error::EngineError;
use crate::sync::lock;
use crate::sys::library::Missing;
use crate::volume::names::Operation;
use crate::volume::{Outcome, Volume, VolumeError};
pub use local::{Local, LocalNames};
pub use location::EngineName;
pub use location::Location;
pub use options::{Choice, Kind, Word, Wrong};
pub use password::without_password;

/// All schemes, in the order in which they are listed.
pub static SCHEMES: &[&Scheme] = &[
    &local::SCHEME,
    &null::SCHEME,
    &rados::SCHEME,
    &radosstriper::SCHEME,
    &cephfs::SCHEME,
    &smb::SCHEME,
    &root::SCHEME,
    &nfs::SCHEME,
    &s3::SCHEME,
];

/// What a process with a trial takes whatever it does, and a library once.
const PROCESS_BYTES: u64 = 64 << 20;

/// The connections of this process: one for all threads and trials that use one location.
static CONNECTED: Mutex<Option<HashMap<String, Weak<dyn Volume>>>> = Mutex::new(None);

/// The storage of `location`, connected once in this process while anybody uses it.
pub fn connect(location: &Location) -> Outcome<Arc<dyn Volume>> {
    let mut connected = lock(&CONNECTED);
    let table = connected.get_or_insert_default();
    if let Some(volume) = table.get(&location.url).and_then(Weak::upgrade) {
        return Ok(volume);
    }
    let Some(connect) = location.described().connect else {
        let remedy = format!("engine {} needs no connection", location.engine().name());
        return Err(VolumeError::new(libc::EINVAL, "connect", &location.url).with_remedy(&remedy));
    };
    let volume = connect(location)?;
    table.insert(location.url.clone(), Arc::downgrade(&volume));
    Ok(volume)
}

/// Where the data of a scheme come to lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// Nowhere.
    None,
    /// On a file system that the kernel mounts: which one is found out from the mount.
    Mount,
    /// On a server, whose devices are its own.
    Server,
    /// On a Ceph cluster, which counts its bytes itself.
    Cluster,
}

/// Connects to the storage of a URL.
pub type Connect = fn(&Location) -> Outcome<Arc<dyn Volume>>;

/// What of a cluster a scheme's URLs lead to, for whoever lists what can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub struct Reaches {
    /// `file_system`, or `pool`.
    pub what: &'static str,
    /// Also pools that are erasure-coded.
    pub erasure: bool,
    /// Has namespaces, in which a pool that is somebody's can be used.
    pub namespaces: bool,
}

/// How two servers of a scheme are told to copy a file between them, by the protocol's own programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ThirdParty {
    /// The program and its words; the URLs of the file and of the copy follow.
    pub copy: &'static [&'static str],
    /// A program that prints `Size: BYTES` of a file: `{server}` and `{path}` stand for those of its URL.
    pub size: &'static [&'static str],
    /// What it comes with.
    pub package: &'static str,
    /// What servers need for it, for who is refused.
    pub needs: &'static str,
}

/// One way to call the system or a library.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Engine {
    pub name: &'static str,
    pub words: &'static str,
    /// One call at a time, done when it returns.
    pub blocking: bool,
    /// False: buffers never meet storage.
    pub moves_data: bool,
    /// False: it goes through the page cache.
    pub direct: bool,
    /// A thread of the kernel can submit.
    pub submission_thread: bool,
    /// What it takes of memory.
    pub memory: Memory,
    /// Why this host cannot use it, beside what its scheme lacks.
    #[serde(skip)]
    pub unavailable: fn() -> Option<String>,
}

impl Engine {
    const fn new(name: &'static str, words: &'static str) -> Self {
        Self {
            name,
            words,
            blocking: false,
            moves_data: true,
            direct: true,
            submission_thread: false,
            memory: Memory::OWN_BUFFERS,
            unavailable: || None,
        }
    }
}

/// Memory that a transfer takes at most, as it was measured.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Memory {
    pub read: Held,
    pub write: Held,
    /// What each stream takes whatever its buffers: a connection, where the engine makes one for each.
    pub stream_bytes: u64,
}

/// Buffers of a request that a stream holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Held {
    /// For each in flight.
    pub request: f64,
    /// However many are.
    pub stream: f64,
    /// Copies that the library makes of each in flight, and bytes of them that it has at most.
    pub copies: f64,
    pub copies_max_bytes: Option<u64>,
}

impl Held {
    /// A buffer for each request, which the engine hands on as it is.
    const BUFFERS: Self = Self {
        request: 1.0,
        stream: 0.0,
        copies: 0.0,
        copies_max_bytes: None,
    };
    /// And a copy of each.
    const COPIED: Self = Self {
        copies: 1.0,
        ..Self::BUFFERS
    };

    /// Bytes of a stream with so many requests in flight.
    fn bytes(self, buffer: u64, in_flight: u32) -> u64 {
        let (buffer, in_flight) = (buffer as f64, f64::from(in_flight));
        let copies = (self.copies * in_flight * buffer) as u64;
        let copies = self
            .copies_max_bytes
            .map_or(copies, |most| copies.min(most));
        ((self.request * in_flight + self.stream) * buffer) as u64 + copies
    }
}

impl Memory {
    /// Nothing but the buffers of requests.
    const OWN_BUFFERS: Self = Self {
        read: Held::BUFFERS,
        write: Held::BUFFERS,
        stream_bytes: 1 << 20,
    };

    /// A copy of each request besides, both ways: of libraries that were not measured.
    const COPIED: Self = Self {
        read: Held::COPIED,
        write: Held::COPIED,
        stream_bytes: 32 << 20,
    };

    /// Bytes that streams take with so many requests of `buffer` in flight, some MiB for the process itself included.
    pub fn bytes(self, (writers, readers): (u32, u32), buffer: u64, in_flight: u32) -> u64 {
        let each = |held: Held| held.bytes(buffer, in_flight) + self.stream_bytes;
        let writing = u64::from(writers).saturating_mul(each(self.write));
        let reading = u64::from(readers).saturating_mul(each(self.read));
        writing
            .saturating_add(reading)
            .saturating_add(PROCESS_BYTES)
    }
}

/// One kind of target, as what it begins with says.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Scheme {
    /// What stands before `://`; `file` for paths, which have nothing there.
    pub name: &'static str,
    /// The engines that serve it. A URL has one.
    #[serde(skip)]
    pub engines: &'static [Engine],
    pub example: &'static str,
    pub words: &'static str,
    /// Debian's package with its library.
    pub package: &'static str,
    pub choices: &'static [Choice],
    /// What a metadata job can do there.
    pub operations: &'static [Operation],
    pub storage: Storage,
    /// What the data are there: files, or objects.
    pub keeps: &'static str,
    /// Where a write that was acknowledged is, in words that follow `acknowledged: `.
    pub ack_means: &'static str,
    /// The same with direct I/O, where that makes a difference.
    pub ack_means_direct: Option<&'static str>,
    /// False: its library has no call that syncs a file.
    pub syncs: bool,
    /// Objects of `object_size` are written whole: a part of one cannot change.
    pub whole_objects: bool,
    pub reaches: Option<Reaches>,
    /// `None`: its servers do not copy between each other.
    pub third_party: Option<ThirdParty>,
    /// What is wrong with a URL.
    #[serde(skip)]
    pub check: fn(&Location) -> Result<(), Wrong>,
    /// What a URL leads to, in one phrase.
    #[serde(skip)]
    pub describe: fn(&Location) -> Vec<Word>,
    /// The server that a URL names itself.
    #[serde(skip)]
    pub server: fn(&Location) -> Option<String>,
    /// The library that this host lacks.
    #[serde(skip)]
    pub missing: fn() -> Option<Missing>,
    /// Its storage, connected; `None` of a scheme whose targets need no connection, and have no URL but their own.
    #[serde(skip)]
    pub connect: Option<Connect>,
}

impl Scheme {
    /// A scheme of URLs, for each to say what is different.
    const fn new(name: &'static str, words: &'static str, engines: &'static [Engine]) -> Self {
        Self {
            name,
            engines,
            example: "",
            words,
            package: "",
            choices: &[],
            operations: &[],
            storage: Storage::Server,
            keeps: "files",
            ack_means: "",
            ack_means_direct: None,
            syncs: true,
            whole_objects: false,
            reaches: None,
            third_party: None,
            check: |_| Ok(()),
            describe: |_| Vec::new(),
            server: |_| None,
            missing: || None,
            connect: None,
        }
    }

    /// Why this host cannot use it; `None` where its library is there.
    pub fn missing(&self) -> Option<String> {
        (self.missing)().map(|missing| format!("{}; {}", missing.words, missing.remedy))
    }

    /// The engine of its URLs.
    pub fn engine(&'static self) -> EngineName {
        EngineName::of(self, &self.engines[0])
    }

    /// True where URLs are written for it, and read by `Location`.
    pub fn has_locations(&self) -> bool {
        self.connect.is_some()
    }
}

/// What a transfer by the engine of a name takes of memory.
pub fn memory_of(engine: &str) -> Result<Memory, EngineError> {
    let mut engines = SCHEMES.iter().flat_map(|scheme| scheme.engines);
    let found = engines.find(|one| one.name == engine);
    let words = || EngineError::Job(format!("engine: there is none called {engine:?}"));
    found.map(|found| found.memory).ok_or_else(words)
}

/// Where the data of an engine come to lie; `None` where there is none of that name.
pub fn storage_of(engine: &str) -> Option<Storage> {
    let has = |scheme: &&Scheme| scheme.engines.iter().any(|one| one.name == engine);
    let found = SCHEMES.iter().copied().find(has);
    found.map(|scheme| scheme.storage)
}

/// The schemes of URLs that lead to storage.
pub fn located() -> impl Iterator<Item = &'static Scheme> {
    SCHEMES
        .iter()
        .copied()
        .filter(|scheme| scheme.has_locations())
}

/// An engine as `leadline doctor` and the planner see it.
#[derive(Debug, Clone, Serialize)]
pub struct Capability {
    pub name: &'static str,
    pub blocking: bool,
    pub schemes: &'static [&'static str],
    pub available: bool,
    pub reason: Option<String>,
    pub words: &'static str,
}

/// All engines, and whether this host can run them.
pub fn capabilities() -> Vec<Capability> {
    let of = |scheme: &'static Scheme| {
        scheme.engines.iter().map(|engine| {
            let reason = scheme.missing().or_else(engine.unavailable);
            Capability {
                name: engine.name,
                blocking: engine.blocking,
                schemes: std::slice::from_ref(&scheme.name),
                available: reason.is_none(),
                reason,
                words: engine.words,
            }
        })
    };
    SCHEMES.iter().copied().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_one_scheme_and_one_engine() {
        let mut names: Vec<_> = SCHEMES.iter().map(|scheme| scheme.name).collect();
        let mut engines: Vec<_> = capabilities().iter().map(|engine| engine.name).collect();
        for list in [&mut names, &mut engines] {
            let count = list.len();
            list.sort_unstable();
            list.dedup();
            assert_eq!(list.len(), count);
        }
    }

    #[test]
    fn an_engine_has_the_storage_of_its_scheme() {
        assert_eq!(storage_of("psync"), Some(Storage::Mount));
        assert_eq!(storage_of("rados"), Some(Storage::Cluster));
        assert_eq!(storage_of("null"), Some(Storage::None));
        assert_eq!(storage_of("nonsense"), None);
    }

    #[test]
    fn the_example_of_every_scheme_is_a_url_that_it_reads() {
        for scheme in located() {
            let found = Location::parse(scheme.example).unwrap();
            assert_eq!(found.described().name, scheme.name);
            assert_eq!(scheme.engines.len(), 1);
            assert!(!(scheme.describe)(&found).is_empty(), "{}", scheme.name);
        }
    }

    #[test]
    fn every_scheme_says_what_an_acknowledgement_means() {
        for scheme in SCHEMES {
            assert!(!scheme.ack_means.is_empty(), "{}", scheme.name);
        }
    }
}
