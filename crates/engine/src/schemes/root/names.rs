//! Names of an XRootD server through its client: `Names` by calls that wait.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;

use crate::schemes::Location;
use crate::sys::xrootd::{File, How, System, text};
use crate::volume::names::{Names, WholePath, below};

/// One thread's directory and open file on a server.
pub struct ServerNames {
    system: Arc<System>,
    server: String,
    base: String,
    timeout_s: u16,
    path: WholePath,
    other: WholePath,
    file: Option<File>,
}

impl ServerNames {
    pub fn new(system: Arc<System>, location: &Location, timeout_s: u16) -> Self {
        Self {
            system,
            server: location.container.clone(),
            base: location.path.clone(),
            timeout_s,
            path: WholePath::default(),
            other: WholePath::default(),
            file: None,
        }
    }

    fn full(&self, path: &Path) -> CString {
        below(&self.base, &path.to_string_lossy())
    }

    fn open_with(&mut self, name: &CStr, how: How) -> i32 {
        let path = self.path.of(name).to_string_lossy();
        let url = text(&format!("root://{}/{path}", self.server));
        match File::open(&url, how, self.timeout_s) {
            Ok(file) => {
                self.file = Some(file);
                0
            }
            Err(errno) => errno as i32,
        }
    }
}

impl Names for ServerNames {
    fn enter(&mut self, directory: &Path) -> i32 {
        let directory = self.full(directory);
        self.path.enter(&directory);
        self.other.enter(&directory);
        0
    }

    fn leave(&mut self) {}

    fn make_tree_directory(&mut self, path: &Path) -> i32 {
        self.system.make_directory(&self.full(path)) as i32
    }

    fn create(&mut self, name: &CStr) -> i32 {
        self.open_with(name, How::New)
    }

    fn open(&mut self, name: &CStr, _direct: bool) -> i32 {
        self.open_with(name, How::Read)
    }

    fn write(&mut self, data: &[u8], offset: u64) -> i32 {
        match &self.file {
            Some(file) => (file.write(data, offset) as i32).min(0),
            None => -libc::EBADF,
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> i32 {
        self.file
            .as_ref()
            .map_or(-libc::EBADF, |file| file.read(buffer, 0) as i32)
    }

    fn close(&mut self) -> i32 {
        self.file
            .take()
            .map_or(-libc::EBADF, |file| file.close() as i32)
    }

    fn stat(&mut self, name: &CStr) -> i32 {
        match self.system.is_directory(self.path.of(name)) {
            Ok(_) => 0,
            Err(errno) => errno as i32,
        }
    }

    fn rename(&mut self, from: &CStr, to: &CStr) -> i32 {
        self.system.rename(self.path.of(from), self.other.of(to)) as i32
    }

    fn unlink(&mut self, name: &CStr) -> i32 {
        self.system.remove(self.path.of(name)) as i32
    }

    fn make_directory(&mut self, name: &CStr) -> i32 {
        self.system.make_directory(self.path.of(name)) as i32
    }

    fn remove_directory(&mut self, name: &CStr) -> i32 {
        self.system.remove_directory(self.path.of(name)) as i32
    }

    fn list(&mut self, directory: &Path, _buffer: &mut [u8]) -> i32 {
        match self.system.names(&self.full(directory)) {
            Ok(_) => 0,
            Err(errno) => errno as i32,
        }
    }
}
