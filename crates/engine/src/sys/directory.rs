//! Directories that only we may change, held open. What lies in one is opened relative to it: through no link, not
//! above it, and on no other mount, so that nothing that another user put in its place is read, written or removed.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use super::file::{OpenHow, check, last_errno};
use super::metadata::c_path;

const RESOLVE: u64 = libc::RESOLVE_BENEATH
    | libc::RESOLVE_NO_SYMLINKS
    | libc::RESOLVE_NO_MAGICLINKS
    | libc::RESOLVE_NO_XDEV;
/// Of a mode: users other than the owner may write.
const OTHERS_WRITE: u32 = 0o022;
/// Names tried for the file that tells what a file of ours shows.
const ATTEMPTS: u32 = 16;

/// A directory of ours. Paths below it may be given whole.
#[derive(Debug)]
pub struct OwnDirectory {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl OwnDirectory {
    /// Opens `path`, whose last component may be no link. One that another user may change is refused in words.
    pub fn open(path: &Path) -> io::Result<Self> {
        let name = c_path(path)?;
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let this = Self {
            path: path.to_owned(),
            descriptor: open_at(libc::AT_FDCWD, &name, flags, 0)?,
        };
        match why_not_ours(&this.descriptor)? {
            None => Ok(this),
            Some(why) => Err(foreign(&why)),
        }
    }

    /// A path below it as the kernel takes it from its descriptor; `.` for itself.
    pub fn name_of(&self, path: &Path) -> io::Result<CString> {
        let name = path.strip_prefix(&self.path).unwrap_or(path);
        if name.as_os_str().is_empty() {
            return Ok(c".".to_owned());
        }
        c_path(name)
    }

    /// One call by name, as what is measured makes it: `name` is no path.
    pub fn open_name(&self, name: &CStr, flags: libc::c_int) -> io::Result<File> {
        let flags = flags | libc::O_NOFOLLOW;
        open_at(self.as_raw_fd(), name, flags, 0o644).map(File::from)
    }

    /// Opens a file of ours below it. A fresh one is made, or emptied where it is there.
    pub fn open_file(&self, path: &Path, how: OpenHow) -> io::Result<File> {
        let name = self.name_of(path)?;
        let access = if how.write {
            libc::O_RDWR
        } else {
            libc::O_RDONLY
        };
        let flags = access | if how.direct { libc::O_DIRECT } else { 0 };
        if how.fresh {
            match open_beneath(self, &name, flags | libc::O_CREAT | libc::O_EXCL, 0o644) {
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
                made => return made.map(File::from),
            }
        }
        let file = File::from(open_beneath(self, &name, flags, 0)?);
        let facts = file.metadata()?;
        if !facts.is_file() || facts.nlink() > 1 {
            return Err(foreign("it is no plain file with one name"));
        }
        if how.fresh {
            file.set_len(0)?;
        }
        Ok(file)
    }
}

impl AsRawFd for OwnDirectory {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

fn foreign(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Opens what `name` leads to below `directory`: EXDEV where it leads above it or onto another mount, ELOOP where it
/// leads through a link.
pub fn open_beneath(
    directory: &impl AsRawFd,
    name: &CStr,
    flags: libc::c_int,
    mode: libc::mode_t,
) -> io::Result<OwnedFd> {
    static IN_KERNEL: OnceLock<bool> = OnceLock::new();
    let at = directory.as_raw_fd();
    // From Linux 5.6 on; sandboxes refuse what they do not know with EPERM.
    let refused =
        |error: io::Error| matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM));
    if *IN_KERNEL.get_or_init(|| !resolved(at, c".", libc::O_PATH, 0).is_err_and(refused)) {
        resolved(at, name, flags, mode)
    } else {
        walked(at, name, flags, mode)
    }
}

/// The same by the kernel, in one call.
fn resolved(at: RawFd, name: &CStr, flags: libc::c_int, mode: libc::mode_t) -> io::Result<OwnedFd> {
    // SAFETY: an `open_how` of zeros is valid.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC | libc::O_NOFOLLOW) as u64;
    how.mode = u64::from(mode);
    how.resolve = RESOLVE;
    again(|| {
        // SAFETY: `name` is NUL-terminated, `how` has the size that is said; both outlive the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_openat2,
                at,
                name.as_ptr(),
                &raw const how,
                size_of::<libc::open_how>(),
            )
        };
        result as libc::c_int
    })
}

/// The same component by component, where the kernel is older.
fn walked(at: RawFd, name: &CStr, flags: libc::c_int, mode: libc::mode_t) -> io::Result<OwnedFd> {
    let other_place = || io::Error::from_raw_os_error(libc::EXDEV);
    let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    let mut parts: Vec<CString> = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(c_path(Path::new(part))?),
            Component::CurDir => {}
            _ => return Err(other_place()),
        }
    }
    let last = parts.pop().unwrap_or_else(|| c".".to_owned());
    let mount = mount_of(at)?;
    let mut held: Option<OwnedFd> = None;
    let step = libc::O_PATH | libc::O_DIRECTORY;
    for (part, flags) in parts
        .iter()
        .map(|part| (part, step))
        .chain([(&last, flags)])
    {
        let from = held.as_ref().map_or(at, AsRawFd::as_raw_fd);
        let found = open_at(from, part, flags | libc::O_NOFOLLOW, mode)?;
        if mount_of(found.as_raw_fd())? != mount {
            return Err(other_place());
        }
        held = Some(found);
    }
    held.ok_or_else(other_place)
}

fn open_at(at: RawFd, name: &CStr, flags: libc::c_int, mode: libc::mode_t) -> io::Result<OwnedFd> {
    // SAFETY: `name` is NUL-terminated and outlives the call.
    again(|| unsafe { libc::openat(at, name.as_ptr(), flags | libc::O_CLOEXEC, mode) })
}

/// A call that gives a descriptor, made again where a signal interrupted it.
fn again(call: impl Fn() -> libc::c_int) -> io::Result<OwnedFd> {
    loop {
        let descriptor = call();
        if descriptor >= 0 {
            // SAFETY: the kernel has just given it to us, and nobody else knows it.
            return Ok(unsafe { OwnedFd::from_raw_fd(descriptor) });
        }
        if last_errno() != libc::EINTR {
            return Err(io::Error::last_os_error());
        }
    }
}

/// The number of the mount that a descriptor's file is on. Of this thread: its table of descriptors may be its own.
fn mount_of(descriptor: RawFd) -> io::Result<String> {
    let text = std::fs::read_to_string(format!("/proc/thread-self/fdinfo/{descriptor}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    let unknown = || io::Error::from_raw_os_error(libc::ENOSYS);
    Ok(line.ok_or_else(unknown)?.trim().to_owned())
}

/// The directory that a new file has shown to be ours: every thread of a trial asks of the same one.
static LAST_ASKED: Mutex<Option<(u64, u64, u32, u32)>> = Mutex::new(None);

/// Why a directory may be changed by another user; `None` where it is ours alone.
///
/// Storage may show another owner and other rights than a file was made with (root_squash, FUSE, SMB): then a new file
/// in it, made and removed here, tells what ours show.
pub fn why_not_ours(directory: &impl AsRawFd) -> io::Result<Option<String>> {
    let facts = facts_of(directory.as_raw_fd())?;
    // SAFETY: the call has no arguments and cannot fail.
    let us = unsafe { libc::geteuid() };
    if facts.st_uid == us && facts.st_mode & OTHERS_WRITE == 0 {
        return Ok(None);
    }
    let known = (facts.st_dev, facts.st_ino, facts.st_uid, facts.st_mode);
    if LAST_ASKED.lock().is_ok_and(|last| *last == Some(known)) {
        return Ok(None);
    }
    let belongs = format!("it belongs to user {}", facts.st_uid);
    let shown = match new_file_in(directory.as_raw_fd()) {
        Ok(shown) => shown,
        Err(error) => {
            return match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM | libc::EROFS) => Ok(Some(belongs)),
                _ => Err(error),
            };
        }
    };
    if facts.st_uid != shown.st_uid {
        return Ok(Some(format!(
            "{belongs}, and what we make in it to user {}",
            shown.st_uid
        )));
    }
    if facts.st_mode & OTHERS_WRITE & !shown.st_mode != 0 {
        return Ok(Some("other users may write in it".to_owned()));
    }
    if let Ok(mut last) = LAST_ASKED.lock() {
        *last = Some(known);
    }
    Ok(None)
}

/// What a file shows that we have just made in a directory, for us alone.
fn new_file_in(directory: RawFd) -> io::Result<libc::stat> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
    let process = std::process::id();
    for attempt in 0..ATTEMPTS {
        let name = CString::new(format!(".leadline-owner-{process}-{attempt}"))?;
        match open_at(directory, &name, flags, 0o600) {
            Ok(made) => {
                let shown = facts_of(made.as_raw_fd());
                drop(made); // what is removed while it is open stays under another name on NFS and FUSE
                // SAFETY: `name` is NUL-terminated and outlives the call.
                check(unsafe { libc::unlinkat(directory, name.as_ptr(), 0) })?;
                return shown;
            }
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EEXIST))
}

fn facts_of(descriptor: RawFd) -> io::Result<libc::stat> {
    let mut facts = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `facts` is a writable stat that outlives the call.
    check(unsafe { libc::fstat(descriptor, facts.as_mut_ptr()) })?;
    // SAFETY: zeroed bytes are a valid stat, and the kernel filled it.
    Ok(unsafe { facts.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    type Opener = fn(RawFd, &CStr, libc::c_int, libc::mode_t) -> io::Result<OwnedFd>;
    const WAYS: [Opener; 2] = [resolved, walked];

    fn errno<T>(result: io::Result<T>) -> Option<i32> {
        result.err().and_then(|error| error.raw_os_error())
    }

    #[test]
    fn neither_way_leads_through_a_link_or_above_the_directory() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("own/inner")).unwrap();
        std::fs::write(top.path().join("own/inner/file"), b"1").unwrap();
        symlink("inner", top.path().join("own/link")).unwrap();
        symlink("inner/file", top.path().join("own/alias")).unwrap();
        let own = OwnDirectory::open(&top.path().join("own")).unwrap();
        for way in WAYS {
            let open = |name: &CStr| way(own.as_raw_fd(), name, libc::O_RDONLY, 0);
            assert!(open(c"inner/file").is_ok() && open(c".").is_ok());
            assert_eq!(errno(open(c"alias")), Some(libc::ELOOP));
            assert!(matches!(
                errno(open(c"link/file")),
                Some(libc::ELOOP | libc::ENOTDIR)
            ));
            assert_eq!(errno(open(c"../own/inner/file")), Some(libc::EXDEV));
            assert_eq!(errno(open(c"/etc/hostname")), Some(libc::EXDEV));
        }
    }

    #[test]
    fn neither_way_leads_onto_another_mount() {
        let root = File::open("/").unwrap();
        for way in WAYS {
            let open = |name: &CStr| errno(way(root.as_raw_fd(), name, libc::O_RDONLY, 0));
            assert_eq!(open(c"proc/self/stat"), Some(libc::EXDEV));
        }
    }

    #[test]
    fn a_link_in_place_of_a_file_is_not_followed_and_a_second_name_not_emptied() {
        let top = tempfile::tempdir().unwrap();
        let (precious, own) = (top.path().join("precious"), top.path().join("own"));
        std::fs::write(&precious, b"precious").unwrap();
        std::fs::create_dir(&own).unwrap();
        symlink(&precious, own.join("data.0")).unwrap();
        std::fs::hard_link(&precious, own.join("data.1")).unwrap();
        let how = OpenHow {
            write: true,
            fresh: true,
            direct: false,
        };
        let directory = OwnDirectory::open(&own).unwrap();
        assert_eq!(
            errno(directory.open_file(&own.join("data.0"), how)),
            Some(libc::ELOOP)
        );
        assert!(directory.open_file(&own.join("data.1"), how).is_err());
        assert!(directory.open_file(&own.join("data.2"), how).is_ok());
        assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
    }

    #[test]
    fn a_directory_that_others_may_write_in_is_not_ours() {
        let top = tempfile::tempdir().unwrap();
        for (mode, ours) in [
            (0o700, true),
            (0o755, true),
            (0o775, false),
            (0o1777, false),
        ] {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(top.path(), mode).unwrap();
            assert_eq!(OwnDirectory::open(top.path()).is_ok(), ours);
        }
        assert_eq!(std::fs::read_dir(top.path()).unwrap().count(), 0);
    }
}
