//! Pieces of operations in flight on one session, and the buffers that they read into and write from. All in the
//! thread that waits for them: the library calls back from there.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::time::Duration;

use super::compound::{Answer, Request, errno_of as protocol_errno};
use super::{Handle, OpenFile, Session, errno_of};
use crate::sys::buffer::{ALIGNMENT_BYTES, AlignedBuffer};

/// What one piece of an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Read,
    /// Acknowledged when it is on the store.
    WriteThrough,
    /// Acknowledged when the server has it.
    Write,
    Commit,
}

/// What the library is given with a piece. Its address must not change while it is in flight.
struct Ticket {
    number: u32,
    /// Where a read goes to, and how much fits.
    place: std::cell::Cell<(*mut u8, usize)>,
    ended: *const RefCell<Vec<(u32, i64)>>,
}

impl Ticket {
    fn end(&self, result: i64) {
        // SAFETY: the list is the queue's, as the tickets are, at an address that does not change.
        unsafe { &*self.ended }
            .borrow_mut()
            .push((self.number, result));
    }
}

extern "C" fn ended(error: c_int, _nfs: Handle, data: *mut c_void, own: *mut c_void) {
    // SAFETY: `own` is a ticket of a queue, which calls the library only while it lives.
    let ticket = unsafe { &*own.cast::<Ticket>() };
    let (place, room) = ticket.place.get();
    if error > 0 && !place.is_null() && !data.is_null() {
        // SAFETY: the library has `error` bytes at `data`; `place` has room for `room`, and nobody else has it
        // while the piece is in flight.
        unsafe { std::ptr::copy_nonoverlapping(data.cast(), place, room.min(error as usize)) };
    }
    ticket.end(if error < 0 {
        -i64::from(errno_of(error))
    } else {
        i64::from(error)
    });
}

extern "C" fn compound_ended(_rpc: Handle, status: c_int, data: *mut c_void, own: *mut c_void) {
    // SAFETY: `own` is a ticket of a queue, which calls the library only while it lives.
    let ticket = unsafe { &*own.cast::<Ticket>() };
    let result = match status {
        0 if !data.is_null() => {
            // SAFETY: of a call that was answered the data is what `decode` wrote.
            let answer = unsafe { *data.cast::<Answer>() };
            match answer.status {
                0 => i64::from(answer.written_bytes),
                status => -i64::from(protocol_errno(status)),
            }
        }
        3 => -i64::from(libc::ETIMEDOUT),
        _ => -i64::from(libc::ENOTCONN),
    };
    ticket.end(result);
}

/// Buffers of slots, and pieces of operations on them.
pub struct Queue {
    /// First, so that it goes first: with what is in flight the library is never called again.
    session: Session,
    ended: Box<RefCell<Vec<(u32, i64)>>>,
    tickets: Box<[Ticket]>,
    buffer: AlignedBuffer,
    stride_bytes: usize,
    pieces: u32,
    in_flight: Vec<bool>,
    fetched: Vec<(u32, i64)>,
}

// SAFETY: what its tickets point to is its own, and moves with it; one thread uses it at a time.
unsafe impl Send for Queue {}

impl Queue {
    /// `slots` buffers of `slot_bytes`, and at most `pieces` pieces of each in flight.
    pub fn new(
        session: Session,
        slots: u32,
        slot_bytes: usize,
        pieces: u32,
    ) -> std::io::Result<Self> {
        let stride_bytes = slot_bytes.next_multiple_of(ALIGNMENT_BYTES);
        let count = (slots * pieces) as usize;
        let ended = Box::new(RefCell::new(Vec::with_capacity(count)));
        let list = std::ptr::from_ref(ended.as_ref());
        let ticket = |number| Ticket {
            number,
            place: std::cell::Cell::new((std::ptr::null_mut(), 0)),
            ended: list,
        };
        Ok(Self {
            session,
            ended,
            tickets: (0..count as u32).map(ticket).collect(),
            buffer: AlignedBuffer::new(stride_bytes * slots as usize)?,
            stride_bytes,
            pieces,
            in_flight: vec![false; count],
            fetched: Vec::with_capacity(count),
        })
    }

    /// For calls between the queued ones, before and after a trial.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// True when nothing is in flight.
    pub fn is_idle(&self) -> bool {
        !self.in_flight.contains(&true)
    }

    /// The buffer of a slot without a piece in flight.
    #[inline]
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        let first = (slot * self.pieces) as usize;
        assert!(
            !self.in_flight[first..first + self.pieces as usize].contains(&true),
            "libnfs still uses the buffer of slot {slot}"
        );
        let start = slot as usize * self.stride_bytes;
        &mut self.buffer.as_mut_slice()[start..start + self.stride_bytes]
    }

    /// Starts piece `piece` of a slot: `length` bytes at `start` of its buffer, at `offset` of the file.
    /// 0, or minus errno, and then nothing was started.
    pub fn start(
        &mut self,
        (slot, piece): (u32, u32),
        action: Action,
        file: OpenFile,
        (offset, start, length): (u64, usize, usize),
    ) -> i64 {
        let number = slot * self.pieces + piece;
        assert!(
            piece < self.pieces && !self.in_flight[number as usize],
            "a piece is started once"
        );
        assert!(
            start + length <= self.stride_bytes,
            "a piece beyond its slot"
        );
        if self.session.lost {
            return -i64::from(libc::ENOTCONN);
        }
        let memory = self
            .buffer
            .as_ptr()
            .wrapping_add(slot as usize * self.stride_bytes + start);
        let ticket = &self.tickets[number as usize];
        let place = if action == Action::Read {
            memory
        } else {
            std::ptr::null_mut()
        };
        ticket.place.set((place, length));
        let own = std::ptr::from_ref(ticket).cast_mut().cast();
        if !self
            .session
            .start(action, file, offset, (memory, length), own)
        {
            return -i64::from(libc::EIO);
        }
        self.in_flight[number as usize] = true;
        0
    }

    /// Sends what was started, as much as the socket takes.
    pub fn push(&mut self) {
        // A connection that is lost ends all pieces in `reap`.
        let _ = self.session.service(c_int::from(libc::POLLOUT));
    }

    /// Calls `settle` with (slot, piece, result) of every piece that has ended, after waiting for one at most
    /// `timeout`. A lost connection ends all.
    pub fn reap(&mut self, timeout: Duration, mut settle: impl FnMut(u32, u32, i64)) {
        let waits = self.ended.borrow().is_empty();
        let served = self
            .session
            .serve(if waits { timeout } else { Duration::ZERO });
        std::mem::swap(&mut *self.ended.borrow_mut(), &mut self.fetched);
        for (number, result) in self.fetched.drain(..) {
            self.in_flight[number as usize] = false;
            settle(number / self.pieces, number % self.pieces, result);
        }
        if served.is_err() {
            self.give_up(settle);
        }
    }

    /// Ends all pieces: the library is not called any more, so it touches none of them.
    fn give_up(&mut self, mut settle: impl FnMut(u32, u32, i64)) {
        for (number, in_flight) in self.in_flight.iter_mut().enumerate() {
            if std::mem::take(in_flight) {
                let number = number as u32;
                settle(
                    number / self.pieces,
                    number % self.pieces,
                    -i64::from(libc::ENOTCONN),
                );
            }
        }
    }
}

impl Session {
    fn start(
        &mut self,
        action: Action,
        file: OpenFile,
        offset: u64,
        (memory, length): (*mut u8, usize),
        own: *mut c_void,
    ) -> bool {
        let (library, nfs, bytes) = (self.library, self.context, length as u64);
        // SAFETY: memory and length lie in a slot that nobody touches while the piece is in flight; the file is one
        // of this session's, and `own` a ticket that lives until it has ended.
        unsafe {
            match (action, self.version) {
                (Action::Read, _) => {
                    (library.nfs_pread_async)(nfs, file.0, offset, bytes, ended, own) == 0
                }
                (Action::Commit, 3) => (library.nfs_fsync_async)(nfs, file.0, ended, own) == 0,
                // Whether it is written through was said when the file was opened.
                (_, 3) => {
                    (library.nfs_pwrite_async)(
                        nfs,
                        file.0,
                        offset,
                        bytes,
                        memory.cast(),
                        ended,
                        own,
                    ) == 0
                }
                (Action::Commit, _) => self.send(file, &Request::Commit, compound_ended, own),
                (Action::Write | Action::WriteThrough, _) => {
                    let data = std::slice::from_raw_parts(memory, length);
                    let stable = action == Action::WriteThrough;
                    self.send(
                        file,
                        &Request::Write(offset, data, stable),
                        compound_ended,
                        own,
                    )
                }
            }
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Answers that have not come would be told to the tickets.
        self.session.lost |= !self.is_idle();
    }
}
