//! `mmap`: copies to and from files mapped into memory; what a program does that maps its data.

use std::fs::File;

use super::{files, psync};
use crate::error::Failure;
use crate::io::{Blocking, Direction, Engine, Operation, Setup};
use crate::sys::buffer::AlignedBuffer;
use crate::sys::file::Advice;
use crate::sys::map::MappedFile;

/// Whole files, mapped shared.
pub struct Mmap {
    files: Vec<File>,
    mapped: Vec<MappedFile>,
    buffer: AlignedBuffer,
}

impl Engine for Mmap {
    const BLOCKING: bool = true;
    const MOVES_DATA: bool = true;

    fn start(setup: &Setup) -> Result<Self, Failure> {
        let buffer = psync::single_buffer(setup)?;
        let files = files::open_all(setup)?;
        let mapped = files
            .iter()
            .zip(&setup.files)
            .map(|(file, path)| {
                map(file, setup).map_err(|error| {
                    let errno = error.raw_os_error().unwrap_or(libc::EIO);
                    Failure::system(errno, "mmap", path, 0)
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            files,
            mapped,
            buffer,
        })
    }

    #[inline]
    fn buffer(&mut self, _slot: u32) -> &mut [u8] {
        self.buffer.as_mut_slice()
    }

    fn vanished(&mut self) -> Option<usize> {
        files::first_deleted(&self.files)
    }

    fn forget(&mut self) {
        files::forget(&self.files);
    }
}

impl Blocking for Mmap {
    #[inline]
    fn perform(&mut self, operation: Operation) -> i64 {
        let mapped = &mut self.mapped[operation.file as usize];
        let start = operation.start as usize;
        let part = &mut self.buffer.as_mut_slice()[start..start + operation.length as usize];
        let offset = operation.offset as usize;
        let copied = match operation.direction {
            Direction::Read => mapped.read(part, offset),
            Direction::Write => mapped.write(part, offset),
            Direction::Sync => return mapped.sync(),
        };
        match copied {
            Ok(()) => i64::from(operation.length),
            Err(errno) => self.why(errno, operation),
        }
    }
}

impl Mmap {
    /// A fault on a file that has become too short is the end of the file (0 bytes), as read() would say.
    #[cold]
    fn why(&self, errno: i32, operation: Operation) -> i64 {
        let end = operation.offset + u64::from(operation.length);
        match self.files[operation.file as usize].metadata() {
            Ok(facts) if facts.len() < end => 0,
            _ => -i64::from(errno),
        }
    }
}

fn map(file: &File, setup: &Setup) -> std::io::Result<MappedFile> {
    if setup.how.fresh {
        file.set_len(setup.file_bytes)?;
    }
    let mut mapped = MappedFile::new(file, setup.file_bytes as usize, setup.how.write)?;
    mapped.advise(if setup.random {
        Advice::Random
    } else {
        Advice::Sequential
    });
    Ok(mapped)
}
