//! Names of an SMB share through libsmbclient: `Names` by its blocking calls, on a connection of the thread's own.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::volume::{encoded, lock};
use crate::sys::smb::{Client, Opened};
use crate::volume::names::{Names, WholePath};

/// One thread's directory and open file. Names are leadline's own, which a URL holds as they are.
pub struct SmbNames {
    client: Arc<Mutex<Client>>,
    base: String,
    path: WholePath,
    other: WholePath,
    file: Option<Opened>,
}

impl SmbNames {
    /// `base` is the URL of the location's directory.
    pub fn new(client: Arc<Mutex<Client>>, base: String) -> Self {
        Self {
            client,
            base,
            path: WholePath::default(),
            other: WholePath::default(),
            file: None,
        }
    }

    fn full(&self, path: &Path) -> CString {
        let path = path.to_string_lossy();
        let url = format!("{}/{}", self.base, encoded(path.trim_start_matches('/')));
        CString::new(url).unwrap_or_default()
    }

    fn open_with(&mut self, name: &CStr, flags: i32) -> i32 {
        match lock(&self.client).open(self.path.of(name), flags) {
            Ok(file) => {
                self.file = Some(file);
                0
            }
            Err(errno) => errno as i32,
        }
    }
}

impl Names for SmbNames {
    fn enter(&mut self, directory: &Path) -> i32 {
        let directory = self.full(directory);
        self.path.enter(&directory);
        self.other.enter(&directory);
        0
    }

    fn leave(&mut self) {}

    fn make_tree_directory(&mut self, path: &Path) -> i32 {
        lock(&self.client).make_directory(&self.full(path)) as i32
    }

    fn create(&mut self, name: &CStr) -> i32 {
        self.open_with(name, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)
    }

    fn open(&mut self, name: &CStr, _direct: bool) -> i32 {
        self.open_with(name, libc::O_RDONLY)
    }

    fn write(&mut self, data: &[u8], offset: u64) -> i32 {
        let Some(file) = self.file else {
            return -libc::EBADF;
        };
        let mut done = 0;
        while done < data.len() {
            let place = offset + done as u64;
            match lock(&self.client).write(file, &data[done..], place) {
                0 => return -libc::ENOSPC,
                count if count < 0 => return count as i32,
                count => done += count as usize,
            }
        }
        0
    }

    fn read(&mut self, buffer: &mut [u8]) -> i32 {
        match self.file {
            Some(file) => lock(&self.client).read(file, buffer, 0) as i32,
            None => -libc::EBADF,
        }
    }

    fn close(&mut self) -> i32 {
        match self.file.take() {
            Some(file) => lock(&self.client).close(file) as i32,
            None => -libc::EBADF,
        }
    }

    fn stat(&mut self, name: &CStr) -> i32 {
        match lock(&self.client).stat(self.path.of(name)) {
            Ok(_) => 0,
            Err(errno) => errno as i32,
        }
    }

    fn rename(&mut self, from: &CStr, to: &CStr) -> i32 {
        lock(&self.client).rename(self.path.of(from), self.other.of(to)) as i32
    }

    fn unlink(&mut self, name: &CStr) -> i32 {
        lock(&self.client).unlink(self.path.of(name)) as i32
    }

    fn make_directory(&mut self, name: &CStr) -> i32 {
        lock(&self.client).make_directory(self.path.of(name)) as i32
    }

    fn remove_directory(&mut self, name: &CStr) -> i32 {
        lock(&self.client).remove_directory(self.path.of(name)) as i32
    }

    fn list(&mut self, directory: &Path, _buffer: &mut [u8]) -> i32 {
        match lock(&self.client).names(&self.full(directory)) {
            Ok(_) => 0,
            Err(errno) => errno as i32,
        }
    }
}
