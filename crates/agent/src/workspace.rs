//! The directory `leadline-<id>` on a target: marked as leadline's, and removed only with that mark.
//!
//! The rules and the words of `run/workspace.py`, which does the same where leadline is installed. Either removes what
//! the other made.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use leadline_engine::sys::directory::open_beneath;
use rustix::fs::{Advice, XattrFlags};

use crate::errors::{Outcome, Refusal, plain_words};
use crate::storage::{Storage, UNREADABLE, own_directory, slice_end};

pub const MARK: &str = ".leadline";
const PREFIX: &str = "leadline-";
const MARK_BYTES_MAX: usize = 4096;
/// So long after its maker was killed a directory may still come.
const LATE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(100);
const SUFFIX_MAX: usize = 40;

/// Where a study works and what is removed after it: `leadline-<id>`, never any other directory. For a target with a
/// pool of its own it is `leadline-<id>-<target>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    directory: String,
    location: Option<String>,
}

/// Where a file system is mounted, its type, and what it was mounted from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountPlace {
    pub mount_point: String,
    pub file_system: String,
    pub source: String,
}

impl MountPlace {
    fn words(&self) -> String {
        let Self {
            mount_point,
            file_system,
            source,
        } = self;
        format!("{file_system} ({source}) mounted on {mount_point}")
    }
}

impl Workspace {
    /// Refuses any other directory, wherever its name comes from.
    pub fn new(directory: &str, location: Option<&str>) -> Outcome<Self> {
        let (top, name) = directory.rsplit_once('/').unwrap_or(("", directory));
        let below_url = location.is_some() && !top.is_empty();
        if !directory.starts_with('/') || id_in(name).is_none() || below_url {
            return Err(Refusal::new(
                format!("'{directory}' is no directory that a study works in"),
                "nothing was done; the result was changed: restore it from a copy",
            ));
        }
        Ok(Self {
            directory: directory.to_owned(),
            location: location.map(str::to_owned),
        })
    }

    fn study_id(&self) -> &str {
        self.directory
            .rsplit('/')
            .next()
            .and_then(id_in)
            .unwrap_or_default()
    }

    fn words(&self) -> String {
        match &self.location {
            None => self.directory.clone(),
            Some(location) => format!("{} of {location}", self.directory),
        }
    }

    fn open(&self) -> Outcome<Storage> {
        Storage::open(self.location.as_deref())
    }
}

/// The id in a name `leadline-<id>` or `leadline-<id>-<target>`.
fn id_in(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(PREFIX)?;
    let (id, target) = match rest.split_once('-') {
        Some((id, target)) => (id, Some(target)),
        None => (rest, None),
    };
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_target = |name: &str| {
        (1..=SUFFIX_MAX).contains(&name.len())
            && name.bytes().next().is_some_and(letter)
            && name
                .bytes()
                .all(|byte| letter(byte) || byte == b'_' || byte == b'-')
    };
    (is_id(id) && target.is_none_or(is_target)).then_some(id)
}

fn is_id(id: &str) -> bool {
    (8..=64).contains(&id.len())
        && id
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// What stands in the mark, to the byte: as every version wrote it.
fn mark_of(id: &str) -> Vec<u8> {
    format!("{{\"format\": \"leadline.workspace/1\", \"id\": \"{id}\"}}").into_bytes()
}

fn mark_in(storage: &mut Storage, place: &Workspace) -> Outcome<Option<Vec<u8>>> {
    storage.get(&place.directory, MARK, MARK_BYTES_MAX)
}

/// The mark of a directory that could be the study's; of any other one that is nobody's.
fn known_mark(storage: &mut Storage, place: &Workspace, id: &str) -> Outcome<Option<Vec<u8>>> {
    if place.study_id() == id && storage.may_be_named(&place.directory)? {
        mark_in(storage, place)
    } else {
        Ok(Some(UNREADABLE.to_owned()))
    }
}

/// Whether there is nothing but the beginning of the mark.
fn is_begun(
    storage: &mut Storage,
    place: &Workspace,
    mark: Option<&[u8]>,
    whole: &[u8],
) -> Outcome<bool> {
    Ok(whole.starts_with(mark.unwrap_or_default())
        && storage
            .holds(&place.directory)?
            .iter()
            .all(|name| name == MARK))
}

/// Creates and marks the directory; with a `pool`, its files are kept there, from the mark on.
///
/// One that exists and is not the study's is refused.
pub fn make_workspace(place: &Workspace, id: &str, pool: Option<&str>) -> Outcome<()> {
    if !is_id(id) {
        return Err(Refusal::new(
            format!("the id '{id}' is none of leadline's: it has 8 to 64 of the digits 0-9a-f"),
            "nothing was done; the manifest was changed: restore it from a copy of the result",
        ));
    }
    let mut storage = place.open()?;
    let whole = mark_of(id);
    match storage.make_directory(&place.directory) {
        Ok(()) => {}
        Err(refusal) if refusal.errno != Some(libc::EEXIST) => return Err(refusal),
        Err(_) => {
            let mark = known_mark(&mut storage, place, id)?;
            if mark.as_deref() == Some(&whole) {
                return pool.map_or(Ok(()), |pool| require_pool(place, pool));
            }
            if !is_begun(&mut storage, place, mark.as_deref(), &whole)? {
                return Err(Refusal::new(
                    format!("{} exists and leadline did not make it", place.words()),
                    storage.foreign_remedy(),
                ));
            }
            // A server may carry out what a maker asked for long after that was ended.
            storage.remove_empty(&place.directory, MARK)?;
            storage.make_directory(&place.directory)?;
        }
    }
    let Some(pool) = pool else {
        return storage.put(&place.directory, MARK, &whole);
    };
    let made = set_pool(place, pool)
        .and_then(|()| storage.put(&place.directory, MARK, &whole))
        .and_then(|()| require_pool(place, pool));
    if made.is_err() {
        storage.remove_empty(&place.directory, MARK)?;
    }
    made
}

/// Files made in the directory from now on are kept in `pool`.
fn set_pool(place: &Workspace, pool: &str) -> Outcome<()> {
    let opened = own_directory(Path::new(&place.directory))?;
    let name = c"ceph.dir.layout.pool";
    let set = rustix::fs::fsetxattr(&opened, name, pool.as_bytes(), XattrFlags::empty());
    set.map_err(|error| {
        let error = io::Error::from(error);
        let words = place.words();
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => Refusal::new(
                format!("{words}: this client may not set layouts"),
                "its MDS capability needs p, as ceph fs authorize FILE_SYSTEM client.NAME PATH rwp gives it to a new \
                 client; or let somebody set the layout of a directory, and name that as the target",
            ),
            Some(libc::EINVAL) => Refusal::new(
                format!("{words}: the file system keeps no files in a pool {pool}"),
                format!("see its pools: ceph fs ls; one more: ceph fs add_data_pool FILE_SYSTEM {pool}"),
            ),
            Some(libc::EOPNOTSUPP | libc::ENOTTY) => Refusal::new(
                format!("{words} has no layouts: it is no directory of a mounted CephFS"),
                "leave the pool out, or name a directory of one",
            ),
            _ => Refusal::new(
                format!("{words}: its layout cannot be set to pool {pool}: {}", plain_words(&error)),
                "see the file system's mount",
            ),
        }
    })
}

fn require_pool(place: &Workspace, pool: &str) -> Outcome<()> {
    let path = Path::new(&place.directory).join(MARK);
    let mut value = [0_u8; 256];
    let found = rustix::fs::getxattr(&path, c"ceph.file.layout.pool", &mut value);
    let count = found.map_err(|error| {
        Refusal::new(
            format!(
                "{}: its layout cannot be read: {}",
                path.display(),
                plain_words(&error.into())
            ),
            "nothing was laid out; mount it anew",
        )
    })?;
    if &value[..count] == pool.as_bytes() {
        return Ok(());
    }
    let kept = String::from_utf8_lossy(&value[..count]).into_owned();
    Err(Refusal::new(
        format!(
            "{} is kept in pool {kept}, and pool {pool} was asked for",
            path.display()
        ),
        "nothing was laid out; see what else sets layouts there: getfattr -n ceph.dir.layout DIRECTORY",
    ))
}

/// Removes what begins with `prefix` and a dot, for `slice_s` seconds at most; true when more is left.
pub fn remove_files(place: &Workspace, prefix: &str, slice_s: f64) -> Outcome<bool> {
    if ["", ".", ".."].contains(&prefix) || prefix.contains(['/', '\0']) {
        return Err(Refusal::new(
            format!(
                "'{prefix}' is no plain name of a file or directory: it would lead to another place"
            ),
            "nothing was done; the result was changed: restore it from a copy",
        ));
    }
    let until = slice_end(slice_s);
    place
        .open()?
        .remove_files(&place.directory, &format!("{prefix}."), until)
}

/// Removes the directory with what is the study's in it, for `slice_s` seconds at most; true when more is left.
///
/// Its names begin with one of `begins`: any other stays, and the directory with it. Where the directory is not there it
/// counts as removed only if the target lies on what it lay on: `was`. Only where its mark is this study's, to the byte;
/// the mark goes last. With `late` a directory that is not there is looked for again for a moment: a server can carry out
/// later what a maker asked for that is dead now.
pub fn remove_workspace(
    place: &Workspace,
    id: &str,
    begins: &[String],
    was: Option<&MountPlace>,
    slice_s: f64,
    late: bool,
) -> Outcome<bool> {
    let mut storage = place.open()?;
    let end = Instant::now() + LATE;
    loop {
        if let Some(more) = removed(&mut storage, place, id, begins, was, slice_s)? {
            return Ok(more);
        }
        if !late || Instant::now() > end {
            return Ok(false);
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether more is left; `None` where the directory is not there.
fn removed(
    storage: &mut Storage,
    place: &Workspace,
    id: &str,
    begins: &[String],
    was: Option<&MountPlace>,
    slice_s: f64,
) -> Outcome<Option<bool>> {
    let whole = mark_of(id);
    if storage.is_absent(&place.directory)? {
        if place.location.is_none() {
            let top = Path::new(&place.directory)
                .parent()
                .unwrap_or(Path::new("/"));
            require_mounted(top, was)?;
        }
        return Ok(None);
    }
    let looked = known_mark(storage, place, id).and_then(|mark| {
        let begun =
            mark.as_deref() != Some(&whole) && is_begun(storage, place, mark.as_deref(), &whole)?;
        if begun {
            storage.remove_empty(&place.directory, MARK)?;
        }
        Ok((mark, begun))
    });
    let mark = match looked {
        Ok((_, true)) => return Ok(Some(false)),
        Ok((mark, false)) => mark,
        // Removed through another way to the same directory, which this one still shows.
        Err(gone) if gone.errno == Some(libc::ENOENT) => return Ok(None),
        Err(other) => return Err(other),
    };
    if mark.as_deref() == Some(&whole) {
        let until = slice_end(slice_s);
        return storage
            .remove_directory(&place.directory, begins, MARK, until)
            .map(Some);
    }
    Err(Refusal::new(
        format!(
            "{} does not carry this study's mark and was not removed",
            place.words()
        ),
        "look into it by hand",
    ))
}

/// Refuses where the target `top` is not there, or lies on something else than it did.
fn require_mounted(top: &Path, was: Option<&MountPlace>) -> Outcome<()> {
    if !top.is_dir() {
        return Err(Refusal::new(
            format!(
                "{} is no directory any more: what the study left in it was not found",
                top.display()
            ),
            "bring it back to this place, then do this again",
        ));
    }
    let Some(was) = was else { return Ok(()) };
    let resolved = top
        .canonicalize()
        .map_err(|error| Refusal::system(&error, top))?;
    let text = std::fs::read("/proc/self/mountinfo")
        .map_err(|error| Refusal::system(&error, "/proc/self/mountinfo".as_ref()))?;
    match mount_above(&resolved, &String::from_utf8_lossy(&text)) {
        Some(now) if now != *was => Err(Refusal::new(
            format!(
                "{} lay on {} when the study began, and lies on {} now",
                top.display(),
                was.words(),
                now.words()
            ),
            "mount it as it was, then do this again",
        )),
        _ => Ok(()),
    }
}

/// The mount with the longest mount point above a resolved path; the latest of several.
fn mount_above(path: &Path, mountinfo: &str) -> Option<MountPlace> {
    let mounts = mountinfo.lines().filter_map(mount_in);
    mounts
        .filter(|mount| path.starts_with(PathBuf::from(&mount.mount_point)))
        .reduce(|best, next| {
            if next.mount_point.len() >= best.mount_point.len() {
                next
            } else {
                best
            }
        })
}

/// One line of mountinfo (proc_pid_mountinfo(5)).
fn mount_in(line: &str) -> Option<MountPlace> {
    let fields: Vec<&str> = line.split(' ').collect();
    let separator = fields.iter().skip(6).position(|field| *field == "-")? + 6;
    Some(MountPlace {
        mount_point: unescaped(fields.get(4)?),
        file_system: unescaped(fields.get(separator + 1)?),
        source: unescaped(fields.get(separator + 2)?),
    })
}

/// Undoes the kernel's octal escapes (space, tab, newline, backslash, hash).
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                found.push(char::from(code));
                found.push_str(&part[3..]);
            }
            None => {
                found.push('\\');
                found.push_str(part);
            }
        }
    }
    found
}

/// Asks the kernel to drop these files' clean pages from its cache: the study's alone, not the host's.
pub fn forget_cached(directory: &Path, prefix: &str) -> Outcome<()> {
    let opened = own_directory(directory)?;
    let begin = format!("{prefix}.");
    for name in crate::removal::names_in(&opened, directory, usize::MAX)? {
        if !name.to_bytes().starts_with(begin.as_bytes()) {
            continue;
        }
        let refused = |error: io::Error| Refusal::system(&error, directory);
        let flags = libc::O_RDONLY | libc::O_NONBLOCK;
        let file = open_beneath(&opened, &name, flags, 0).map_err(refused)?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)
            .map_err(|error| refused(error.into()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
