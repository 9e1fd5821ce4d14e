//! `cephfs://`: CephFS without the kernel.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::options::{CONF, KEYRING, USER, choices, first, wrong_climb, wrong_form};
use super::{Choice, Engine, Held, Memory, Reaches, Scheme, Storage, Word};
use crate::schemes::Location;
use crate::sys::ceph::libcephfs::{Access, Libcephfs, Mounted};
use crate::sys::file::OpenHow;
use crate::sys::library::Refusal;
use crate::volume::names::{Names, OpenAs, Operation, PathCalls, PathNames, below};
use crate::volume::{Handle, Outcome, Space, Volume, VolumeError, is_chosen};

const WORDS: &str =
    "CephFS through libcephfs, without the kernel: a thread for each outstanding operation";

pub static SCHEME: Scheme = Scheme {
    example: "cephfs:///projects?user=bench&fs=cephfs",
    package: "libcephfs2",
    choices: choices! {
        CONF, USER, KEYRING;
        text "fs" = "": "the file system's name; empty: the cluster's default";
    },
    operations: Operation::ALL,
    storage: Storage::Cluster,
    ack_means: "in the cache of libcephfs in this process, and on OSDs once it is synced or written back",
    reaches: Some(Reaches {
        what: "file_system",
        erasure: true,
        namespaces: false,
    }),
    check: |location| {
        let three = "a path of the file system follows, with three slashes";
        first([
            wrong_form(!location.container.is_empty(), three),
            wrong_climb(location),
        ])
    },
    describe: |location| {
        let name = location.text("fs");
        let mut words = vec!["CephFS through libcephfs".into()];
        if !name.is_empty() {
            words.push(format!(", file system {name}").into());
        }
        words.push(Word::Pool);
        words
    },
    missing: || Libcephfs::get().err(),
    connect: Some(|location| Ok(Arc::new(Mount::connect(location)?))),
    ..Scheme::new(
        "cephfs",
        WORDS,
        &[Engine {
            memory: MEMORY,
            ..Engine::new("libcephfs", WORDS)
        }],
    )
};

/// Each call copies what it is handed, into a cache of the client's own (`client_oc_size`, 200 MiB).
const MEMORY: Memory = Memory {
    read: Held::COPIED,
    write: Held::COPIED,
    stream_bytes: 256 << 20,
};

const CONNECT_S: &str = "10";

/// A mounted client. Paths are below the location's directory.
pub struct Mount {
    mounted: Arc<Mounted>,
    base: String,
}

struct Open {
    mounted: Arc<Mounted>,
    descriptor: i32,
}

impl Mount {
    /// Connects and mounts.
    pub fn connect(location: &Location) -> Outcome<Self> {
        let access = Access {
            id: location.text("user").to_owned(),
            conf: location.text("conf").to_owned(),
            keyring: location.text("keyring").to_owned(),
            file_system: location.text("fs").to_owned(),
            settings: vec![("client_mount_timeout", CONNECT_S.to_owned())],
        };
        let mounted = Mounted::mount(&access).map_err(|refusal| refused(refusal, location))?;
        let this = Self {
            mounted: Arc::new(mounted),
            base: location.path.clone(),
        };
        let result = this.mounted.look_into(&this.full(""));
        this.done(result, "look into", "")?;
        Ok(this)
    }

    fn full(&self, path: &str) -> CString {
        below(&self.base, path)
    }

    /// True when more is left.
    fn remove_tree(&self, directory: &str, until: Instant) -> Outcome<bool> {
        if self.remove_files(directory, "", until)? {
            return Ok(true);
        }
        let result = self.mounted.remove_directory(&self.full(directory));
        self.done(result, "remove", directory)?;
        Ok(false)
    }
}

fn refused(refusal: Refusal, location: &Location) -> VolumeError {
    match refusal {
        Refusal::Library(missing) => missing.into(),
        Refusal::Step(operation, errno) => {
            let user = location.text("user");
            let remedy = match errno {
                libc::ENOENT => {
                    "check conf=, keyring= and fs=: one of them names nothing".to_owned()
                }
                libc::EACCES | libc::EPERM => {
                    format!("the cluster refuses client.{user}: check user= and keyring=")
                }
                libc::ETIMEDOUT => format!(
                    "no monitor or metadata server answered within {CONNECT_S} s: check conf=, and that they run"
                ),
                _ => String::new(),
            };
            VolumeError::new(errno, operation, &location.url).with_remedy(&remedy)
        }
    }
}

/// What the library answers when a directory is to be unlinked.
fn may_be_directory(result: i64) -> bool {
    [libc::EISDIR, libc::EPERM]
        .map(|errno| -i64::from(errno))
        .contains(&result)
}

impl Volume for Mount {
    fn names(&self) -> Outcome<Box<dyn Names>> {
        Ok(Box::new(PathNames::new(Calls {
            mounted: Arc::clone(&self.mounted),
            base: self.base.clone(),
        })))
    }

    fn make_directory(&self, path: &str) -> Outcome<()> {
        let result = self.mounted.make_directory(&self.full(path));
        self.done(result, "make the directory", path)
    }

    fn shown(&self, path: &str) -> String {
        self.full(path).to_string_lossy().into_owned()
    }

    fn names_in(&self, directory: &str, _limit: usize) -> Outcome<Vec<String>> {
        let names = self.mounted.names(&self.full(directory));
        names.map_err(|errno| VolumeError::new(errno, "list", directory))
    }

    fn open(&self, path: &str, how: OpenHow, _file_bytes: u64) -> Outcome<Arc<dyn Handle>> {
        let access = if how.write {
            libc::O_RDWR
        } else {
            libc::O_RDONLY
        };
        let fresh = if how.fresh {
            libc::O_CREAT | libc::O_TRUNC
        } else {
            0
        };
        let direct = if how.direct { libc::O_DIRECT } else { 0 };
        let flags = access | fresh | direct | libc::O_NOFOLLOW;
        let descriptor = self.mounted.open(&self.full(path), flags);
        self.done(descriptor, if how.fresh { "create" } else { "open" }, path)?;
        Ok(Arc::new(Open {
            mounted: Arc::clone(&self.mounted),
            descriptor: descriptor as i32,
        }))
    }

    fn space(&self) -> Outcome<Space> {
        let found = self.mounted.space(&self.full(""));
        found
            .map(Space::from)
            .map_err(|errno| VolumeError::new(errno, "ask for the space of", &self.base))
    }

    fn pool(&self) -> Option<String> {
        self.mounted.pool(&self.full(""))
    }

    fn remove_files(&self, directory: &str, prefix: &str, until: Instant) -> Outcome<bool> {
        let names = self.names_in(directory, usize::MAX)?;
        for name in names.iter().filter(|name| is_chosen(name, prefix)) {
            let path = format!("{directory}/{name}");
            let full = self.full(&path);
            match self.mounted.unlink(&full) {
                refused
                    if may_be_directory(refused)
                        && self.mounted.is_directory(&full) == Ok(true) =>
                {
                    if self.remove_tree(&path, until)? {
                        return Ok(true);
                    }
                }
                result => self.done(result, "remove", &path)?,
            }
            if Instant::now() > until {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn remove_directory(&self, directory: &str, mark: &str) -> Outcome<()> {
        let path = format!("{directory}/{mark}");
        self.removed(self.mounted.unlink(&self.full(&path)), &path)?;
        let result = self.mounted.remove_directory(&self.full(directory));
        self.done(result, "remove", directory)
    }
}

impl Handle for Open {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> i64 {
        self.mounted.read(self.descriptor, buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> i64 {
        self.mounted.write(self.descriptor, buffer, offset)
    }

    fn sync(&self, data_only: bool) -> i64 {
        self.mounted.sync(self.descriptor, data_only)
    }

    fn size(&self) -> i64 {
        self.mounted.size(self.descriptor)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.mounted.close(self.descriptor);
    }
}

/// One thread's hold on the client that all threads share.
struct Calls {
    mounted: Arc<Mounted>,
    base: String,
}

impl PathCalls for Calls {
    type File = i32;

    fn full(&self, path: &Path) -> CString {
        below(&self.base, &path.to_string_lossy())
    }

    fn open(&mut self, path: &CStr, how: OpenAs) -> Result<i32, i64> {
        let flags = match how {
            OpenAs::New => libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL,
            OpenAs::Read { direct: true } => libc::O_RDONLY | libc::O_DIRECT,
            OpenAs::Read { direct: false } => libc::O_RDONLY,
        };
        match self.mounted.open(path, flags | libc::O_NOFOLLOW) {
            errno if errno < 0 => Err(errno),
            descriptor => Ok(descriptor as i32),
        }
    }

    fn write(&mut self, file: &i32, data: &[u8], offset: u64) -> i64 {
        self.mounted.write(*file, data, offset)
    }

    fn read(&mut self, file: &i32, buffer: &mut [u8]) -> i64 {
        self.mounted.read(*file, buffer, 0)
    }

    fn close(&mut self, file: i32) -> i64 {
        self.mounted.close(file)
    }

    fn stat(&mut self, path: &CStr) -> i64 {
        self.mounted.look_at(path)
    }

    fn rename(&mut self, from: &CStr, to: &CStr) -> i64 {
        self.mounted.rename(from, to)
    }

    fn unlink(&mut self, path: &CStr) -> i64 {
        self.mounted.unlink(path)
    }

    fn make_directory(&mut self, path: &CStr) -> i64 {
        self.mounted.make_directory(path)
    }

    fn remove_directory(&mut self, path: &CStr) -> i64 {
        self.mounted.remove_directory(path)
    }

    fn list(&mut self, path: &CStr) -> i64 {
        self.mounted.list(path)
    }
}
