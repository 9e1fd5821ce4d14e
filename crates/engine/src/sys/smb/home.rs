//! What libsmbclient is given in place of the user's own settings while it reads them.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const SETTINGS: &str = ".smb";
const FILE: &str = "smb.conf";
const TRIES_MAX: u32 = 8;
const PREFIX: &str = "leadline-smb-";
/// No name below a device can ever be made, by us or by anybody else.
const NOWHERE: &str = "/dev/null/leadline";

/// A home without a smb.conf but leadline's, for as long as the library reads its settings: it takes the user's
/// otherwise, and keeps caches in the system's directories.
///
/// The temporary directory is everybody's: the home's name cannot be foreseen, only its owner may enter it, and it is
/// reached by its descriptor alone, whatever becomes of its name. Its owner holds a lock on it: one that nobody holds is
/// of a process that was killed, and the next of the same user removes it.
#[derive(Debug)]
pub struct Home {
    before: Option<OsString>,
    path: PathBuf,
    held: File,
}

impl Home {
    pub fn make(conf: &str) -> io::Result<Self> {
        Self::make_in(&std::env::temp_dir(), conf)
    }

    fn make_in(parent: &Path, conf: &str) -> io::Result<Self> {
        sweep(parent);
        let mut tries = 0;
        let home = loop {
            match Self::fresh(parent, conf) {
                // The sweep of another process met it before it was locked, and is over by now.
                Err(error)
                    if error.raw_os_error() == Some(libc::EWOULDBLOCK) && tries < TRIES_MAX =>
                {
                    tries += 1
                }
                made => break made?,
            }
        };
        // SAFETY: nothing of ours reads the environment in a worker past its start, and the engine's threads wait
        // for this connection.
        unsafe { std::env::set_var("HOME", home.by_descriptor()) };
        Ok(home)
    }

    /// EWOULDBLOCK where another process has it, or has removed it.
    fn fresh(parent: &Path, conf: &str) -> io::Result<Self> {
        let path = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(16)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?
            .keep();
        let swept = || io::Error::from_raw_os_error(libc::EWOULDBLOCK);
        let held = open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => swept(),
            _ => error,
        })?;
        lock(&held)?;
        if held.metadata()?.nlink() == 0 {
            return Err(swept());
        }
        let before = std::env::var_os("HOME");
        let home = Self { before, path, held };
        if let Err(error) = home.fill(conf) {
            let _ = home.clear(); // the first error is the one to report
            return Err(error);
        }
        Ok(home)
    }

    fn fill(&self, conf: &str) -> io::Result<()> {
        if !is_private(&self.held)? {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        let own = self.by_descriptor().join(SETTINGS);
        DirBuilder::new().mode(0o700).create(&own)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(own.join(FILE))?;
        file.write_all(settings(conf).as_bytes())
    }

    /// Gives the user's home back, and removes this one.
    pub fn remove(self) -> io::Result<()> {
        // SAFETY: as of `make_in`.
        unsafe {
            match &self.before {
                Some(before) => std::env::set_var("HOME", before),
                None => std::env::remove_var("HOME"),
            }
        }
        self.clear()
    }

    fn clear(&self) -> io::Result<()> {
        clear(&self.path, &self.held)
    }

    fn by_descriptor(&self) -> PathBuf {
        by_descriptor(&self.held)
    }
}

/// Removes the homes that this user's killed processes left in a directory; what cannot be removed stays.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return; // to make a home there says why
    };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(held) = open(&entry.path()) else {
            continue;
        };
        if is_private(&held).unwrap_or(false) && lock(&held).is_ok() {
            let _ = clear(&entry.path(), &held);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(path)
}

fn is_private(held: &File) -> io::Result<bool> {
    let found = held.metadata()?;
    // SAFETY: it has no arguments and cannot fail.
    Ok(found.uid() == unsafe { libc::geteuid() } && found.mode() & 0o077 == 0)
}

/// EWOULDBLOCK where another process holds it; the lock ends with the descriptor, and so with the process.
fn lock(held: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `held` lives.
    match unsafe { libc::flock(held.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn clear(path: &Path, held: &File) -> io::Result<()> {
    let own = by_descriptor(held).join(SETTINGS);
    let emptied = gone(fs::remove_file(own.join(FILE))).and_then(|()| gone(fs::remove_dir(own)));
    fs::remove_dir(path).and(emptied)
}

/// What is not there needs no removing: a process can be killed before it has made all.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

fn by_descriptor(held: &File) -> PathBuf {
    // Of this thread: an engine's thread has a table of open files of its own, which the process does not show.
    PathBuf::from(format!("/proc/thread-self/fd/{}", held.as_raw_fd()))
}

fn settings(conf: &str) -> String {
    let mut lines = vec!["[global]".to_owned()];
    for kind in ["lock", "state", "cache", "private", "pid"] {
        lines.push(format!("{kind} directory = {NOWHERE}"));
    }
    lines.push("log level = 0".to_owned());
    lines.push("disable netbios = yes".to_owned());
    if !conf.is_empty() {
        lines.push(format!("include = {conf}"));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_its_owners_alone_under_another_name_each_time_and_goes_again() {
        let parent = tempfile::tempdir().unwrap();
        let first = Home::make_in(parent.path(), "").unwrap();
        let one = first.path.clone();
        assert_eq!(fs::metadata(&one).unwrap().mode() & 0o7777, 0o700);
        assert!(one.join(SETTINGS).join(FILE).is_file());
        first.remove().unwrap();
        let second = Home::make_in(parent.path(), "").unwrap();
        assert_ne!(one, second.path);
        second.remove().unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_home_is_made_and_removed_by_a_thread_with_a_table_of_open_files_of_its_own() {
        let parent = tempfile::tempdir().unwrap();
        let place = parent.path().to_owned();
        let thread = std::thread::spawn(move || {
            crate::sys::process::own_file_table();
            let home = Home::make_in(&place, "").unwrap();
            assert!(home.by_descriptor().join(SETTINGS).join(FILE).is_file());
            home.remove().unwrap();
        });
        thread.join().unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_stands_under_the_homes_name_meanwhile_is_neither_written_nor_removed() {
        let parent = tempfile::tempdir().unwrap();
        let home = Home::make_in(parent.path(), "").unwrap();
        let (moved, path) = (parent.path().join("moved"), home.path.clone());
        fs::rename(&path, &moved).unwrap();
        let own = path.join(SETTINGS);
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join(FILE), "the user's own").unwrap();
        home.remove().unwrap_err();
        assert_eq!(fs::read(own.join(FILE)).unwrap(), b"the user's own");
        assert!(!moved.join(SETTINGS).exists());
    }

    #[test]
    fn a_home_that_a_killed_process_left_is_removed_and_one_in_use_stays() {
        let parent = tempfile::tempdir().unwrap();
        let used = Home::make_in(parent.path(), "").unwrap();
        let left = Home::make_in(parent.path(), "").unwrap();
        let path = left.path.clone();
        drop(left.held); // as a killed process does: no lock, and all files stay
        assert!(path.join(SETTINGS).join(FILE).is_file());
        let next = Home::make_in(parent.path(), "").unwrap();
        assert!(!path.exists());
        assert!(used.path.join(SETTINGS).join(FILE).is_file());
        next.remove().unwrap();
        used.remove().unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn where_no_home_can_be_made_there_is_an_error() {
        Home::make_in(Path::new("/nonexistent"), "").unwrap_err();
    }
}
