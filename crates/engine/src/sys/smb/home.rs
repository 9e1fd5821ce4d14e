//! What libsmbclient is given in place of the user's own settings while it reads them.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// A home without a smb.conf but leadline's, for as long as the library reads its settings: it takes the user's
/// otherwise, and keeps caches in the system's directories.
pub struct Home {
    before: Option<OsString>,
    directory: std::path::PathBuf,
}

impl Home {
    pub fn make(conf: &str) -> std::io::Result<Self> {
        let name = format!("leadline-smb-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&directory);
        let own = directory.join(".smb");
        fs::create_dir_all(&own)?;
        fs::write(own.join("smb.conf"), settings(&directory, conf))?;
        let before = std::env::var_os("HOME");
        // SAFETY: nothing of ours reads the environment in a worker past its start, and the engine's threads wait
        // for this connection.
        unsafe { std::env::set_var("HOME", &directory) };
        Ok(Self { before, directory })
    }
}

/// Everything that the library would keep goes to a directory that is about to vanish.
fn settings(directory: &Path, conf: &str) -> String {
    let place = directory.display();
    let mut lines = vec!["[global]".to_owned()];
    for kind in ["lock", "state", "cache", "private", "pid"] {
        lines.push(format!("{kind} directory = {place}"));
    }
    lines.push("log level = 0".to_owned());
    lines.push("disable netbios = yes".to_owned());
    if !conf.is_empty() {
        lines.push(format!("include = {conf}"));
    }
    lines.join("\n") + "\n"
}

impl Drop for Home {
    fn drop(&mut self) {
        // SAFETY: as of `make`.
        unsafe {
            match &self.before {
                Some(before) => std::env::set_var("HOME", before),
                None => std::env::remove_var("HOME"),
            }
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}
