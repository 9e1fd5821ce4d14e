//! What libsmbclient is given in place of the user's own settings while it reads them.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const SETTINGS: &str = ".smb";
const FILE: &str = "smb.conf";
/// No name below a device can ever be made, by us or by anybody else.
const NOWHERE: &str = "/dev/null/leadline";

/// A home without a smb.conf but leadline's, for as long as the library reads its settings: it takes the user's
/// otherwise, and keeps caches in the system's directories.
///
/// The temporary directory is everybody's: the home's name cannot be foreseen, only its owner may enter it, and it is
/// reached by its descriptor alone, whatever becomes of its name.
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
        let path = tempfile::Builder::new()
            .prefix("leadline-smb-")
            .rand_bytes(16)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?
            .keep();
        let held = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
            .open(&path)?;
        let mut home = Self {
            before: None,
            path,
            held,
        };
        if let Err(error) = home.fill(conf) {
            let _ = home.clear(); // the first error is the one to report
            return Err(error);
        }
        home.before = std::env::var_os("HOME");
        // SAFETY: nothing of ours reads the environment in a worker past its start, and the engine's threads wait
        // for this connection.
        unsafe { std::env::set_var("HOME", home.by_descriptor()) };
        Ok(home)
    }

    fn fill(&self, conf: &str) -> io::Result<()> {
        let found = self.held.metadata()?;
        // SAFETY: it has no arguments and cannot fail.
        if found.uid() != unsafe { libc::geteuid() } || found.mode() & 0o077 != 0 {
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
        let own = self.by_descriptor().join(SETTINGS);
        let emptied = fs::remove_file(own.join(FILE)).and_then(|()| fs::remove_dir(own));
        fs::remove_dir(&self.path).and(emptied)
    }

    fn by_descriptor(&self) -> PathBuf {
        // Of this thread: an engine's thread has a table of open files of its own, which the process does not show.
        PathBuf::from(format!("/proc/thread-self/fd/{}", self.held.as_raw_fd()))
    }
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
    fn where_no_home_can_be_made_there_is_an_error() {
        Home::make_in(Path::new("/nonexistent"), "").unwrap_err();
    }
}
