//! The agent's own directory: records, ledgers and scripts of trials, for this user alone, gone with the agent.
//!
//! What is named in it is opened beneath its descriptor, through no link and on no other mount.

use std::ffi::CString;
use std::fs::{File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use leadline_engine::sys::directory::open_beneath;
use tempfile::TempDir;

use crate::errors::{Outcome, Refusal};

/// Of a file that is read in one answer.
pub const PART_BYTES_MAX: u64 = 32 << 20;
const PREFIX: &str = "leadline-agent-";

/// Made at the start, removed at the end.
pub struct PrivateDirectory {
    path: PathBuf,
    descriptor: OwnedFd,
    made: Mutex<Option<TempDir>>,
}

impl PrivateDirectory {
    /// A new one below `below`, for this user alone.
    pub fn make(below: &Path) -> Outcome<Self> {
        let refused = |error: io::Error| {
            Refusal::new(
                format!(
                    "no directory can be made below {}: {error}",
                    below.display()
                ),
                "name another by --below DIRECTORY",
            )
        };
        let below = std::path::absolute(below).map_err(refused)?;
        let made = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(below)
            .map_err(refused)?;
        Ok(Self {
            path: made.path().to_owned(),
            descriptor: File::open(made.path()).map_err(refused)?.into(),
            made: Mutex::new(Some(made)),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with all in it.
    pub fn remove(&self) {
        if let Ok(mut made) = self.made.lock() {
            drop(made.take());
        }
    }

    /// Bytes of a file from an offset on: fewer at its end.
    pub fn read(&self, path: &Path, offset: u64, size: u64) -> Outcome<Vec<u8>> {
        let refused = |error: io::Error| Refusal::system(&error, path);
        let mut file = self.open(path, libc::O_RDONLY)?;
        file.seek(SeekFrom::Start(offset)).map_err(refused)?;
        let mut bytes = Vec::new();
        file.take(size.min(PART_BYTES_MAX))
            .read_to_end(&mut bytes)
            .map_err(refused)?;
        Ok(bytes)
    }

    /// Writes a file anew, or at its end; directories above it are made.
    pub fn write(&self, path: &Path, bytes: &[u8], append: bool) -> Outcome<()> {
        let refused = |error: io::Error| Refusal::system(&error, path);
        let whole = self.path.join(self.inner(path)?);
        if let Some(above) = whole.parent() {
            std::fs::create_dir_all(above).map_err(refused)?;
        }
        let how = if append {
            libc::O_APPEND
        } else {
            libc::O_TRUNC
        };
        let mut file = self.open(path, libc::O_WRONLY | libc::O_CREAT | how)?;
        file.write_all(bytes).map_err(refused)
    }

    /// Removes a file, or a directory with all in it; what is not there is removed.
    pub fn forget(&self, path: &Path) -> Outcome<()> {
        let whole = self.path.join(self.inner(path)?);
        let removed = match whole.symlink_metadata() {
            Ok(found) if found.is_dir() => std::fs::remove_dir_all(&whole),
            Ok(_) => std::fs::remove_file(&whole),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Refusal::system(&error, path))
            }
            _ => Ok(()),
        }
    }

    fn open(&self, path: &Path, flags: libc::c_int) -> Outcome<File> {
        let refused = |error: io::Error| Refusal::system(&error, path);
        let name = CString::new(self.inner(path)?.as_os_str().as_bytes())
            .map_err(|error| refused(error.into()))?;
        let mode = if flags & libc::O_CREAT == 0 { 0 } else { 0o600 };
        let opened = open_beneath(&self.descriptor, &name, flags | libc::O_NONBLOCK, mode);
        let file = File::from(opened.map_err(refused)?);
        if !file.metadata().map_err(refused)?.is_file() {
            return Err(Refusal::new(
                format!("{} is no plain file", path.display()),
                "",
            ));
        }
        Ok(file)
    }

    /// A path in the directory, whole or from it on, as the latter.
    fn inner(&self, path: &Path) -> Outcome<PathBuf> {
        let inner = path.strip_prefix(&self.path).unwrap_or(path);
        let plain = inner
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !plain || inner.as_os_str().is_empty() {
            return Err(Refusal::new(
                format!("{} is not in the agent's own directory", path.display()),
                format!("name files below {}", self.path.display()),
            ));
        }
        Ok(inner.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_is_written_read_in_parts_and_removed() {
        let top = tempfile::tempdir().unwrap();
        let own = PrivateDirectory::make(top.path()).unwrap();
        let mode = own.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let inner = Path::new("records/t0001");
        own.write(inner, b"first", false).unwrap();
        own.write(&own.path().join(inner), b" second", true)
            .unwrap();
        assert_eq!(own.read(inner, 6, 3).unwrap(), b"sec");
        assert_eq!(own.read(inner, 6, 100).unwrap(), b"second");
        own.write(inner, b"new", false).unwrap();
        assert_eq!(own.read(inner, 0, 100).unwrap(), b"new");
        own.forget(Path::new("records")).unwrap();
        own.forget(Path::new("records")).unwrap();
        assert_eq!(own.read(inner, 0, 1).unwrap_err().errno, Some(libc::ENOENT));
        own.remove();
        assert_eq!(std::fs::read_dir(top.path()).unwrap().count(), 0);
    }

    #[test]
    fn nothing_outside_is_read_written_or_removed() {
        let top = tempfile::tempdir().unwrap();
        let precious = top.path().join("precious");
        std::fs::write(&precious, b"precious").unwrap();
        let own = PrivateDirectory::make(top.path()).unwrap();
        symlink(&precious, own.path().join("link")).unwrap();
        symlink(top.path(), own.path().join("above")).unwrap();
        for path in [
            "../precious",
            "a/../../precious",
            "link",
            "above/precious",
            "",
            "/etc/hostname",
        ] {
            let path = Path::new(path);
            assert!(own.read(path, 0, 1).is_err(), "{}", path.display());
            assert!(own.write(path, b"x", false).is_err(), "{}", path.display());
        }
        assert!(own.forget(Path::new("../precious")).is_err());
        assert!(own.forget(Path::new("")).is_err());
        own.forget(Path::new("link")).unwrap();
        own.forget(Path::new("above")).unwrap();
        own.remove();
        assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
    }
}
