//! Files cut into stripes over the objects of a pool. Marks and the list of files are plain objects, as of `rados`.
//!
//! A striped file bears its path with the slash in front, which is the name that XRootD's Ceph plug-in gives it:
//! both see each other's files.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::schemes::Location;
use crate::schemes::rados::Pool;
use crate::sys::ceph::libradosstriper::{Striper, StriperRefusal, Stripes};
use crate::sys::file::OpenHow;
use crate::volume::names::{Names, WholePath};
use crate::volume::{Handle, Outcome, Space, Volume, VolumeError};

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
