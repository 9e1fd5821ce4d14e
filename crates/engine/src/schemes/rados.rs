//! `rados://`: objects of a Ceph pool.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::options::{CONF, KEYRING, USER, choices, first, wrong_object_size};
use super::{Choice, Engine, Held, Location, Memory, Reaches, Scheme, Storage, Word, Wrong};
use crate::sys::ceph::librados::{Access, Cluster, Context, Librados};
use crate::sys::ceph::queue::{Action, Queue};
use crate::sys::file::OpenHow;
use crate::sys::library::Refusal;
use crate::volume::names::{Names, Operation, WholePath};
use crate::volume::{Handle, KEPT, Outcome, Space, Volume, VolumeError, is_absent, lies_in};

const WORDS: &str =
    "objects of a Ceph pool through librados, asynchronous: no file system, no cache";

pub static SCHEME: Scheme = Scheme {
    example: "rados://pool/namespace?object_size=4M&user=bench",
    package: "librados2",
    choices: choices! {
        CONF, USER, KEYRING;
        size "object_size" = "4M": "a file of the job is cut into objects of this size";
    },
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

/// The object with a line for every file: size of its objects, of the file, and its name.
const LIST: &str = ".leadline-files";
/// Twice what an OSD lets an object be (osd_max_object_size), if nobody raised it.
const LIST_BYTES_MAX: usize = 256 << 20;
/// How long a client looks for monitors.
const CONNECT_S: &str = "10";
/// Removals in flight.
const REMOVALS: u32 = 64;

/// A pool, and a namespace in it.
pub struct Pool {
    context: Arc<Context>,
    object_bytes: u64,
    shown: String,
    /// In front of the names of marks and lists: striped files keep theirs apart from those of plain objects.
    lead: &'static str,
}

/// The object that holds `offset`: the file's name, and the number of the piece in hexadecimal digits.
pub fn object_name(file: &str, offset: u64, object_bytes: u64) -> CString {
    let number = offset / object_bytes;
    CString::new(format!("{}.{number:012x}", file.trim_start_matches('/'))).unwrap_or_default()
}

/// How a location's user reaches the cluster.
pub fn access(location: &Location) -> Access {
    Access {
        name: format!("client.{}", location.text("user")),
        conf: location.text("conf").to_owned(),
        keyring: location.text("keyring").to_owned(),
        settings: vec![
            ("client_mount_timeout", CONNECT_S.to_owned()),
            ("rados_mon_op_timeout", CONNECT_S.to_owned()),
        ],
    }
}

/// What a refusal means to whoever wrote the URL.
pub fn refused(refusal: Refusal, location: &Location) -> VolumeError {
    let user = location.text("user");
    let (operation, errno, remedy) = match refusal {
        Refusal::Library(missing) => return missing.into(),
        Refusal::Step(operation, errno) => (operation, errno, remedy_for(errno, user)),
    };
    VolumeError::new(errno, operation, &location.url).with_remedy(&remedy)
}

fn remedy_for(errno: i32, user: &str) -> String {
    match errno {
        libc::ENOENT => "check conf= and keyring=: a file is not there".to_owned(),
        libc::EACCES | libc::EPERM => {
            format!("the cluster refuses client.{user}: check user= and keyring=")
        }
        libc::ETIMEDOUT => {
            format!("no monitor answered within {CONNECT_S} s: check conf=, and that they run")
        }
        libc::EINVAL => format!("check that client.{user} is a Ceph user, and its keyring"),
        _ => String::new(),
    }
}

impl Pool {
    /// Connects, and opens the pool.
    pub fn connect(location: &Location) -> Outcome<Self> {
        Self::connect_with(location, "")
    }

    /// The same with `lead` in front of the names of marks and lists.
    pub fn connect_with(location: &Location, lead: &'static str) -> Outcome<Self> {
        let cluster = Cluster::connect(&access(location)).map_err(|why| refused(why, location))?;
        let pool = &location.container;
        let context = Context::open(&Arc::new(cluster), pool, &location.path).map_err(|errno| {
            let remedy = match errno {
                libc::ENOENT => format!("there is no pool {pool}: `ceph osd pool ls` lists them"),
                _ => remedy_for(errno, location.text("user")),
            };
            VolumeError::new(errno, "open the pool", pool).with_remedy(&remedy)
        })?;
        Ok(Self {
            context: Arc::new(context),
            object_bytes: location.size("object_size"),
            shown: format!("{}://{pool}", location.scheme()),
            lead,
        })
    }

    /// For asynchronous I/O.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    fn plain(&self, path: &str) -> CString {
        let name = format!("{}{}", self.lead, path.trim_start_matches('/'));
        CString::new(name).unwrap_or_default()
    }

    /// Enters a file in the list of its directory, before it is made.
    pub fn note(&self, path: &str, file_bytes: u64) -> Outcome<()> {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let line = format!("{} {file_bytes} {path}\n", self.object_bytes);
        let list = self.plain(&format!("{directory}/{LIST}"));
        let result = self.context.append(&list, line.as_bytes());
        self.done(result, "note a file in", directory)
    }

    /// Replaces the list of a directory by what is left.
    pub fn relist(&self, directory: &str, kept: &[(String, u64)]) -> Outcome<()> {
        let list = format!("{directory}/{LIST}");
        self.put(&list, &lines(self.object_bytes, kept))
    }

    /// The files that were made in `directory`: name and number of objects, each once.
    pub fn listed(&self, directory: &str) -> Outcome<Vec<(String, u64)>> {
        let list = format!("{directory}/{LIST}");
        let bytes = self.get(&list, LIST_BYTES_MAX)?.unwrap_or_default();
        if bytes.len() == LIST_BYTES_MAX {
            return Err(self.failed(-i64::from(libc::EFBIG), "read all of", &list));
        }
        let text = String::from_utf8_lossy(&bytes);
        let mut files: Vec<(String, u64)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for line in text.lines() {
            let mut words = line.splitn(3, ' ');
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
            // A line that a full cluster cut short names a file that was never opened.
            let (Some(object_bytes), Some(file_bytes)) = (number(), number()) else {
                continue;
            };
            let Some(name) = words.next().filter(|name| lies_in(directory, name)) else {
                continue;
            };
            let objects = file_bytes.div_ceil(object_bytes.max(1));
            let place = *places.entry(name).or_insert(files.len());
            match files.get_mut(place) {
                Some((_, known)) => *known = objects.max(*known),
                None => files.push((name.to_owned(), objects)),
            }
        }
        Ok(files)
    }

    /// Removes the files of a list whose names begin with `prefix`, until time is over; true when more is left.
    /// `remove` says how many objects of a file are left. What is gone is not listed any more: to try it again would
    /// take the next call's time as well.
    pub fn remove_listed(
        &self,
        directory: &str,
        prefix: &str,
        until: Instant,
        remove: impl Fn(&str, u64) -> Outcome<u64>,
    ) -> Outcome<bool> {
        let begin = format!("{directory}/{prefix}");
        let (chosen, kept): (Vec<_>, Vec<_>) = self
            .listed(directory)?
            .into_iter()
            .partition(|(name, _)| name.starts_with(&begin));
        if chosen.is_empty() {
            return Ok(false);
        }
        let mut rest = Vec::new();
        for (name, objects) in chosen {
            let is_late = Instant::now() > until;
            let left = if is_late {
                objects
            } else {
                remove(&name, objects)?
            };
            if left > 0 || is_late {
                rest.push((name, left));
            }
        }
        let is_more = !rest.is_empty();
        self.relist(directory, &[rest, kept].concat())?;
        Ok(is_more)
    }

    /// Removes the first `objects` objects of a file, the last of them first; how many are left when time is over.
    fn remove_objects(&self, name: &str, objects: u64, until: Instant) -> Outcome<u64> {
        let failed = |errno: i32| self.failed(-i64::from(errno), "remove", name);
        let mut queue = Queue::new(Arc::<Context>::clone(&self.context), REMOVALS, 1, 1)
            .map_err(|error| failed(error.raw_os_error().unwrap_or(libc::ENOMEM)))?;
        let mut free: Vec<u32> = (0..REMOVALS).collect();
        let mut left = objects;
        let mut worst = 0;
        while left > 0 || free.len() < REMOVALS as usize {
            while let Some(slot) = free.pop_if(|_| left > 0) {
                left -= 1;
                let object = object_name(name, left, 1);
                let result = queue.start((slot, 0), Action::Remove, &object, (0, 0, 0));
                self.done(result, "remove", name)?;
            }
            queue.reap(Duration::from_millis(100), |slot, _, result| {
                free.push(slot);
                if result < 0 && result != -i64::from(libc::ENOENT) {
                    worst = result;
                }
            });
            self.done(worst, "remove", name)?;
            if Instant::now() > until {
                return Ok((left + u64::from(REMOVALS)).min(objects)); // those in flight may yet be there
            }
        }
        Ok(0)
    }
}

impl Volume for Pool {
    fn names(&self) -> Outcome<Box<dyn Names>> {
        Ok(Box::new(ObjectNames {
            context: Arc::clone(&self.context),
            path: WholePath::default(),
            object: CString::default(),
        }))
    }

    fn shown(&self, path: &str) -> String {
        format!("{}{path}", self.shown)
    }

    fn make_directory(&self, path: &str) -> Outcome<()> {
        // Objects have no directories; the list stands for it.
        let list = format!("{path}/{LIST}");
        if self.context.size(&self.plain(&list)) >= 0 {
            return Err(VolumeError::new(libc::EEXIST, "make the directory", path));
        }
        self.put(&list, b"")
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Outcome<()> {
        let result = self.context.write_full(&self.plain(path), bytes);
        self.done(result, "write", path)
    }

    fn get(&self, path: &str, limit: usize) -> Outcome<Option<Vec<u8>>> {
        let object = self.plain(path);
        let size = match self.context.size(&object) {
            missing if missing == -i64::from(libc::ENOENT) => return Ok(None),
            size => {
                self.done(size, "read", path)?;
                size as usize
            }
        };
        let mut bytes = vec![0; size.min(limit)];
        let found = self.context.read(&object, &mut bytes, 0);
        self.done(found, "read", path)?;
        bytes.truncate(found as usize);
        Ok(Some(bytes))
    }

    fn names_in(&self, directory: &str, limit: usize) -> Outcome<Vec<String>> {
        let mark = format!("{directory}/{KEPT}");
        let marked = self.get(&mark, 1)?.map(|_| KEPT.to_owned());
        let files = self.listed(directory)?.into_iter();
        // The list has whole paths.
        let files = files.map(|(path, _)| path[directory.len() + 1..].to_owned());
        let names: Vec<_> = marked.into_iter().chain(files).take(limit).collect();
        let list = self.plain(&format!("{directory}/{LIST}"));
        if names.is_empty() && self.context.size(&list) == -i64::from(libc::ENOENT) {
            return Err(is_absent(directory));
        }
        Ok(names)
    }

    fn open(&self, path: &str, how: OpenHow, file_bytes: u64) -> Outcome<Arc<dyn Handle>> {
        if how.write {
            self.note(path, file_bytes)?;
        }
        if how.fresh {
            let objects = file_bytes.div_ceil(self.object_bytes);
            let until = Instant::now() + Duration::from_secs(600);
            self.remove_objects(path, objects, until)?;
        }
        Ok(Arc::new(Pieces {
            context: Arc::clone(&self.context),
            name: path.to_owned(),
            object_bytes: self.object_bytes,
            file_bytes,
        }))
    }

    fn space(&self) -> Outcome<Space> {
        let found = self.context.cluster().stat();
        let found = found.map_err(|errno| {
            VolumeError::new(errno, "ask for the space of the cluster of", &self.shown)
        })?;
        Ok(Space {
            total_bytes: found.total_kib << 10,
            free_bytes: found.free_kib << 10,
        })
    }

    fn remove_files(&self, directory: &str, prefix: &str, until: Instant) -> Outcome<bool> {
        self.remove_listed(directory, prefix, until, |name, objects| {
            self.remove_objects(name, objects, until)
        })
    }

    fn remove_directory(&self, directory: &str, mark: &str) -> Outcome<()> {
        for name in [LIST, mark] {
            let path = format!("{directory}/{name}");
            self.removed(self.context.remove(&self.plain(&path)), &path)?;
        }
        Ok(())
    }
}

/// The list's text for files that are left.
fn lines(object_bytes: u64, files: &[(String, u64)]) -> Vec<u8> {
    let line = |(name, objects): &(String, u64)| {
        let file_bytes = objects * object_bytes;
        format!("{object_bytes} {file_bytes} {name}\n")
    };
    files.iter().map(line).collect::<String>().into_bytes()
}

/// A file in objects, by synchronous calls.
struct Pieces {
    context: Arc<Context>,
    name: String,
    object_bytes: u64,
    file_bytes: u64,
}

impl Pieces {
    /// The object of `offset`, the offset in it, and how many of `length` bytes lie in it.
    fn piece(&self, offset: u64, length: usize) -> (CString, u64, usize) {
        let within = offset % self.object_bytes;
        let room = usize::try_from(self.object_bytes - within).unwrap_or(usize::MAX);
        let object = object_name(&self.name, offset, self.object_bytes);
        (object, within, length.min(room))
    }
}

impl Handle for Pieces {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> i64 {
        let (object, within, length) = self.piece(offset, buffer.len());
        self.context.read(&object, &mut buffer[..length], within)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> i64 {
        let (object, within, length) = self.piece(offset, buffer.len());
        match self.context.write(&object, &buffer[..length], within) {
            0 => length as i64,
            result => result,
        }
    }

    /// A write is acknowledged when all OSDs of its placement group have it on their stores.
    fn sync(&self, _data_only: bool) -> i64 {
        0
    }

    fn size(&self) -> i64 {
        let last = self.file_bytes.saturating_sub(1);
        let object = object_name(&self.name, last, self.object_bytes);
        match self.context.size(&object) {
            missing if missing == -i64::from(libc::ENOENT) => 0,
            bytes if bytes < 0 => bytes,
            bytes => (last / self.object_bytes * self.object_bytes) as i64 + bytes,
        }
    }
}

/// One thread's place in a pool: a file's first block, out of its first object. RADOS has neither directories nor
/// attributes of files, so that it lists no other operation.
pub struct ObjectNames {
    context: Arc<Context>,
    path: WholePath,
    object: CString,
}

impl Names for ObjectNames {
    fn enter(&mut self, directory: &Path) -> i32 {
        let directory = CString::new(directory.to_string_lossy().as_bytes());
        self.path.enter(&directory.unwrap_or_default());
        0
    }

    /// Nothing is asked of the cluster: objects are not opened.
    fn open(&mut self, name: &CStr, _direct: bool) -> i32 {
        let file = self.path.of(name).to_string_lossy();
        self.object = object_name(&file, 0, 1);
        0
    }

    fn read(&mut self, buffer: &mut [u8]) -> i32 {
        self.context.read(&self.object, buffer, 0) as i32
    }

    fn close(&mut self) -> i32 {
        0
    }
}
