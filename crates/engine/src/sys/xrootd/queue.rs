//! Requests of XRootD's client in flight: a request may read parts of several slots, and ends with all of them.

use std::ffi::c_void;
use std::time::Duration;

use super::File;
use crate::sys::in_flight::{self, InFlight};

/// One slot's part of a request: bytes at `start` of its buffer, at `offset` of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub slot: u32,
    pub offset: u64,
    pub start: usize,
    pub length: u32,
}

/// Called by a thread of the client.
extern "C" fn ended(argument: *mut c_void, result: i64) {
    // SAFETY: the argument is the ticket of a request in flight, which ends with this one call.
    unsafe { in_flight::end::<()>(argument, |()| result) };
}

/// Buffers of slots, open files, and requests on them. A request bears its first slot's number.
pub struct Queue {
    flight: InFlight<Vec<File>>,
    /// The parts of the request that bears a slot's number, and what each moves.
    parts: Vec<Vec<(u32, i64)>>,
}

impl Queue {
    /// `slots` buffers of `slot_bytes` for requests on `files`.
    pub fn new(files: Vec<File>, slots: u32, slot_bytes: usize) -> std::io::Result<Self> {
        Ok(Self {
            flight: InFlight::new("XRootD's client", files, (slots, slot_bytes), 1)?,
            parts: vec![Vec::with_capacity(1); slots as usize],
        })
    }

    /// The buffer of a slot without a request in flight.
    #[inline]
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.flight.buffer(slot)
    }

    fn memory(&self, part: &Part) -> *mut c_void {
        let length = part.length as usize;
        self.flight
            .piece((part.slot, 0), (part.start, length))
            .memory
            .cast()
    }

    fn file(&self, number: u32) -> &File {
        &self.flight.held()[number as usize]
    }

    fn argument(&self, slot: u32) -> *mut c_void {
        self.flight.piece((slot, 0), (0, 0)).ticket
    }

    /// Marks the parts of a request that was taken; passes the result on.
    fn taken(&mut self, result: i64, parts: &[Part], moves: impl Fn(&Part) -> i64) -> i64 {
        let Some(first) = parts.first() else {
            return result;
        };
        if result == 0 {
            for part in parts {
                self.flight.started(part.slot);
                self.parts[first.slot as usize].push((part.slot, moves(part)));
            }
        }
        result
    }

    /// Reads one part, or several by one vector read: 0, or minus errno, and then nothing was started.
    pub fn read(&mut self, file: u32, parts: &[Part]) -> i64 {
        let Some(first) = parts.first() else {
            return 0;
        };
        let memories: Vec<_> = parts.iter().map(|part| self.memory(part)).collect();
        let (target, argument) = (self.file(file), self.argument(first.slot));
        let result = if parts.len() == 1 {
            // SAFETY: the memory lies within the slot and is left alone and kept until the request has ended, or
            // for ever; so is the ticket.
            unsafe {
                (target.library.leadline_xrd_read)(
                    target.file,
                    first.offset,
                    first.length,
                    memories[0],
                    ended,
                    argument,
                    target.timeout_s,
                )
            }
        } else {
            let offsets: Vec<_> = parts.iter().map(|part| part.offset).collect();
            let lengths: Vec<_> = parts.iter().map(|part| part.length).collect();
            // SAFETY: as above; the three lists have as many entries as is said, and are copied.
            unsafe {
                (target.library.leadline_xrd_read_vector)(
                    target.file,
                    parts.len() as u32,
                    offsets.as_ptr(),
                    lengths.as_ptr(),
                    memories.as_ptr(),
                    ended,
                    argument,
                    target.timeout_s,
                )
            }
        };
        self.taken(result, parts, |_| -1)
    }

    /// Writes one part: 0, or minus errno, and then nothing was started.
    pub fn write(&mut self, file: u32, part: Part) -> i64 {
        let memory = self.memory(&part);
        let (target, argument) = (self.file(file), self.argument(part.slot));
        // SAFETY: as of `read`.
        let result = unsafe {
            (target.library.leadline_xrd_write)(
                target.file,
                part.offset,
                part.length,
                memory,
                ended,
                argument,
                target.timeout_s,
            )
        };
        self.taken(result, &[part], |part| i64::from(part.length))
    }

    /// Syncs a file; the slot's buffer is not used.
    pub fn sync(&mut self, file: u32, slot: u32) -> i64 {
        let (target, argument) = (self.file(file), self.argument(slot));
        // SAFETY: the ticket stays until the request has ended, as of `read`.
        let result = unsafe {
            (target.library.leadline_xrd_sync)(target.file, ended, argument, target.timeout_s)
        };
        let part = Part {
            slot,
            offset: 0,
            start: 0,
            length: 0,
        };
        self.taken(result, &[part], |_| 0)
    }

    /// Calls `settle` with (slot, result) of all that has ended, after waiting for a request at most `timeout`.
    /// A vector read says its bytes in all: each part of it has its own length then.
    pub fn reap(&mut self, timeout: Duration, lengths: &[u32], mut settle: impl FnMut(u32, i64)) {
        self.flight.fetch(timeout);
        while let Some((number, result)) = self.flight.next_end() {
            let parts = &mut self.parts[number as usize];
            let several = parts.len() > 1;
            for (slot, moves) in parts.drain(..) {
                self.flight.ended(slot);
                let result = match result {
                    failed if failed < 0 => failed,
                    _ if several => i64::from(lengths[slot as usize]),
                    bytes if moves < 0 => bytes,
                    _ => moves,
                };
                settle(slot, result);
            }
        }
    }
}
