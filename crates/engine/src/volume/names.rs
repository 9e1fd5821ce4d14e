//! Files and directories themselves, one thread's view of them: what a metadata job asks of storage. One trait for
//! what the kernel mounts and for what a library reaches.

use std::ffi::{CStr, CString};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What an operation gives that the storage lacks.
const LACKING: i32 = -libc::ENOTSUP;

/// One kind of operation; each is a phase of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Create,
    Open,
    Stat,
    Readdir,
    Rename,
    Unlink,
    Mkdir,
    Rmdir,
    FirstByte,
}

impl Operation {
    /// Every operation, in the order of the enumeration.
    pub const ALL: &[Self] = &[
        Self::Create,
        Self::Open,
        Self::Stat,
        Self::Readdir,
        Self::Rename,
        Self::Unlink,
        Self::Mkdir,
        Self::Rmdir,
        Self::FirstByte,
    ];

    /// The word for it in jobs, records and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Open => "open",
            Self::Stat => "stat",
            Self::Readdir => "readdir",
            Self::Rename => "rename",
            Self::Unlink => "unlink",
            Self::Mkdir => "mkdir",
            Self::Rmdir => "rmdir",
            Self::FirstByte => "first_byte",
        }
    }
}

/// One thread's hold on the names of some storage: at most one directory is entered, and at most one file is open.
///
/// Paths are absolute, and the volume's own. Every function returns 0 (or bytes), or minus errno; one that the
/// storage lacks is never called, because its scheme does not list the operation (`Scheme::operations`).
pub trait Names {
    /// The names that follow lie in this directory.
    fn enter(&mut self, directory: &Path) -> i32;
    /// Ends what `enter` began.
    fn leave(&mut self) {}
    /// A directory by its path, outside the measured interval.
    fn make_tree_directory(&mut self, _path: &Path) -> i32 {
        LACKING
    }
    /// A new file, which is open for writing; EEXIST where there is one.
    fn create(&mut self, _name: &CStr) -> i32 {
        LACKING
    }
    /// A file, which is open for reading; `direct`: past this host's caches.
    fn open(&mut self, name: &CStr, direct: bool) -> i32;
    /// All of `data` into the open file.
    fn write(&mut self, _data: &[u8], _offset: u64) -> i32 {
        LACKING
    }
    /// The open file's beginning; the number of bytes.
    fn read(&mut self, buffer: &mut [u8]) -> i32;
    /// Drops what this host's caches hold of the open file, where it can.
    fn forget(&mut self) {}
    /// Closes the open file.
    fn close(&mut self) -> i32;
    /// The file's attributes, which nobody looks at.
    fn stat(&mut self, _name: &CStr) -> i32 {
        LACKING
    }
    /// Both names lie in the entered directory.
    fn rename(&mut self, _from: &CStr, _to: &CStr) -> i32 {
        LACKING
    }
    /// Removes a file.
    fn unlink(&mut self, _name: &CStr) -> i32 {
        LACKING
    }
    /// Makes a directory in the entered one.
    fn make_directory(&mut self, _name: &CStr) -> i32 {
        LACKING
    }
    /// Removes an empty directory of the entered one.
    fn remove_directory(&mut self, _name: &CStr) -> i32 {
        LACKING
    }
    /// Opens a directory, lists it to its end, and closes it; `buffer` is for the entries, where they need one.
    fn list(&mut self, _directory: &Path, _buffer: &mut [u8]) -> i32 {
        LACKING
    }
}

/// A path whose last name changes in place, for libraries that take whole paths.
#[derive(Debug, Default)]
pub struct WholePath {
    bytes: Vec<u8>,
    directory_bytes: usize,
}

impl WholePath {
    /// Names lie in `directory` from now on.
    pub fn enter(&mut self, directory: &CStr) {
        self.bytes.clear();
        self.bytes.extend_from_slice(directory.to_bytes());
        if self.bytes.last() != Some(&b'/') {
            self.bytes.push(b'/');
        }
        self.directory_bytes = self.bytes.len();
    }

    /// The path of `name`: nothing is allocated once the longest name was met.
    #[inline]
    pub fn of(&mut self, name: &CStr) -> &CStr {
        self.bytes.truncate(self.directory_bytes);
        self.bytes.extend_from_slice(name.to_bytes_with_nul());
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// How a file is opened by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenAs {
    /// For writing; an error where there is one.
    New,
    Read {
        direct: bool,
    },
}

/// What a library does with whole paths. Calls return 0 (or bytes), or minus errno.
pub trait PathCalls {
    type File;

    /// A path of the volume's own as the library takes it.
    fn full(&self, path: &Path) -> CString;
    fn open(&mut self, path: &CStr, how: OpenAs) -> Result<Self::File, i64>;
    /// As much as one call takes.
    fn write(&mut self, file: &Self::File, data: &[u8], offset: u64) -> i64;
    fn read(&mut self, file: &Self::File, buffer: &mut [u8]) -> i64;
    fn close(&mut self, file: Self::File) -> i64;
    fn stat(&mut self, path: &CStr) -> i64;
    fn rename(&mut self, from: &CStr, to: &CStr) -> i64;
    fn unlink(&mut self, path: &CStr) -> i64;
    fn make_directory(&mut self, path: &CStr) -> i64;
    fn remove_directory(&mut self, path: &CStr) -> i64;
    fn list(&mut self, path: &CStr) -> i64;
}

/// `Names` by such calls.
pub struct PathNames<C: PathCalls> {
    calls: C,
    path: WholePath,
    other: WholePath,
    file: Option<C::File>,
}

impl<C: PathCalls> PathNames<C> {
    pub fn new(calls: C) -> Self {
        Self {
            calls,
            path: WholePath::default(),
            other: WholePath::default(),
            file: None,
        }
    }

    fn open_as(&mut self, name: &CStr, how: OpenAs) -> i32 {
        self.file = None;
        match self.calls.open(self.path.of(name), how) {
            Ok(file) => {
                self.file = Some(file);
                0
            }
            Err(errno) => errno as i32,
        }
    }
}

impl<C: PathCalls> Names for PathNames<C> {
    fn enter(&mut self, directory: &Path) -> i32 {
        let directory = self.calls.full(directory);
        self.path.enter(&directory);
        self.other.enter(&directory);
        0
    }

    fn make_tree_directory(&mut self, path: &Path) -> i32 {
        let path = self.calls.full(path);
        self.calls.make_directory(&path) as i32
    }

    fn create(&mut self, name: &CStr) -> i32 {
        self.open_as(name, OpenAs::New)
    }

    fn open(&mut self, name: &CStr, direct: bool) -> i32 {
        self.open_as(name, OpenAs::Read { direct })
    }

    fn write(&mut self, data: &[u8], offset: u64) -> i32 {
        let Some(file) = &self.file else {
            return -libc::EBADF;
        };
        let mut done = 0;
        while done < data.len() {
            match self.calls.write(file, &data[done..], offset + done as u64) {
                0 => return -libc::ENOSPC,
                count if count < 0 => return count as i32,
                count => done += count as usize,
            }
        }
        0
    }

    fn read(&mut self, buffer: &mut [u8]) -> i32 {
        match &self.file {
            Some(file) => self.calls.read(file, buffer) as i32,
            None => -libc::EBADF,
        }
    }

    fn close(&mut self) -> i32 {
        match self.file.take() {
            Some(file) => self.calls.close(file) as i32,
            None => -libc::EBADF,
        }
    }

    fn stat(&mut self, name: &CStr) -> i32 {
        self.calls.stat(self.path.of(name)) as i32
    }

    fn rename(&mut self, from: &CStr, to: &CStr) -> i32 {
        let (from, to) = (self.path.of(from), self.other.of(to));
        self.calls.rename(from, to) as i32
    }

    fn unlink(&mut self, name: &CStr) -> i32 {
        self.calls.unlink(self.path.of(name)) as i32
    }

    fn make_directory(&mut self, name: &CStr) -> i32 {
        self.calls.make_directory(self.path.of(name)) as i32
    }

    fn remove_directory(&mut self, name: &CStr) -> i32 {
        self.calls.remove_directory(self.path.of(name)) as i32
    }

    fn list(&mut self, directory: &Path, _buffer: &mut [u8]) -> i32 {
        let directory = self.calls.full(directory);
        self.calls.list(&directory) as i32
    }
}

/// A path of our own making below `base`, as a library takes it; `base` has no `/` at either end.
pub fn below(base: &str, path: &str) -> CString {
    let path = path.trim_start_matches('/');
    let whole = if base.is_empty() {
        format!("/{path}")
    } else {
        format!("/{base}/{path}")
    };
    let whole = match whole.trim_end_matches('/') {
        "" => "/",
        trimmed => trimmed,
    };
    CString::new(whole).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_path_changes_its_last_name_alone() {
        let mut path = WholePath::default();
        path.enter(c"/a/b");
        assert_eq!(path.of(c"longer"), c"/a/b/longer");
        assert_eq!(path.of(c"x"), c"/a/b/x");
        path.enter(c"/");
        assert_eq!(path.of(c"x"), c"/x");
    }

    #[test]
    fn paths_lie_below_the_base_with_one_slash_between_names() {
        for (base, path, expected) in [
            ("", "/", c"/"),
            ("", "/x", c"/x"),
            ("a/b", "", c"/a/b"),
            ("a", "/x/y", c"/a/x/y"),
        ] {
            assert_eq!(below(base, path).as_c_str(), expected);
        }
    }
}
