//! Opening files that somebody may have replaced: nobody is waited for, and nothing without end is read. Making files
//! where somebody may have put something: nothing is written through a link or over another name of a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A plain file: a FIFO in its place would be waited for.
pub fn open_plain(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(not_plain())
    }
}

/// A new file for its owner alone, to be written. A plain file that has the name loses it; anything else stays.
///
/// `/proc/self/fd/N` is a file that this process holds open, as one in memory: nobody else can put anything there.
pub fn new_plain(path: &Path) -> io::Result<File> {
    if path.parent() == Some(Path::new("/proc/self/fd")) {
        return OpenOptions::new().write(true).truncate(true).open(path);
    }
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => fs::remove_file(path)?,
        Ok(_) => return Err(not_plain()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

fn not_plain() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is no plain file")
}

/// The bytes of a plain file, of which there may be as many as `bytes_max`.
pub fn read_plain(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open_plain(path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.len() <= bytes_max {
        file.take(bytes_max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= bytes_max {
            return Ok(bytes);
        }
    }
    Err(io::Error::new(
        ErrorKind::FileTooLarge,
        "it is larger than such a file can be",
    ))
}
