//! Storage as everything outside the measured interval sees it: directories, marks, whole files. One trait for
//! what the kernel mounts and for what a library reaches.

pub mod names;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::error::{EngineError, errno_words};
use crate::sys::directory::OwnDirectory;
use crate::sys::file::OpenHow;
use crate::sys::library::Missing;
use names::Names;

/// What failed, of what, and why; `errno` is the system's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeError {
    pub errno: i32,
    pub operation: &'static str,
    pub subject: String,
    /// What to do about it, where that is known.
    pub remedy: String,
}

impl VolumeError {
    pub fn new(errno: i32, operation: &'static str, subject: &str) -> Self {
        Self {
            errno,
            operation,
            subject: subject.to_owned(),
            remedy: String::new(),
        }
    }

    pub fn with_remedy(self, remedy: &str) -> Self {
        Self {
            remedy: remedy.to_owned(),
            ..self
        }
    }

    /// One line: what, of what, why, and the remedy.
    pub fn words(&self) -> String {
        let what = format!(
            "{} {}: {}",
            self.operation,
            self.subject,
            errno_words(self.errno)
        );
        if self.remedy.is_empty() {
            what
        } else {
            format!("{what}; {}", self.remedy)
        }
    }
}

impl From<Missing> for VolumeError {
    fn from(missing: Missing) -> Self {
        Self::new(libc::ENOPKG, "use", &missing.words).with_remedy(&missing.remedy)
    }
}

impl From<VolumeError> for EngineError {
    fn from(error: VolumeError) -> Self {
        if error.remedy.is_empty() {
            Self::System {
                errno: error.errno,
                operation: error.operation,
                path: error.subject.into(),
            }
        } else {
            Self::Other(error.words())
        }
    }
}

/// Names that begin so are marks, which go last.
pub const KEPT: &str = ".leadline";

pub type Outcome<T> = Result<T, VolumeError>;

/// Bytes in all and free, where the storage says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub total_bytes: u64,
    pub free_bytes: u64,
}

impl From<(u64, u64)> for Space {
    fn from((total_bytes, free_bytes): (u64, u64)) -> Self {
        Self {
            total_bytes,
            free_bytes,
        }
    }
}

/// An open file. Several threads may use it at once.
pub trait Handle: Send + Sync {
    /// Bytes read, or minus errno.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> i64;
    /// Bytes written, or minus errno.
    fn write_at(&self, buffer: &[u8], offset: u64) -> i64;
    /// 0, or minus errno.
    fn sync(&self, data_only: bool) -> i64;
    /// Bytes in the file, or minus errno.
    fn size(&self) -> i64;
    /// Drops what this host's caches hold of it, where it can.
    fn forget(&self) {}
}

/// Storage that is connected. Paths begin with `/` and are the volume's own.
pub trait Volume: Send + Sync {
    /// Fails with EEXIST where it is there.
    fn make_directory(&self, path: &str) -> Outcome<()>;

    /// Writes a small file whole.
    fn put(&self, path: &str, bytes: &[u8]) -> Outcome<()> {
        let file = self.write_whole(path, bytes)?;
        self.done(file.sync(false), "sync", path)
    }

    /// The same without a sync.
    fn write_whole(&self, path: &str, bytes: &[u8]) -> Outcome<Arc<dyn Handle>> {
        let file = self.open(path, OpenHow::FRESH, bytes.len() as u64)?;
        let mut written = 0;
        while written < bytes.len() {
            let result = file.write_at(&bytes[written..], written as u64);
            self.done(result, "write", path)?;
            written += result as usize;
        }
        Ok(file)
    }

    /// A path as errors name it.
    fn shown(&self, path: &str) -> String {
        path.to_owned()
    }

    /// What was done to a path, failed with minus errno.
    fn failed(&self, errno: i64, operation: &'static str, path: &str) -> VolumeError {
        VolumeError::new(-errno as i32, operation, &self.shown(path))
    }

    /// An error where a call's result is minus errno.
    fn done(&self, result: i64, operation: &'static str, path: &str) -> Outcome<()> {
        if result < 0 {
            Err(self.failed(result, operation, path))
        } else {
            Ok(())
        }
    }

    /// The same of a removal: what is not there is removed.
    fn removed(&self, result: i64, path: &str) -> Outcome<()> {
        match result {
            missing if missing == -i64::from(libc::ENOENT) => Ok(()),
            result => self.done(result, "remove", path),
        }
    }

    /// A small file, its first `limit` bytes; `None` where there is none.
    fn get(&self, path: &str, limit: usize) -> Outcome<Option<Vec<u8>>> {
        let file = match self.open(path, OpenHow::default(), 0) {
            Ok(file) => file,
            Err(error) if error.errno == libc::ENOENT => return Ok(None),
            Err(error) => return Err(error),
        };
        let size = file.size();
        self.done(size, "read", path)?;
        let mut bytes = vec![0; limit.min(size as usize)];
        let found = file.read_at(&mut bytes, 0);
        self.done(found, "read", path)?;
        bytes.truncate(found as usize);
        Ok(Some(bytes))
    }

    /// Names in a directory, at most about `limit` of them; ENOENT where it is not there. Where directories are only
    /// names, it is there when something begins so.
    fn names_in(&self, directory: &str, limit: usize) -> Outcome<Vec<String>>;

    /// Opens a file that is to have `file_bytes`.
    fn open(&self, path: &str, how: OpenHow, file_bytes: u64) -> Outcome<Arc<dyn Handle>>;

    fn space(&self) -> Outcome<Space>;

    /// The pool behind it, of a scheme whose URLs do not name one.
    fn pool(&self) -> Option<String> {
        None
    }

    /// One thread's hold on names, where the scheme lists metadata operations.
    fn names(&self) -> Outcome<Box<dyn Names>> {
        Err(VolumeError::new(
            libc::ENOTSUP,
            "work on names of",
            "this storage",
        ))
    }

    /// Removes what begins with `prefix` in `directory`, directories with all in them, but none of `KEPT`, until
    /// `until`: true when more is left.
    fn remove_files(&self, directory: &str, prefix: &str, until: Instant) -> Outcome<bool>;

    /// Removes the mark and the directory, in this order.
    fn remove_directory(&self, directory: &str, mark: &str) -> Outcome<()>;

    /// A connection of its own for one thread, where one connection serves one call at a time.
    fn lane(&self) -> Outcome<Option<Arc<dyn Volume>>> {
        Ok(None)
    }

    /// What a reader of the result should know of this storage.
    fn notes(&self) -> Option<String> {
        None
    }
}

/// Whether a path that was read from storage lies in `directory`, and leads nowhere else by the way.
pub fn lies_in(directory: &str, path: &str) -> bool {
    let inner = path
        .strip_prefix(directory)
        .and_then(|rest| rest.strip_prefix('/'));
    inner.is_some_and(|inner| inner.split('/').all(is_name))
}

/// Whether an entry of a directory is to be removed with those that begin with `prefix`.
pub fn is_chosen(name: &str, prefix: &str) -> bool {
    name.starts_with(prefix) && !name.starts_with(KEPT) && is_name(name)
}

/// Whether it is one name, and not a way to some other place.
fn is_name(part: &str) -> bool {
    !["", ".", ".."].contains(&part) && !part.contains(['/', '\0'])
}

pub fn is_absent(directory: &str) -> VolumeError {
    VolumeError::new(libc::ENOENT, "list", directory)
}

/// The directory that a job's files lie in, where the kernel mounts it.
pub fn own_directory(path: &Path) -> Outcome<OwnDirectory> {
    OwnDirectory::open(path).map_err(|error| system(&error, "open", &path.display().to_string()))
}

/// Opens one of a job's files; one that is not fresh must have its full size.
pub fn open_checked(
    volume: &dyn Volume,
    name: &str,
    how: OpenHow,
    file_bytes: u64,
) -> Outcome<Arc<dyn Handle>> {
    let file = volume.open(name, how, file_bytes)?;
    if how.fresh {
        return Ok(file);
    }
    let found = file.size();
    if found < 0 {
        return Err(VolumeError::new(-found as i32, "look at", name));
    }
    check_size(name, found as u64, file_bytes)?;
    Ok(file)
}

/// A file with fewer bytes than a job needs is refused.
pub fn check_size(name: &str, found_bytes: u64, file_bytes: u64) -> Outcome<()> {
    if found_bytes < file_bytes {
        let remedy = format!(
            "the file has {found_bytes} bytes and the job needs {file_bytes}: prefill it first"
        );
        return Err(VolumeError::new(libc::ENODATA, "open", name).with_remedy(&remedy));
    }
    Ok(())
}

/// A path as volumes take it: our own names, which are UTF-8.
pub fn name_of(path: &Path) -> Outcome<&str> {
    path.to_str()
        .ok_or_else(|| VolumeError::new(libc::EILSEQ, "open", &path.display().to_string()))
}

pub fn system(error: &io::Error, operation: &'static str, subject: &str) -> VolumeError {
    match error.raw_os_error() {
        Some(errno) => VolumeError::new(errno, operation, subject),
        // Not the system refused it, but this program, in words.
        None => VolumeError::new(libc::EPERM, operation, subject).with_remedy(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_directory_leads_nowhere_else() {
        for path in ["/d/a", "/d/a.0/t1/b", "/d/..a"] {
            assert!(lies_in("/d", path), "{path}");
        }
        for path in [
            "/d",
            "/d/",
            "/dx/a",
            "/e/a",
            "d/a",
            "/d/../e",
            "/d/a/../b",
            "/d/./a",
            "/d//a",
            "/d/a\0",
        ] {
            assert!(!lies_in("/d", path), "{path}");
        }
    }

    #[test]
    fn an_entry_is_chosen_by_its_whole_name_and_marks_are_not() {
        for name in ["data.0", "data."] {
            assert!(is_chosen(name, "data."), "{name}");
        }
        for name in ["data", "datax.0", "data./../x", ".leadline", ".."] {
            assert!(!is_chosen(name, "data."), "{name}");
        }
        assert!(!is_chosen("..", "") && !is_chosen(".leadline-files", ""));
    }
}
