//! Opening files that somebody may have replaced: nobody is waited for, and nothing without end is read.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// A plain file: a FIFO in its place would be waited for.
pub fn open_plain(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is no plain file",
        ))
    }
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
