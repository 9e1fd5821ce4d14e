//! Requests of XRootD's client in flight: buffers of slots, and where ended requests wait to be fetched.

use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::sys::buffer::{ALIGNMENT_BYTES, AlignedBuffer};
use crate::sys::xrootd::File;

/// One slot's part of a request: bytes at `start` of its buffer, at `offset` of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub slot: u32,
    pub offset: u64,
    pub start: usize,
    pub length: u32,
}

#[derive(Default)]
struct Inbox {
    ended: Mutex<Vec<(u32, i64)>>,
    filled: Condvar,
}

/// What the client is given with a request. Its address must not change while that is in flight.
struct Ticket {
    number: u32,
    inbox: Arc<Inbox>,
}

/// Called by a thread of the client.
extern "C" fn ended(argument: *mut c_void, result: i64) {
    // SAFETY: the argument is a ticket of a queue, which lives until its request has ended (or for ever).
    let ticket = unsafe { &*argument.cast::<Ticket>() };
    let inbox = &ticket.inbox;
    let mut list = inbox.ended.lock().unwrap_or_else(PoisonError::into_inner);
    list.push((ticket.number, result));
    drop(list);
    inbox.filled.notify_one();
}

/// Buffers of slots, open files, and requests on them. A request bears its first slot's number.
pub struct Queue {
    files: Option<Vec<File>>,
    inbox: Arc<Inbox>,
    /// Leaked with the tickets and files when the client may still write to it.
    buffer: Option<AlignedBuffer>,
    tickets: Option<Box<[Ticket]>>,
    stride_bytes: usize,
    in_flight: Vec<bool>,
    /// The parts of the request that bears a slot's number, and what each moves.
    parts: Vec<Vec<(u32, i64)>>,
    fetched: Vec<(u32, i64)>,
}

impl Queue {
    /// `slots` buffers of `slot_bytes` for requests on `files`.
    pub fn new(files: Vec<File>, slots: u32, slot_bytes: usize) -> std::io::Result<Self> {
        let stride_bytes = slot_bytes.next_multiple_of(ALIGNMENT_BYTES);
        let inbox = Arc::new(Inbox::default());
        let ticket = |number| Ticket {
            number,
            inbox: Arc::clone(&inbox),
        };
        let count = slots as usize;
        inbox
            .ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .reserve(count);
        Ok(Self {
            files: Some(files),
            buffer: Some(AlignedBuffer::new(stride_bytes * count)?),
            tickets: Some((0..slots).map(ticket).collect()),
            inbox,
            stride_bytes,
            in_flight: vec![false; count],
            parts: vec![Vec::with_capacity(1); count],
            fetched: Vec::with_capacity(count),
        })
    }

    /// The buffer of a slot without a request in flight.
    #[inline]
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        assert!(
            !self.in_flight[slot as usize],
            "XRootD's client still uses the buffer of slot {slot}"
        );
        let buffer = self.buffer.as_mut().expect("it is taken only by drop");
        let start = slot as usize * self.stride_bytes;
        &mut buffer.as_mut_slice()[start..start + self.stride_bytes]
    }

    fn memory(&self, part: &Part) -> *mut c_void {
        assert!(
            !self.in_flight[part.slot as usize],
            "a slot is in one request"
        );
        assert!(
            part.start + part.length as usize <= self.stride_bytes,
            "a part beyond its slot"
        );
        let buffer = self.buffer.as_ref().expect("it is taken only by drop");
        let place = part.slot as usize * self.stride_bytes + part.start;
        buffer.as_ptr().wrapping_add(place).cast()
    }

    fn file(&self, number: u32) -> &File {
        &self.files.as_ref().expect("they are taken only by drop")[number as usize]
    }

    fn argument(&self, slot: u32) -> *mut c_void {
        let tickets = self.tickets.as_ref().expect("they are taken only by drop");
        std::ptr::from_ref(&tickets[slot as usize])
            .cast_mut()
            .cast()
    }

    /// Marks the parts of a request that was taken; passes the result on.
    fn taken(&mut self, result: i64, parts: &[Part], moves: impl Fn(&Part) -> i64) -> i64 {
        let Some(first) = parts.first() else {
            return result;
        };
        if result == 0 {
            for part in parts {
                self.in_flight[part.slot as usize] = true;
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
            // SAFETY: the memory lies within the slot (asserted) and is left alone and kept until the request has
            // ended: `buffer` asserts it and `drop` leaks it otherwise; so is the ticket.
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
        self.wait(timeout);
        for (number, result) in self.fetched.drain(..) {
            let parts = &mut self.parts[number as usize];
            let several = parts.len() > 1;
            for (slot, moves) in parts.drain(..) {
                self.in_flight[slot as usize] = false;
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

    fn wait(&mut self, timeout: Duration) {
        let end = Instant::now() + timeout;
        let inbox = &self.inbox;
        let mut list = inbox.ended.lock().unwrap_or_else(PoisonError::into_inner);
        while list.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            (list, _) = inbox
                .filled
                .wait_timeout(list, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut *list, &mut self.fetched);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.in_flight.contains(&true) {
            // Requests that the server never answered may yet write there, and call back.
            std::mem::forget(self.buffer.take());
            std::mem::forget(self.tickets.take());
            std::mem::forget(self.files.take());
        }
    }
}
