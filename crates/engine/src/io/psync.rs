//! `psync`: one pread, pwrite or fsync at a time.

use std::fs::File;

use crate::error::Failure;
use crate::io::{Completion, Direction, Engine, Operation, Setup, files};
use crate::sys::buffer::AlignedBuffer;
use crate::sys::file;

/// Plain system calls on one buffer.
pub struct Psync {
    files: Vec<File>,
    buffer: AlignedBuffer,
    queued: Option<(u32, Operation)>,
    done: Option<Completion>,
}

/// One buffer for an engine that does one call at a time.
pub fn single_buffer(setup: &Setup) -> Result<AlignedBuffer, Failure> {
    AlignedBuffer::new(setup.block_bytes).map_err(|error| {
        let errno = error.raw_os_error().unwrap_or(libc::ENOMEM);
        Failure::system(errno, "allocation of buffers", "memory".as_ref(), 0)
    })
}

impl Engine for Psync {
    const BLOCKING: bool = true;
    const MOVES_DATA: bool = true;

    fn start(setup: &Setup) -> Result<Self, Failure> {
        let buffer = single_buffer(setup)?;
        Ok(Self {
            files: files::open_all(setup)?,
            buffer,
            queued: None,
            done: None,
        })
    }

    #[inline]
    fn buffer(&mut self, _slot: u32) -> &mut [u8] {
        self.buffer.as_mut_slice()
    }

    #[inline]
    fn queue(&mut self, slot: u32, operation: Operation) {
        self.queued = Some((slot, operation));
    }

    #[inline]
    fn submit(&mut self) -> Result<(), i32> {
        let Some((slot, operation)) = self.queued.take() else {
            return Ok(());
        };
        let file = &self.files[operation.file as usize];
        let start = operation.start as usize;
        let part = &mut self.buffer.as_mut_slice()[start..start + operation.length as usize];
        let result = match operation.direction {
            Direction::Read => file::read_at(file, part, operation.offset),
            Direction::Write => file::write_at(file, part, operation.offset),
            Direction::Sync if operation.data_only => file::sync_data(file),
            Direction::Sync => file::sync(file),
        };
        self.done = Some(Completion { slot, result });
        Ok(())
    }

    #[inline]
    fn reap(&mut self, _: u32, _: u64, completions: &mut Vec<Completion>) -> Result<(), i32> {
        completions.extend(self.done.take());
        Ok(())
    }

    fn vanished(&mut self) -> Option<usize> {
        files::first_deleted(&self.files)
    }
}
