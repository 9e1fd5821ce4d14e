//! What leadline moves data through: one folder a scheme, one line in the table. All that anybody asks about a scheme
//! or its engines is a field here; nothing else in the program knows one by its name.

mod cephfs;
mod engine_name;
mod local;
mod location;
mod nfs;
mod null;
mod options;
mod password;
mod rados;
mod radosstriper;
mod root;
mod s3;
mod smb;

use std::sync::Arc;

use serde::Serialize;

use crate::io::{Blocking, Queueing};
use crate::metadata::Operation;
use crate::sys::library::Missing;
use crate::trial::context::Context;
use crate::volume::{Outcome, Volume};
use crate::worker::{self, Worker};
pub use engine_name::EngineName;
pub use local::{Local, LocalNames};
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
    /// What a thread does with it from the start of a trial to its end.
    #[serde(skip)]
    pub run: fn(&Context, u32),
    /// Why this host cannot use it, beside what its scheme lacks.
    #[serde(skip)]
    pub unavailable: fn() -> Option<String>,
}

impl Engine {
    const fn new(name: &'static str, words: &'static str, run: fn(&Context, u32)) -> Self {
        Self {
            name,
            words,
            blocking: false,
            moves_data: true,
            direct: true,
            submission_thread: false,
            run,
            unavailable: || None,
        }
    }
}

/// Runs a thread with an engine that has several operations in flight.
fn queued<E: Queueing>(context: &Context, thread: u32) {
    worker::run::<E>(context, thread, Worker::run_queued);
}

/// Runs a thread with an engine that has one call at a time.
fn blocking<E: Blocking>(context: &Context, thread: u32) {
    worker::run::<E>(context, thread, Worker::run_blocking);
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
    /// False: its library has no call that syncs a file.
    pub syncs: bool,
    /// Objects of `object_size` are written whole: a part of one cannot change.
    pub whole_objects: bool,
    pub reaches: Option<Reaches>,
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
            syncs: true,
            whole_objects: false,
            reaches: None,
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
    fn the_example_of_every_scheme_is_a_url_that_it_reads() {
        for scheme in located() {
            let found = Location::parse(scheme.example).unwrap();
            assert_eq!(found.described().name, scheme.name);
            assert_eq!(scheme.engines.len(), 1);
            assert!(!(scheme.describe)(&found).is_empty(), "{}", scheme.name);
        }
    }
}
