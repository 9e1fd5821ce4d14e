//! The storage that a study works on: what a mount holds, or what a library reaches, chosen here alone.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use leadline_engine::schemes::{self, Location};
use leadline_engine::sys::directory::{open_beneath, why_not_ours};
use leadline_engine::volume::Volume;
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use crate::errors::{Outcome, Refusal, plain_words};
use crate::removal::{last_name, names_in, open_directory, open_in, open_parent, remove_entries};

/// What a look for the owner that files of leadline show makes and removes.
const OWNER_PROBE: &str = ".leadline-owner-";
/// Of very many names, those that are looked at.
const NAMES_MAX: usize = 1000;
/// A slice of a removal at most.
const SLICE_MAX_S: f64 = 86_400.0;
/// What stands for a mark that cannot be read: nobody's.
pub const UNREADABLE: &[u8] = b"?";

/// The end of a slice of `seconds`.
pub fn slice_end(seconds: f64) -> Instant {
    let seconds = if seconds.is_nan() {
        0.0
    } else {
        seconds.clamp(0.0, SLICE_MAX_S)
    };
    Instant::now() + Duration::from_secs_f64(seconds)
}

/// Directories and small files by their names.
pub enum Storage {
    Mounted(Mounted),
    Library(Arc<dyn Volume>),
}

/// Refuses a directory that another user made, or may change.
pub fn require_own(opened: &OwnedFd, words: &str) -> Outcome<()> {
    let why = why_not_ours(opened).map_err(|error| Refusal::system(&error, words.as_ref()))?;
    match why {
        None => Ok(()),
        Some(why) => Err(Refusal::new(
            format!("{words} is not leadline's alone: {why}"),
            "nothing in it was touched: look into it; where it is yours, chmod go-w it and do this again",
        )),
    }
}

/// A directory of leadline's, open.
pub fn own_directory(path: &Path) -> Outcome<OwnedFd> {
    let (_, opened) = open_directory(path)?;
    require_own(&opened, &path.display().to_string())?;
    Ok(opened)
}

fn require_nothing_else(directory: &str, names: &BTreeSet<String>, mark: &str) -> Outcome<()> {
    match names.iter().find(|name| !name.starts_with(mark)) {
        None => Ok(()),
        Some(other) => Err(Refusal::new(
            format!("{directory} holds '{other}', which leadline did not make: it was left alone"),
            "move it elsewhere, then do this again",
        )),
    }
}

impl Storage {
    /// What the URL `location` leads to, connected; without one, what is mounted on this host.
    pub fn open(location: Option<&str>) -> Outcome<Self> {
        match location {
            None => Ok(Self::Mounted(Mounted::default())),
            Some(url) => Ok(Self::Library(schemes::connect(&Location::parse(url)?)?)),
        }
    }

    /// What a person does about a directory that is in the way.
    pub fn foreign_remedy(&self) -> &'static str {
        match self {
            Self::Mounted(_) => "move it away, or name another target",
            Self::Library(_) => "remove it, or name another target",
        }
    }

    /// EEXIST where it is there.
    pub fn make_directory(&mut self, directory: &str) -> Outcome<()> {
        match self {
            Self::Mounted(mounted) => mounted.make_directory(directory),
            Self::Library(volume) => Ok(volume.make_directory(directory)?),
        }
    }

    /// A small file in a directory, written whole and synced.
    pub fn put(&mut self, directory: &str, name: &str, data: &[u8]) -> Outcome<()> {
        match self {
            Self::Mounted(mounted) => mounted.put(directory, name, data),
            Self::Library(volume) => Ok(volume.put(&format!("{directory}/{name}"), data)?),
        }
    }

    /// A small file, its first bytes; `None` where there is none.
    pub fn get(&mut self, directory: &str, name: &str, limit: usize) -> Outcome<Option<Vec<u8>>> {
        match self {
            Self::Mounted(mounted) => mounted.get(directory, name, limit),
            Self::Library(volume) => Ok(volume.get(&format!("{directory}/{name}"), limit)?),
        }
    }

    /// True where there is certainly no such directory. Where directories are only names, nobody knows.
    pub fn is_absent(&self, directory: &str) -> Outcome<bool> {
        match self {
            Self::Mounted(_) => match std::fs::symlink_metadata(directory) {
                Ok(_) => Ok(false),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
                Err(error) => Err(Refusal::system(&error, directory.as_ref())),
            },
            Self::Library(_) => Ok(false),
        }
    }

    /// Whether it could be the directory of a study, and no link to another: at the top of what a URL leads to.
    pub fn may_be_named(&mut self, directory: &str) -> Outcome<bool> {
        match self {
            Self::Mounted(mounted) => match mounted.opened(directory) {
                Ok(_) => Ok(true),
                Err(refusal) if refusal.errno.is_some_and(is_no_directory) => Ok(false),
                Err(refusal) => Err(refusal),
            },
            Self::Library(_) => Ok(directory.rfind('/') == Some(0)),
        }
    }

    /// Names in a directory, of very many the first; ENOENT where it is certainly not there.
    pub fn holds(&mut self, directory: &str) -> Outcome<BTreeSet<String>> {
        match self {
            Self::Mounted(mounted) => {
                let names = names_in(&mounted.opened(directory)?.1, directory.as_ref(), NAMES_MAX)?;
                let text = |name: CString| name.to_string_lossy().into_owned();
                Ok(names.into_iter().map(text).collect())
            }
            Self::Library(volume) => {
                Ok(volume.names_in(directory, NAMES_MAX)?.into_iter().collect())
            }
        }
    }

    /// Removes the mark and the directory, which fails where anything else is in it.
    pub fn remove_empty(&mut self, directory: &str, mark: &str) -> Outcome<()> {
        match self {
            Self::Mounted(mounted) => mounted.remove_empty(directory, mark),
            Self::Library(volume) => Ok(volume.remove_directory(directory, mark)?),
        }
    }

    /// Removes what begins with `prefix`, with all below it; true when more is left after the time.
    pub fn remove_files(&mut self, directory: &str, prefix: &str, until: Instant) -> Outcome<bool> {
        match self {
            Self::Mounted(mounted) => {
                let chosen = |name: &[u8]| name.starts_with(prefix.as_bytes());
                let opened = &mounted.own(directory)?.1;
                remove_entries(opened, directory.as_ref(), until, &chosen)
            }
            Self::Library(volume) => Ok(volume.remove_files(directory, prefix, until)?),
        }
    }

    /// Removes what begins with one of `begins`, then the mark, then the directory; true when more is left.
    ///
    /// Where anything else is in it, the mark and the directory stay, and that is an error.
    pub fn remove_directory(
        &mut self,
        directory: &str,
        begins: &[String],
        mark: &str,
        until: Instant,
    ) -> Outcome<bool> {
        if let Self::Mounted(mounted) = self {
            let ours = |name: &str| {
                begins.iter().any(|begin| name.starts_with(begin)) || name.starts_with(OWNER_PROBE)
            };
            let chosen =
                |name: &[u8]| name != mark.as_bytes() && std::str::from_utf8(name).is_ok_and(ours);
            let opened = &mounted.own(directory)?.1;
            if remove_entries(opened, directory.as_ref(), until, &chosen)? {
                return Ok(true);
            }
            require_nothing_else(directory, &self.holds(directory)?, mark)?;
            self.remove_empty(directory, mark)?;
            return Ok(false);
        }
        match self.remove_names(directory, begins, mark, until) {
            // What is gone already is removed; the directory itself has to be, not something in it.
            Err(missing) if missing.errno == Some(libc::ENOENT) => match self.holds(directory) {
                Err(gone) if gone.errno == Some(libc::ENOENT) => Ok(false),
                Err(other) => Err(other),
                Ok(_) => Err(missing),
            },
            found => found,
        }
    }

    /// The same where a library reaches it. Looked at before: where there are no directories, only leadline's own lists
    /// say what is in one.
    fn remove_names(
        &mut self,
        directory: &str,
        begins: &[String],
        mark: &str,
        until: Instant,
    ) -> Outcome<bool> {
        let mut others = self.holds(directory)?;
        others.retain(|name| !begins.iter().any(|begin| name.starts_with(begin)));
        require_nothing_else(directory, &others, mark)?;
        if self.remove_files(directory, "", until)? {
            return Ok(true);
        }
        self.remove_empty(directory, mark)?;
        Ok(false)
    }

    /// Bytes in all, and free; `None` where the storage does not say.
    pub fn space(&self, directory: &str) -> Outcome<Option<(u64, u64)>> {
        match self {
            Self::Mounted(_) => {
                let found = rustix::fs::statvfs(directory)
                    .map_err(|error| Refusal::system(&error.into(), directory.as_ref()))?;
                Ok(Some((
                    found.f_blocks * found.f_frsize,
                    found.f_bavail * found.f_frsize,
                )))
            }
            Self::Library(volume) => match volume.space() {
                Ok(found) => Ok(Some((found.total_bytes, found.free_bytes))),
                Err(error) if error.errno == libc::ENOTSUP => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }
}

/// A link, or what may not be read, is no directory of a study.
fn is_no_directory(errno: i32) -> bool {
    [libc::ELOOP, libc::ENOTDIR, libc::EACCES].contains(&errno)
}

/// Mounted file systems. A directory is opened once; all else is done by its descriptor and that of where it lies.
#[derive(Default)]
pub struct Mounted {
    held: HashMap<String, (OwnedFd, OwnedFd)>,
}

impl Mounted {
    fn opened(&mut self, directory: &str) -> Outcome<&(OwnedFd, OwnedFd)> {
        if !self.held.contains_key(directory) {
            let found = open_directory(Path::new(directory))?;
            self.held.insert(directory.to_owned(), found);
        }
        self.held.get(directory).ok_or_else(Refusal::default)
    }

    /// The same; refused for a directory that another user made, or may change.
    fn own(&mut self, directory: &str) -> Outcome<&(OwnedFd, OwnedFd)> {
        let held = self.opened(directory)?;
        require_own(&held.1, directory)?;
        Ok(held)
    }

    /// For this user alone.
    fn make_directory(&mut self, directory: &str) -> Outcome<()> {
        let path = Path::new(directory);
        let made = (|| {
            let parent = open_parent(path)?;
            rustix::fs::mkdirat(&parent, &last_name(path)?, Mode::from_raw_mode(0o700))
                .map_err(|error| Refusal::system(&error.into(), path))?;
            let opened = open_new(&parent, path)?;
            Ok((parent, opened))
        })();
        let held = made.map_err(|refusal: Refusal| match refusal.errno {
            None | Some(libc::EEXIST) => refusal,
            Some(errno) => Refusal::new(
                format!(
                    "cannot make a directory below {}: {}",
                    path.parent().unwrap_or(path).display(),
                    plain_words(&io::Error::from_raw_os_error(errno))
                ),
                "check that the target is mounted, is not read-only and may be written by you",
            ),
        })?;
        self.held.insert(directory.to_owned(), held);
        Ok(())
    }

    /// Nothing is in its place.
    fn put(&mut self, directory: &str, name: &str, data: &[u8]) -> Outcome<()> {
        let refused = |error: io::Error| Refusal::system(&error, &Path::new(directory).join(name));
        let opened = &self.own(directory)?.1;
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
        let made = open_beneath(opened, &plain_name(name)?, flags, 0o600).map_err(refused)?;
        let mut file = File::from(made);
        file.write_all(data).map_err(refused)?;
        file.sync_all().map_err(refused)
    }

    /// A small file of leadline's; one that is not as `put` makes it, or cannot be read, is nobody's.
    fn get(&mut self, directory: &str, name: &str, limit: usize) -> Outcome<Option<Vec<u8>>> {
        let refused = |error: io::Error| Refusal::system(&error, &Path::new(directory).join(name));
        let own = &self.opened(directory)?.1;
        let flags = libc::O_RDONLY | libc::O_NONBLOCK;
        let file = match open_beneath(own, &plain_name(name)?, flags, 0) {
            Ok(opened) => File::from(opened),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(_) => return Ok(Some(UNREADABLE.to_owned())),
        };
        let found = file.metadata().map_err(refused)?;
        let ours = rustix::fs::fstat(own).map_err(|error| refused(error.into()))?;
        if !found.is_file() || found.nlink() > 1 || found.uid() != ours.st_uid {
            return Ok(Some(UNREADABLE.to_owned()));
        }
        require_own(own, directory)?;
        let mut bytes = Vec::new();
        file.take(limit as u64)
            .read_to_end(&mut bytes)
            .map_err(refused)?;
        Ok(Some(bytes))
    }

    /// The mark first; a directory that is not empty stays, with an error.
    fn remove_empty(&mut self, directory: &str, mark: &str) -> Outcome<()> {
        let path = Path::new(directory);
        let refused = |error: Errno| Refusal::system(&error.into(), path);
        let (parent, opened) = self.own(directory)?;
        match rustix::fs::unlinkat(opened, &plain_name(mark)?, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(refused(error)),
        }
        rustix::fs::unlinkat(parent, &last_name(path)?, AtFlags::REMOVEDIR).map_err(refused)?;
        self.held.remove(directory);
        Ok(())
    }
}

/// The directory that was just made there: it is empty, or another took its name meanwhile.
fn open_new(parent: &OwnedFd, path: &Path) -> Outcome<OwnedFd> {
    let opened = open_in(parent, path)?;
    if names_in(&opened, path, 1)?.is_empty() {
        return Ok(opened);
    }
    let shown = path.display();
    Err(Refusal::new(
        format!(
            "{shown} was exchanged for another directory while it was made: nothing in it was touched"
        ),
        format!(
            "find out who may rename entries of {}, or name another target",
            path.parent().unwrap_or(path).display()
        ),
    ))
}

/// A name as the kernel takes it.
pub fn plain_name(name: &str) -> Outcome<CString> {
    CString::new(name).map_err(|_| Refusal::new("a name holds a zero byte", ""))
}
