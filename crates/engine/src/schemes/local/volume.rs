//! Files that the kernel mounts: `Volume` by the standard library.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::sys::file::{self, Advice, OpenHow};
use crate::volume::{Handle, KEPT, Outcome, Space, Volume, VolumeError, system};

/// The mounted file systems of this host.
pub struct Local;

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

impl Volume for Local {
    fn make_directory(&self, path: &str) -> Outcome<()> {
        fs::create_dir(path).map_err(|error| system(&error, "make the directory", path))
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Outcome<()> {
        let refused = |error: std::io::Error| system(&error, "write", path);
        let mut file = File::create(path).map_err(refused)?;
        file.write_all(bytes).map_err(refused)?;
        file.sync_all().map_err(refused)
    }

    fn get(&self, path: &str, limit: usize) -> Outcome<Option<Vec<u8>>> {
        match fs::read(path) {
            Ok(mut bytes) => {
                bytes.truncate(limit);
                Ok(Some(bytes))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(system(&error, "read", path)),
        }
    }

    fn names_in(&self, directory: &str, limit: usize) -> Outcome<Vec<String>> {
        let refused = |error: std::io::Error| system(&error, "list", directory);
        let entries = fs::read_dir(directory).map_err(refused)?.take(limit);
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        entries
            .map(|entry| entry.map(name).map_err(refused))
            .collect()
    }

    fn open(&self, path: &str, how: OpenHow, _file_bytes: u64) -> Outcome<Arc<dyn Handle>> {
        let operation = if how.fresh { "create" } else { "open" };
        match file::open(Path::new(path), how) {
            Ok(file) => Ok(Arc::new(file)),
            Err(error) => Err(system(&error, operation, path)),
        }
    }

    fn space(&self) -> Outcome<Space> {
        Err(VolumeError::new(
            libc::ENOTSUP,
            "ask for the space of",
            "mounted files",
        ))
    }

    fn remove_files(&self, directory: &str, prefix: &str, until: Instant) -> Outcome<bool> {
        let refused = |error: std::io::Error| system(&error, "remove files in", directory);
        for entry in fs::read_dir(directory).map_err(refused)? {
            let entry = entry.map_err(refused)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let chosen = name.starts_with(prefix) && !name.starts_with(KEPT);
            if chosen && entry.path().is_file() {
                fs::remove_file(entry.path()).map_err(refused)?;
            }
            if Instant::now() > until {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn remove_directory(&self, directory: &str, mark: &str) -> Outcome<()> {
        let refused = |error: std::io::Error| system(&error, "remove", directory);
        fs::remove_file(Path::new(directory).join(mark)).map_err(refused)?;
        fs::remove_dir(directory).map_err(refused)
    }
}
