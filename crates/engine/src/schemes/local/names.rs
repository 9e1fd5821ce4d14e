//! Names of mounted files: `Names` by system calls relative to a directory that is kept open.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::path::Path;

use crate::sys::directory::{OwnDirectory, open_beneath};
use crate::sys::metadata as calls;
use crate::volume::names::Names;

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
