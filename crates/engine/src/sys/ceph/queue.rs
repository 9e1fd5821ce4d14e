//! Operations of librados in flight: its completions, and what a piece that has ended moved.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

use super::librados::{Handle, Librados};
use crate::sys::in_flight::{self, InFlight};

pub type Callback = extern "C" fn(completion: Handle, argument: *mut c_void);

pub type StartRead =
    unsafe extern "C" fn(Handle, *const c_char, Handle, *mut c_char, usize, u64) -> c_int;
pub type StartWrite =
    unsafe extern "C" fn(Handle, *const c_char, Handle, *const c_char, usize, u64) -> c_int;
pub type StartRemove = unsafe extern "C" fn(Handle, *const c_char, Handle) -> c_int;

/// What starts pieces of operations on `target`, with librados's completions: functions of librados itself, or of the
/// striper above it. Each returns 0, or minus errno if nothing was started, and copies the name.
pub struct Calls {
    pub completions: &'static Librados,
    pub target: Handle,
    pub read: StartRead,
    pub write: StartWrite,
    pub remove: StartRemove,
}

/// Lives as long as what it starts is in flight.
pub trait Aio: Send + Sync {
    fn calls(&self) -> Calls;
}

/// What one piece of an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Read,
    Write,
    Remove,
}

/// Called by a thread of the library.
extern "C" fn ended(_completion: Handle, argument: *mut c_void) {
    // SAFETY: the argument is the ticket of a piece in flight, which ends with this one call.
    unsafe { in_flight::end::<()>(argument, |()| 0) };
}

/// Buffers of slots, and asynchronous pieces of operations on them.
pub struct Queue {
    flight: InFlight<Arc<dyn Aio>>,
    /// Of each piece in flight: the library's completion, and the bytes that its end stands for (`None`: it says so
    /// itself).
    pieces: Vec<(Handle, Option<i64>)>,
    writes_only: bool,
}

impl Queue {
    /// `slots` buffers of `slot_bytes`, and at most `pieces` pieces of each in flight.
    pub fn new(
        aio: Arc<dyn Aio>,
        slots: u32,
        slot_bytes: usize,
        pieces: u32,
    ) -> std::io::Result<Self> {
        let flight = InFlight::new("librados", aio, (slots, slot_bytes), pieces)?;
        Ok(Self::of(flight, slots * pieces, false))
    }

    /// The same for writes that are each started before the next one's data are made: one buffer is enough.
    pub fn of_writes_in_turn(
        aio: Arc<dyn Aio>,
        slots: u32,
        slot_bytes: usize,
        pieces: u32,
    ) -> std::io::Result<Self> {
        // SAFETY: rados_aio_write and rados_striper_aio_write append the bytes to a list of buffers of their own
        // before they return (librados_c.cc and libradosstriper.cc), and `start` refuses reads.
        let flight = unsafe { InFlight::copied("librados", aio, (slots, slot_bytes), pieces)? };
        Ok(Self::of(flight, slots * pieces, true))
    }

    fn of(flight: InFlight<Arc<dyn Aio>>, pieces: u32, writes_only: bool) -> Self {
        Self {
            flight,
            pieces: vec![(std::ptr::null_mut(), None); pieces as usize],
            writes_only,
        }
    }

    /// The buffer of a slot without a piece in flight.
    #[inline]
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.flight.buffer(slot)
    }

    /// Starts piece `piece` of a slot: `length` bytes at `start` of its buffer, at `offset` of the object.
    /// 0, or minus errno, and then nothing was started.
    pub fn start(
        &mut self,
        place: (u32, u32),
        action: Action,
        object: &CStr,
        (offset, start, length): (u64, usize, usize),
    ) -> i64 {
        assert!(
            !(self.writes_only && action == Action::Read),
            "a read without a buffer of its own"
        );
        let piece = self.flight.piece(place, (start, length));
        let (number, memory) = (piece.number, piece.memory.cast());
        let calls = self.flight.held().calls();
        let library = calls.completions;
        let mut completion: Handle = std::ptr::null_mut();
        // SAFETY: the ticket lives until the piece has ended, or for ever.
        let made = unsafe {
            (library.rados_aio_create_completion2)(piece.ticket, ended, &raw mut completion)
        };
        if made < 0 {
            return i64::from(made);
        }
        // SAFETY: the memory lies within the slot, which nobody touches while a piece is in flight and which is
        // leaked where one never ends; the completion is fresh.
        let result = unsafe {
            let (target, name) = (calls.target, object.as_ptr());
            i64::from(match action {
                Action::Read => (calls.read)(target, name, completion, memory, length, offset),
                Action::Write => (calls.write)(target, name, completion, memory, length, offset),
                Action::Remove => (calls.remove)(target, name, completion),
            })
        };
        if result < 0 {
            // SAFETY: the completion was made above and is in no operation.
            unsafe { (library.rados_aio_release)(completion) };
            return result;
        }
        let moves = (action == Action::Write).then_some(length as i64);
        self.pieces[number as usize] = (completion, moves);
        self.flight.started(number);
        0
    }

    /// Calls `settle` with (slot, piece, bytes or minus errno) of every piece that has ended, after waiting for one
    /// at most `timeout`.
    pub fn reap(&mut self, timeout: Duration, mut settle: impl FnMut(u32, u32, i64)) {
        self.flight.fetch(timeout);
        let library = self.flight.held().calls().completions;
        while let Some((number, _)) = self.flight.next_end() {
            let (completion, moves) = self.pieces[number as usize];
            // SAFETY: the completion is of an operation that has ended, and is released once.
            let result = unsafe {
                let result = (library.rados_aio_get_return_value)(completion);
                (library.rados_aio_release)(completion);
                i64::from(result)
            };
            let (slot, piece) = self.flight.place(number);
            settle(slot, piece, moves.filter(|_| result >= 0).unwrap_or(result));
        }
    }
}
