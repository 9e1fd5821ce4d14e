//! Names of CephFS through libcephfs: `Names` by its blocking calls, which take whole paths (older libraries have
//! none relative to a directory).

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;

use crate::sys::ceph::libcephfs::Mounted;
use crate::volume::names::{Names, WholePath, below};

/// One thread's directory and open file of a client that all threads share.
pub struct CephNames {
    mounted: Arc<Mounted>,
    base: String,
    path: WholePath,
    other: WholePath,
    descriptor: i32,
}

impl CephNames {
    pub fn new(mounted: Arc<Mounted>, base: String) -> Self {
        Self {
            mounted,
            base,
            path: WholePath::default(),
            other: WholePath::default(),
            descriptor: -1,
        }
    }

    fn full(&self, path: &Path) -> CString {
        below(&self.base, &path.to_string_lossy())
    }

    fn open_with(&mut self, name: &CStr, flags: i32) -> i32 {
        let opened = self.mounted.open(self.path.of(name), flags) as i32;
        if opened < 0 {
            return opened;
        }
        self.descriptor = opened;
        0
    }
}

impl Names for CephNames {
    fn enter(&mut self, directory: &Path) -> i32 {
        let directory = self.full(directory);
        self.path.enter(&directory);
        self.other.enter(&directory);
        0
    }

    fn leave(&mut self) {}

    fn make_tree_directory(&mut self, path: &Path) -> i32 {
        self.mounted.make_directory(&self.full(path)) as i32
    }

    fn create(&mut self, name: &CStr) -> i32 {
        self.open_with(
            name,
            libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW,
        )
    }

    fn open(&mut self, name: &CStr, direct: bool) -> i32 {
        let direct = if direct { libc::O_DIRECT } else { 0 };
        self.open_with(name, libc::O_RDONLY | libc::O_NOFOLLOW | direct)
    }

    fn write(&mut self, data: &[u8], offset: u64) -> i32 {
        let mut done = 0;
        while done < data.len() {
            let place = offset + done as u64;
            match self.mounted.write(self.descriptor, &data[done..], place) {
                0 => return -libc::ENOSPC,
                count if count < 0 => return count as i32,
                count => done += count as usize,
            }
        }
        0
    }

    fn read(&mut self, buffer: &mut [u8]) -> i32 {
        self.mounted.read(self.descriptor, buffer, 0) as i32
    }

    fn close(&mut self) -> i32 {
        self.mounted.close(self.descriptor) as i32
    }

    fn stat(&mut self, name: &CStr) -> i32 {
        self.mounted.look_at(self.path.of(name)) as i32
    }

    fn rename(&mut self, from: &CStr, to: &CStr) -> i32 {
        let renamed = self.mounted.rename(self.path.of(from), self.other.of(to));
        renamed as i32
    }

    fn unlink(&mut self, name: &CStr) -> i32 {
        self.mounted.unlink(self.path.of(name)) as i32
    }

    fn make_directory(&mut self, name: &CStr) -> i32 {
        self.mounted.make_directory(self.path.of(name)) as i32
    }

    fn remove_directory(&mut self, name: &CStr) -> i32 {
        self.mounted.remove_directory(self.path.of(name)) as i32
    }

    fn list(&mut self, directory: &Path, _buffer: &mut [u8]) -> i32 {
        self.mounted.list(&self.full(directory)) as i32
    }
}
