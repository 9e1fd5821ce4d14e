//! Files that the kernel mounts, in a directory of ours: `Volume` by its descriptor.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::sys::directory::OwnDirectory;
use crate::sys::file::{self, Advice, OpenHow};
use crate::volume::{Handle, Outcome, Space, Volume, VolumeError, system};

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
