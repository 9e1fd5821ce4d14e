//! Removes directories of any size: in slices of time, with memory for some entries only, and nothing else.
//!
//! No link is followed and no mount entered: all is done by descriptors. The same rules, in the same words, as where
//! leadline is installed (`removal.py`).

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use leadline_engine::sys::directory::open_beneath;
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use crate::errors::{Outcome, Refusal};

/// Entries listed at a time.
const BATCH: usize = 1024;
const DIRECTORY: libc::c_int = libc::O_RDONLY | libc::O_DIRECTORY;
/// A descriptor each is open.
const DEPTH_MAX: usize = 400;

/// The refusal to go where something else is mounted.
pub fn mounted_here(path: &Path) -> Refusal {
    let shown = path.display();
    Refusal::new(
        format!("something else is mounted on {shown}: it is not leadline's and was left alone"),
        format!("unmount it (umount {shown}), then do this again"),
    )
}

/// The last part of a path as the kernel takes it.
pub fn last_name(path: &Path) -> Outcome<CString> {
    let name = path.file_name().unwrap_or_default();
    CString::new(name.as_bytes()).map_err(|error| Refusal::system(&error.into(), path))
}

/// Descriptors of where `path` lies and of itself, which may be neither a link nor a mount.
pub fn open_directory(path: &Path) -> Outcome<(OwnedFd, OwnedFd)> {
    let parent = open_parent(path)?;
    let opened = open_in(&parent, path)?;
    Ok((parent, opened))
}

/// Where `path` lies.
pub fn open_parent(path: &Path) -> Outcome<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    let above = path.parent().unwrap_or(path);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(above, flags, Mode::empty())
        .map_err(|error| Refusal::system(&error.into(), above))
}

/// The same where `parent` is open already.
pub fn open_in(parent: &OwnedFd, path: &Path) -> Outcome<OwnedFd> {
    open_beneath(parent, &last_name(path)?, DIRECTORY, 0).map_err(|error| {
        if error.raw_os_error() == Some(libc::EXDEV) {
            mounted_here(path)
        } else {
            Refusal::system(&error, path)
        }
    })
}

/// Removes the entries of an open directory that are `chosen` by name, with all below them: true when the time was over
/// before all were gone.
pub fn remove_entries(
    opened: &OwnedFd,
    place: &Path,
    until: Instant,
    chosen: &dyn Fn(&[u8]) -> bool,
) -> Outcome<bool> {
    let found = rustix::fs::fstat(opened).map_err(|error| Refusal::system(&error.into(), place))?;
    let removal = Removal {
        device: found.st_dev,
        until,
    };
    match removal.empty(opened.as_fd(), place, chosen, 0) {
        Ok(()) => Ok(false),
        Err(Stop::OutOfTime) => Ok(true),
        Err(Stop::Refused(refusal)) => Err(refusal),
    }
}

/// Names in an open directory, of very many the first.
pub fn names_in(opened: &OwnedFd, place: &Path, limit: usize) -> Outcome<Vec<CString>> {
    let listed = entries(opened.as_fd(), &|_| true, limit);
    let names = listed.map_err(|error| Refusal::system(&error.into(), place))?;
    Ok(names.into_iter().map(|(name, _)| name).collect())
}

/// Why a removal ends before it has done all.
enum Stop {
    OutOfTime,
    Refused(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Names, and whether each is a directory; the directory is read from its beginning.
fn entries(
    descriptor: BorrowedFd<'_>,
    chosen: &dyn Fn(&[u8]) -> bool,
    limit: usize,
) -> Result<Vec<(CString, bool)>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(descriptor)? {
        let entry = entry?;
        let name = entry.file_name();
        if [&b"."[..], b".."].contains(&name.to_bytes()) || !chosen(name.to_bytes()) {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => kind_of(descriptor, name)?,
            known => known,
        };
        found.push((name.to_owned(), kind == FileType::Directory));
        if found.len() == limit {
            break;
        }
    }
    Ok(found)
}

fn kind_of(descriptor: BorrowedFd<'_>, name: &CStr) -> Result<FileType, Errno> {
    match rustix::fs::statat(descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(FileType::from_raw_mode(found.st_mode)),
        Err(Errno::NOENT) => Ok(FileType::RegularFile),
        Err(error) => Err(error),
    }
}

/// One removal: until when it lasts, and which device it stays on.
struct Removal {
    device: u64,
    until: Instant,
}

impl Removal {
    /// Batch after batch, as what is removed while it is listed may be listed or not.
    fn empty(
        &self,
        descriptor: BorrowedFd<'_>,
        place: &Path,
        chosen: &dyn Fn(&[u8]) -> bool,
        depth: usize,
    ) -> Result<(), Stop> {
        if depth > DEPTH_MAX {
            let words = format!(
                "{} holds directories that are nested too deeply",
                place.display()
            );
            return Err(Refusal::new(words, "remove them by hand: rm -r").into());
        }
        let mut before = Vec::new();
        loop {
            let batch = entries(descriptor, chosen, BATCH)
                .map_err(|error| Refusal::system(&error.into(), place))?;
            let Some((first, _)) = batch.first() else {
                return Ok(());
            };
            if batch == before {
                // A cache, or a code page: repeating would never end.
                let shown = first.to_string_lossy();
                let words = format!(
                    "{} still lists '{shown}' after its removal",
                    place.display()
                );
                return Err(Refusal::new(words, "see the file system's own logs").into());
            }
            for (name, is_directory) in &batch {
                let inner = place.join(std::ffi::OsStr::from_bytes(name.to_bytes()));
                self.remove(descriptor, name, *is_directory, &inner, depth)?;
            }
            if Instant::now() > self.until {
                return Err(Stop::OutOfTime);
            }
            before = batch;
        }
    }

    fn remove(
        &self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        is_directory: bool,
        place: &Path,
        depth: usize,
    ) -> Result<(), Stop> {
        let refused = |error: Errno| Stop::Refused(refused_at(error, parent, name, place));
        if !is_directory {
            return match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(error) => Err(refused(error)),
            };
        }
        let opened = open_beneath(&parent, name, DIRECTORY, 0)
            .map_err(|error| refused(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        if rustix::fs::fstat(&opened).map_err(refused)?.st_dev != self.device {
            let words = format!(
                "{} is a device of its own, as a subvolume is, and was left alone",
                place.display()
            );
            let remedy = "remove it by hand where it is not needed, then do this again";
            return Err(Refusal::new(words, remedy).into());
        }
        self.empty(opened.as_fd(), place, &|_| true, depth + 1)?;
        drop(opened);
        rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).map_err(refused)
    }
}

/// Linux: only a mount keeps the name of a file, or of an empty directory, in use.
fn refused_at(error: Errno, parent: BorrowedFd<'_>, name: &CStr, place: &Path) -> Refusal {
    let may_be_mount = matches!(error, Errno::XDEV | Errno::BUSY);
    let is_mount = || {
        open_beneath(&parent, name, libc::O_PATH, 0)
            .is_err_and(|error| error.raw_os_error() == Some(libc::EXDEV))
    };
    if may_be_mount && is_mount() {
        mounted_here(place)
    } else {
        Refusal::system(&error.into(), place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn what_is_chosen_goes_with_all_below_it_and_no_link_is_followed() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("own");
        std::fs::create_dir_all(own.join("data.0/deep/er")).unwrap();
        std::fs::create_dir(top.path().join("theirs")).unwrap();
        std::fs::write(top.path().join("theirs/precious"), b"1").unwrap();
        std::fs::write(own.join("data.0/deep/er/file"), b"1").unwrap();
        std::fs::write(own.join("other"), b"1").unwrap();
        symlink(top.path().join("theirs"), own.join("data.link")).unwrap();
        symlink(top.path().join("theirs"), own.join("data.0/deep/link")).unwrap();
        let (_, opened) = open_directory(&own).unwrap();
        let chosen = |name: &[u8]| name.starts_with(b"data.");
        assert_eq!(remove_entries(&opened, &own, later(), &chosen), Ok(false));
        let left = names_in(&opened, &own, 10).unwrap();
        assert_eq!(left, [c"other".to_owned()]);
        assert!(top.path().join("theirs/precious").exists());
    }

    #[test]
    fn a_slice_that_is_over_leaves_the_rest_for_the_next() {
        let top = tempfile::tempdir().unwrap();
        for number in 0..=BATCH {
            std::fs::write(top.path().join(format!("data.{number}")), b"").unwrap();
        }
        let (_, opened) = open_directory(top.path()).unwrap();
        let all = |_: &[u8]| true;
        let over = Instant::now();
        assert_eq!(remove_entries(&opened, top.path(), over, &all), Ok(true));
        assert_eq!(std::fs::read_dir(top.path()).unwrap().count(), 1);
        assert_eq!(
            remove_entries(&opened, top.path(), later(), &all),
            Ok(false)
        );
    }

    #[test]
    fn a_link_is_no_directory_to_open_and_nesting_has_a_bound() {
        let top = tempfile::tempdir().unwrap();
        symlink(top.path(), top.path().join("link")).unwrap();
        let refusal = open_directory(&top.path().join("link")).unwrap_err();
        assert!(
            matches!(refusal.errno, Some(libc::ELOOP | libc::ENOTDIR)),
            "{refusal:?}"
        );
        std::fs::remove_file(top.path().join("link")).unwrap();
        let mut deep = top.path().join("d");
        for _ in 0..DEPTH_MAX + 5 {
            deep.push("d");
        }
        std::fs::create_dir_all(&deep).unwrap();
        let (_, opened) = open_directory(top.path()).unwrap();
        let refusal = remove_entries(&opened, top.path(), later(), &|_| true).unwrap_err();
        assert!(refusal.message.contains("nested too deeply"), "{refusal:?}");
    }
}
