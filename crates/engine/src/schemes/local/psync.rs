//! `psync`: one pread, pwrite or fsync at a time.

use std::fs::File;

use super::files;
use crate::error::Failure;
use crate::io::{Blocking, Direction, Engine, Operation, Setup, no_memory};
use crate::sys::buffer::AlignedBuffer;
use crate::sys::file;

/// Plain system calls on one buffer.
pub struct Psync {
    files: Vec<File>,
    buffer: AlignedBuffer,
}

/// One buffer for an engine that does one call at a time.
pub fn single_buffer(setup: &Setup) -> Result<AlignedBuffer, Failure> {
    AlignedBuffer::new(setup.block_bytes).map_err(|error| no_memory(&error))
}

impl Engine for Psync {
    const BLOCKING: bool = true;
    const MOVES_DATA: bool = true;

    fn start(setup: &Setup) -> Result<Self, Failure> {
        let buffer = single_buffer(setup)?;
        Ok(Self {
            files: files::open_all(setup)?,
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

impl Blocking for Psync {
    #[inline]
    fn perform(&mut self, operation: Operation) -> i64 {
        let file = &self.files[operation.file as usize];
        let start = operation.start as usize;
        let part = &mut self.buffer.as_mut_slice()[start..start + operation.length as usize];
        match operation.direction {
            Direction::Read => file::read_at(file, part, operation.offset),
            Direction::Write => file::write_at(file, part, operation.offset),
            Direction::Sync if operation.data_only => file::sync_data(file),
            Direction::Sync => file::sync(file),
        }
    }
}
