//! The files of a replay: laid out beforehand with contents of our own, opened and closed as the trace did.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::script::ReplayJob;
use super::script::{FileEntry, Script};
use crate::Interrupts;
use crate::error::EngineError;
use crate::pattern::{Pattern, Stamp};
use crate::sync::lock;
use crate::sys::buffer::AlignedBuffer;
use crate::sys::directory::OwnDirectory;
use crate::sys::file::{Advice, OpenHow, advise, sync, write_at};
use crate::sys::metadata;
use crate::trial::layout::LaidOut;
use crate::volume;

const CHUNK_BYTES: u64 = 1 << 20;
const BLOCK_BYTES: u64 = 4096;

/// Where file `number` of a job lies.
pub fn path_of(job: &ReplayJob, number: u32) -> PathBuf {
    job.directory.join(format!("{}.{number}", job.prefix))
}

/// Where a file goes when the trace renames it: what it was named then is not recorded.
pub fn renamed(name: &CStr) -> CString {
    with_suffix(name, b".renamed")
}

/// A name with more behind it.
pub fn with_suffix(name: &CStr, suffix: &[u8]) -> CString {
    CString::new([name.to_bytes(), suffix].concat()).unwrap_or_default()
}

/// Writes what must be there before the first call, syncs it, and drops it from the page cache.
pub fn lay_out(job: &ReplayJob, signal: Interrupts) -> Result<LaidOut, EngineError> {
    let begun = Instant::now();
    let script = Script::read(&job.script)?;
    let buffer = AlignedBuffer::new(CHUNK_BYTES as usize)
        .map_err(|_| EngineError::Other("no memory for one buffer".to_owned()))?;
    let place = volume::own_directory(&job.directory)?;
    let mut work = (Pattern::new(true), buffer);
    let mut laid_out = LaidOut {
        bytes_written: 0,
        files: 0,
        elapsed_ns: 0,
    };
    for (number, entry) in script.files.iter().enumerate() {
        let Some(bytes) = entry.bytes else { continue };
        if signal().is_some() {
            return Err(EngineError::Interrupted);
        }
        let path = path_of(job, number as u32);
        let refused = |error: io::Error| EngineError::system(&error, "lay out", &path);
        laid_out.files += 1;
        if entry.directory {
            let name = place.name_of(&path).map_err(refused)?;
            let made = metadata::make_directory(place.as_raw_fd(), &name);
            if made < 0 {
                return Err(refused(io::Error::from_raw_os_error(-made)));
            }
            continue;
        }
        lay_out_file(job, &place, number as u32, bytes, &mut work, signal)
            .map_err(|stopped| stopped.map_or(EngineError::Interrupted, refused))?;
        laid_out.bytes_written += bytes;
    }
    laid_out.elapsed_ns = begun.elapsed().as_nanos() as u64;
    Ok(laid_out)
}

/// The error is `None` where a signal came.
fn lay_out_file(
    job: &ReplayJob,
    place: &OwnDirectory,
    number: u32,
    bytes: u64,
    (pattern, buffer): &mut (Pattern, AlignedBuffer),
    signal: Interrupts,
) -> Result<(), Option<io::Error>> {
    let how = OpenHow {
        write: true,
        fresh: true,
        direct: job.layout_direct,
    };
    let file = place.open_file(&path_of(job, number), how).map_err(Some)?;
    let mut offset = 0;
    while offset < bytes {
        if signal().is_some() {
            return Err(None);
        }
        // Whole blocks, as direct I/O wants them; what is too much is cut off below.
        let length = (bytes - offset)
            .next_multiple_of(BLOCK_BYTES)
            .min(CHUNK_BYTES);
        let stamp = Stamp {
            seed: job.seed,
            generation: 0,
            file: number,
            offset,
        };
        let chunk = &mut buffer.as_mut_slice()[..length as usize];
        pattern.fill(chunk, stamp);
        write_whole(&file, chunk, offset).map_err(Some)?;
        offset += length;
    }
    if offset > bytes {
        file.set_len(bytes).map_err(Some)?;
    }
    if bytes > 0 && sync(&file) < 0 {
        return Err(Some(io::Error::last_os_error()));
    }
    advise(&file, Advice::DontNeed);
    Ok(())
}

fn write_whole(file: &File, data: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < data.len() {
        match write_at(file, &data[done..], offset + done as u64) {
            0 => return Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            count if count < 0 => return Err(io::Error::from_raw_os_error(-count as i32)),
            count => done += count as usize,
        }
    }
    Ok(())
}

/// The open files of one replayed process. A file that several threads use is closed when the last is done with
/// it, so that no descriptor is ever another file's.
#[derive(Debug, Default)]
pub struct OpenFiles {
    open: Mutex<HashMap<u32, Vec<Arc<File>>>>,
}

impl OpenFiles {
    /// The file as it was opened last; `None` where the process has not opened it.
    pub fn get(&self, number: u32) -> Option<Arc<File>> {
        lock(&self.open)
            .get(&number)
            .and_then(|found| found.last().cloned())
    }

    pub fn add(&self, number: u32, file: Arc<File>) {
        lock(&self.open).entry(number).or_default().push(file);
    }

    pub fn take(&self, number: u32) -> Option<Arc<File>> {
        lock(&self.open).get_mut(&number).and_then(Vec::pop)
    }
}

/// Opens as the trace must have: to write only where it wrote, to create only what was not there.
pub fn open(place: &OwnDirectory, name: &CStr, entry: FileEntry) -> io::Result<File> {
    let flags = match entry {
        _ if entry.directory => libc::O_RDONLY,
        _ if entry.created => libc::O_RDWR | libc::O_CREAT,
        _ if entry.written => libc::O_RDWR,
        _ => libc::O_RDONLY,
    };
    place.open_name(name, flags)
}
