//! Pieces of operations in flight on one session, and the buffers that they read into and write from. All in the
//! thread that waits for them: the library calls back from there.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::time::Duration;

use super::compound::{Answer, Request, errno_of as protocol_errno};
use super::{Handle, OpenFile, Session, errno_of};
use crate::sys::in_flight::{self, InFlight};

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

/// Where a read goes to, and how much fits; null for everything else.
type Room = Cell<(usize, usize)>;

extern "C" fn ended(error: c_int, _nfs: Handle, data: *mut c_void, own: *mut c_void) {
    let result = |room: &Room| {
        let (place, bytes) = room.get();
        if error > 0 && place != 0 && !data.is_null() {
            let place = place as *mut u8;
            // SAFETY: the library has `error` bytes at `data`; `place` has room for `bytes`, and nobody else has it
            // while the piece is in flight.
            unsafe { std::ptr::copy_nonoverlapping(data.cast(), place, bytes.min(error as usize)) };
        }
        if error < 0 {
            -i64::from(errno_of(error))
        } else {
            i64::from(error)
        }
    };
    // SAFETY: `own` is the ticket of a piece in flight, which ends with this one call; the library is called only
    // while its queue lives.
    unsafe { in_flight::end::<Room>(own, result) };
}

extern "C" fn compound_ended(_rpc: Handle, status: c_int, data: *mut c_void, own: *mut c_void) {
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
    // SAFETY: as of `ended`.
    unsafe { in_flight::end::<Room>(own, |_| result) };
}

/// Buffers of slots, and pieces of operations on them.
pub struct Queue {
    flight: InFlight<Session, Room>,
}

impl Queue {
    /// `slots` buffers of `slot_bytes`, and at most `pieces` pieces of each in flight.
    pub fn new(
        session: Session,
        slots: u32,
        slot_bytes: usize,
        pieces: u32,
    ) -> std::io::Result<Self> {
        let flight = InFlight::new("libnfs", session, (slots, slot_bytes), pieces)?;
        Ok(Self { flight })
    }

    /// For calls between the queued ones, before and after a trial.
    pub fn session(&mut self) -> &mut Session {
        self.flight.held_mut()
    }

    /// True when nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.flight.is_idle()
    }

    /// The buffer of a slot without a piece in flight.
    #[inline]
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.flight.buffer(slot)
    }

    /// Starts piece `piece` of a slot: `length` bytes at `start` of its buffer, at `offset` of the file.
    /// 0, or minus errno, and then nothing was started.
    pub fn start(
        &mut self,
        place: (u32, u32),
        action: Action,
        file: OpenFile,
        (offset, start, length): (u64, usize, usize),
    ) -> i64 {
        if self.session().lost {
            return -i64::from(libc::ENOTCONN);
        }
        let piece = self.flight.piece(place, (start, length));
        let (number, memory, ticket) = (piece.number, piece.memory, piece.ticket);
        let room = if action == Action::Read {
            memory as usize
        } else {
            0
        };
        piece.own.set((room, length));
        let session = self.flight.held_mut();
        if !session.start(action, file, offset, (memory, length), ticket) {
            return -i64::from(libc::EIO);
        }
        self.flight.started(number);
        0
    }

    /// Leaves a server that did not answer in time: the library is never called again, so that what it has in flight
    /// is touched by nobody, and every call from here on is refused.
    pub fn leave(&mut self) {
        self.session().lost = true;
        while self.flight.give_up().is_some() {}
    }

    /// Sends what was started, as much as the socket takes.
    pub fn push(&mut self) {
        // A connection that is lost ends all pieces in `reap`.
        let _ = self.session().service(c_int::from(libc::POLLOUT));
    }

    /// Calls `settle` with (slot, piece, result) of every piece that has ended, after waiting for one at most
    /// `timeout`. A lost connection ends all.
    pub fn reap(&mut self, timeout: Duration, mut settle: impl FnMut(u32, u32, i64)) {
        let waits = !self.flight.has_ended();
        let served = self
            .session()
            .serve(if waits { timeout } else { Duration::ZERO });
        self.flight.fetch(Duration::ZERO);
        while let Some((number, result)) = self.flight.next_end() {
            let (slot, piece) = self.flight.place(number);
            settle(slot, piece, result);
        }
        if served.is_err() {
            // The library is not called any more, so it touches none of them.
            while let Some(number) = self.flight.give_up() {
                let (slot, piece) = self.flight.place(number);
                settle(slot, piece, -i64::from(libc::ENOTCONN));
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
        // Answers that have not come would be told to the tickets, which go now.
        if !self.is_idle() {
            self.leave();
        }
    }
}
