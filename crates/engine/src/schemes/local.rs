//! Files that the kernel mounts, whatever their file system: by system calls, a ring, or memory.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use io_uring::IoUring;

use super::{Engine, Scheme, Storage};
use crate::sys::directory::{OwnDirectory, open_beneath};
use crate::sys::file::{self, Advice, OpenHow};
use crate::sys::metadata as calls;
use crate::volume::names::{Names, Operation};
use crate::volume::{Handle, Outcome, Space, Volume, VolumeError, system};

pub static SCHEME: Scheme = Scheme {
    example: "/mnt/directory",
    operations: Operation::ALL,
    storage: Storage::Mount,
    ack_means: "in the page cache of this host",
    ack_means_direct: Some("taken by the file system past the page cache of this host"),
    ..Scheme::new("file", "files of a mounted file system", &ENGINES)
};

static ENGINES: [Engine; 3] = [
    Engine {
        submission_thread: true,
        unavailable: no_io_uring,
        ..Engine::new(
            "io_uring",
            "asynchronous I/O in batches through a ring shared with the kernel",
        )
    },
    Engine {
        blocking: true,
        ..Engine::new("psync", "one pread or pwrite at a time per thread")
    },
    Engine {
        blocking: true,
        direct: false,
        ..Engine::new("mmap", "copies to and from files mapped into memory")
    },
];

/// Why this host has no io_uring; `None` when it has.
fn no_io_uring() -> Option<String> {
    match IoUring::new(2) {
        Ok(_) => None,
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            Some("this kernel has no io_uring (it came with Linux 5.1); use psync".to_owned())
        }
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Some(
            "io_uring is forbidden here (sysctl kernel.io_uring_disabled, or the container); use psync"
                .to_owned(),
        ),
        Err(error) => Some(format!("io_uring cannot be set up: {error}")),
    }
}

/// A directory of a mounted file system, with the files in it.
pub struct Local(OwnDirectory);

impl Handle for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> i64 {
        file::read_at(self, buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> i64 {
        file::write_at(self, buffer, offset)
    }

    fn sync(&self, data_only: bool) -> i64 {
        if data_only {
            file::sync_data(self)
        } else {
            file::sync(self)
        }
    }

    fn size(&self) -> i64 {
        match self.metadata() {
            Ok(facts) => i64::try_from(facts.len()).unwrap_or(i64::MAX),
            Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    fn forget(&self) {
        file::advise(self, Advice::DontNeed);
    }
}

impl Local {
    pub fn at(directory: OwnDirectory) -> Self {
        Self(directory)
    }
}

/// Of a mounted directory only files are asked for here; all else is Python's, by descriptors too.
fn not_here<T>(operation: &'static str, subject: &str) -> Outcome<T> {
    Err(VolumeError::new(libc::ENOTSUP, operation, subject))
}

impl Volume for Local {
    fn make_directory(&self, path: &str) -> Outcome<()> {
        not_here("make the directory", path)
    }

    fn put(&self, path: &str, _bytes: &[u8]) -> Outcome<()> {
        not_here("write", path)
    }

    fn names_in(&self, directory: &str, limit: usize) -> Outcome<Vec<String>> {
        let refused = |error: std::io::Error| system(&error, "list", directory);
        let entries = std::fs::read_dir(directory).map_err(refused)?.take(limit);
        let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        entries
            .map(|entry| entry.map(name).map_err(refused))
            .collect()
    }

    fn open(&self, path: &str, how: OpenHow, _file_bytes: u64) -> Outcome<Arc<dyn Handle>> {
        let operation = if how.fresh { "create" } else { "open" };
        match self.0.open_file(Path::new(path), how) {
            Ok(file) => Ok(Arc::new(file)),
            Err(error) => Err(system(&error, operation, path)),
        }
    }

    fn space(&self) -> Outcome<Space> {
        not_here("ask for the space of", "mounted files")
    }

    fn remove_files(&self, directory: &str, _prefix: &str, _until: Instant) -> Outcome<bool> {
        not_here("remove files in", directory)
    }

    fn remove_directory(&self, directory: &str, _mark: &str) -> Outcome<()> {
        not_here("remove", directory)
    }
}

/// No descriptor.
const NONE: RawFd = -1;

/// One thread's open directory and open file.
pub struct LocalNames {
    /// All names lie below it.
    place: OwnDirectory,
    directory: RawFd,
    file: RawFd,
}

impl LocalNames {
    pub fn below(place: OwnDirectory) -> Self {
        Self {
            place,
            directory: NONE,
            file: NONE,
        }
    }

    /// Keeps a descriptor as the open file.
    #[inline(always)]
    fn keep(&mut self, descriptor: i32) -> i32 {
        if descriptor < 0 {
            return descriptor;
        }
        self.file = descriptor;
        0
    }
}

fn refusal(error: &std::io::Error) -> i32 {
    -error.raw_os_error().unwrap_or(libc::EINVAL)
}

impl Names for LocalNames {
    fn enter(&mut self, directory: &Path) -> i32 {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        let opened = self.place.name_of(directory);
        match opened.and_then(|name| open_beneath(&self.place, &name, flags, 0)) {
            Ok(opened) => {
                self.directory = opened.into_raw_fd();
                0
            }
            Err(error) => refusal(&error),
        }
    }

    fn leave(&mut self) {
        calls::close(self.directory);
        self.directory = NONE;
    }

    fn make_tree_directory(&mut self, path: &Path) -> i32 {
        match self.place.name_of(path) {
            Ok(name) => calls::make_directory(self.place.as_raw_fd(), &name),
            Err(error) => refusal(&error),
        }
    }

    #[inline(always)]
    fn create(&mut self, name: &CStr) -> i32 {
        let descriptor = calls::create(self.directory, name);
        self.keep(descriptor)
    }

    #[inline(always)]
    fn open(&mut self, name: &CStr, direct: bool) -> i32 {
        let descriptor = calls::open(self.directory, name, direct);
        self.keep(descriptor)
    }

    fn write(&mut self, data: &[u8], offset: u64) -> i32 {
        calls::write(self.file, data, offset)
    }

    #[inline(always)]
    fn read(&mut self, buffer: &mut [u8]) -> i32 {
        calls::read(self.file, buffer)
    }

    fn forget(&mut self) {
        calls::forget(self.file);
    }

    #[inline(always)]
    fn close(&mut self) -> i32 {
        calls::close(self.file)
    }

    #[inline(always)]
    fn stat(&mut self, name: &CStr) -> i32 {
        calls::stat(self.directory, name)
    }

    #[inline(always)]
    fn rename(&mut self, from: &CStr, to: &CStr) -> i32 {
        calls::rename(self.directory, from, to)
    }

    #[inline(always)]
    fn unlink(&mut self, name: &CStr) -> i32 {
        calls::unlink(self.directory, name)
    }

    #[inline(always)]
    fn make_directory(&mut self, name: &CStr) -> i32 {
        calls::make_directory(self.directory, name)
    }

    #[inline(always)]
    fn remove_directory(&mut self, name: &CStr) -> i32 {
        calls::remove_directory(self.directory, name)
    }

    fn list(&mut self, directory: &Path, buffer: &mut [u8]) -> i32 {
        match self.place.name_of(directory) {
            Ok(name) => calls::list(self.place.as_raw_fd(), &name, buffer),
            Err(error) => refusal(&error),
        }
    }
}
