//! Names of mounted files: `Names` by system calls relative to a directory that is kept open.

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::path::Path;

use crate::sys::metadata as calls;
use crate::volume::names::Names;

/// No descriptor.
const NONE: RawFd = -1;

/// One thread's open directory and open file.
pub struct LocalNames {
    directory: RawFd,
    file: RawFd,
}

impl Default for LocalNames {
    fn default() -> Self {
        Self {
            directory: NONE,
            file: NONE,
        }
    }
}

impl LocalNames {
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

fn open_directory(path: &Path) -> i32 {
    match calls::c_path(path) {
        Ok(path) => calls::open_directory(None, &path),
        Err(_) => -libc::EINVAL,
    }
}

impl Names for LocalNames {
    fn enter(&mut self, directory: &Path) -> i32 {
        let opened = open_directory(directory);
        if opened < 0 {
            return opened;
        }
        self.directory = opened;
        0
    }

    fn leave(&mut self) {
        calls::close(self.directory);
        self.directory = NONE;
    }

    fn make_tree_directory(&mut self, path: &Path) -> i32 {
        match std::fs::create_dir(path) {
            Ok(()) => 0,
            Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
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
        let descriptor = open_directory(directory);
        if descriptor < 0 {
            return descriptor;
        }
        let mut result = 1;
        while result > 0 {
            result = calls::entries(descriptor, buffer);
        }
        calls::close(descriptor);
        result
    }
}
