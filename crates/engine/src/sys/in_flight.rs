//! What libraries have in flight: buffers of slots, a ticket for each piece of an operation, the inbox where ended
//! pieces wait to be fetched, and what is given up for lost when somebody leaves before all have ended.
//!
//! A library is handed a ticket's address and gives it back with the end, often from a thread of its own. Whoever
//! fetches that end may drop everything at once, while the library's thread has still to ring: so the thread holds
//! the inbox by itself from before the end is told, and the ticket is not touched after it.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::time::{Duration, Instant};

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use crate::sys::buffer::{ALIGNMENT_BYTES, AlignedBuffer};

/// Where ended pieces wait: number and result.
#[derive(Default)]
struct Inbox {
    ended: Mutex<VecDeque<(u32, i64)>>,
    filled: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(u32, i64)>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a library is given with a piece. Its address does not change while that is in flight.
pub struct Ticket<T> {
    number: u32,
    inbox: Arc<Inbox>,
    /// The library's own.
    pub own: T,
}

/// Tells the end of the piece whose ticket a library was given, with the result that `read` has for it.
///
/// # Safety
/// `ticket` is the address of a `Ticket<T>` that an `InFlight` of the same `T` gave out for a piece that has not
/// ended; it is not used again.
pub unsafe fn end<T>(ticket: *mut c_void, read: impl FnOnce(&T) -> i64) {
    // SAFETY: the ticket lives until the end of its piece was fetched, or for ever; it was not told yet.
    let ticket = unsafe { &*ticket.cast::<Ticket<T>>() };
    let (number, result) = (ticket.number, read(&ticket.own));
    let inbox = Arc::clone(&ticket.inbox);
    // From here on the ticket may be gone.
    inbox.lock().push_back((number, result));
    inbox.filled.notify_one();
}

/// A piece as a library takes it.
pub struct Piece<'a, T> {
    pub number: u32,
    /// Within the slot's buffer, and as long as was asked for.
    pub memory: *mut u8,
    pub own: &'a T,
    pub ticket: *mut c_void,
}

/// Buffers of slots, and pieces of operations on them; `H` is what a library needs as long as it may call back.
pub struct InFlight<H, T = ()> {
    library: &'static str,
    inbox: Arc<Inbox>,
    /// These three are leaked together when the library may still write there, and call back.
    held: Option<H>,
    /// A Vec, as a Box that is moved would claim tickets that the library reads.
    tickets: Option<Vec<Ticket<T>>>,
    buffer: Option<AlignedBuffer>,
    stride_bytes: usize,
    /// As many as slots, or one for all.
    buffers: usize,
    pieces: u32,
    in_flight: Vec<bool>,
    fetched: VecDeque<(u32, i64)>,
}

const TAKEN: &str = "it is taken only by drop";

impl<H, T: Default> InFlight<H, T> {
    /// `slots` buffers of `slot_bytes`, and at most `pieces` pieces of each in flight.
    pub fn new(
        library: &'static str,
        held: H,
        (slots, slot_bytes): (u32, usize),
        pieces: u32,
    ) -> std::io::Result<Self> {
        Self::with_buffers(library, held, (slots, slot_bytes), pieces, slots)
    }

    /// The same with one buffer for all slots.
    ///
    /// # Safety
    /// The library must be done with a piece's memory when the call that starts it returns: it copies what is written,
    /// and nothing is read.
    pub unsafe fn copied(
        library: &'static str,
        held: H,
        (slots, slot_bytes): (u32, usize),
        pieces: u32,
    ) -> std::io::Result<Self> {
        Self::with_buffers(library, held, (slots, slot_bytes), pieces, 1)
    }

    fn with_buffers(
        library: &'static str,
        held: H,
        (slots, slot_bytes): (u32, usize),
        pieces: u32,
        buffers: u32,
    ) -> std::io::Result<Self> {
        let buffers = buffers as usize;
        let stride_bytes = slot_bytes.next_multiple_of(ALIGNMENT_BYTES);
        let inbox = Arc::new(Inbox::default());
        let count = (slots * pieces) as usize;
        inbox.lock().reserve(count);
        let ticket = |number| Ticket {
            number,
            inbox: Arc::clone(&inbox),
            own: T::default(),
        };
        Ok(Self {
            library,
            held: Some(held),
            tickets: Some((0..count as u32).map(ticket).collect()),
            buffer: Some(AlignedBuffer::new(stride_bytes * buffers)?),
            inbox,
            stride_bytes,
            buffers,
            pieces,
            in_flight: vec![false; count],
            fetched: VecDeque::with_capacity(count),
        })
    }
}

impl<H, T> InFlight<H, T> {
    /// What the library needs.
    pub fn held(&self) -> &H {
        self.held.as_ref().expect(TAKEN)
    }

    /// The same, to change it.
    pub fn held_mut(&mut self) -> &mut H {
        self.held.as_mut().expect(TAKEN)
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
            "{} still uses the buffer of slot {slot}",
            self.library
        );
        let start = self.start_of(slot);
        let buffer = self.buffer.as_mut().expect(TAKEN);
        buffer.part_mut(start..start + self.stride_bytes)
    }

    fn start_of(&self, slot: u32) -> usize {
        slot as usize % self.buffers * self.stride_bytes
    }

    /// Piece `piece` of a slot, with `length` bytes at `start` of its buffer. It is in flight once `started` was told
    /// so; until it has ended nobody else is given its memory, and where it never does, that is leaked.
    pub fn piece(
        &self,
        (slot, piece): (u32, u32),
        (start, length): (usize, usize),
    ) -> Piece<'_, T> {
        let number = slot * self.pieces + piece;
        assert!(
            piece < self.pieces && !self.in_flight[number as usize],
            "a piece is started once"
        );
        assert!(
            start + length <= self.stride_bytes,
            "a piece beyond its slot"
        );
        let tickets = self.tickets.as_ref().expect(TAKEN);
        let ticket = &tickets[number as usize];
        let place = self.start_of(slot) + start;
        Piece {
            number,
            memory: self
                .buffer
                .as_ref()
                .expect(TAKEN)
                .as_ptr()
                .wrapping_add(place),
            own: &ticket.own,
            ticket: std::ptr::from_ref(ticket).cast_mut().cast(),
        }
    }

    /// A library has taken the piece.
    pub fn started(&mut self, number: u32) {
        self.in_flight[number as usize] = true;
    }

    /// A piece without a ticket of its own has ended with another one.
    pub fn ended(&mut self, number: u32) {
        self.in_flight[number as usize] = false;
    }

    /// True when an end waits to be fetched.
    pub fn has_ended(&self) -> bool {
        !self.inbox.lock().is_empty()
    }

    /// Fetches all ends, after waiting for one at most `timeout`. Then `next_end` gives them out.
    pub fn fetch(&mut self, timeout: Duration) {
        let end = Instant::now() + timeout;
        let mut list = self.inbox.lock();
        while list.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.inbox.filled.wait_timeout(list, left);
            (list, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut *list, &mut self.fetched);
    }

    /// A piece that has ended, by its number, and its result.
    pub fn next_end(&mut self) -> Option<(u32, i64)> {
        let (number, result) = self.fetched.pop_front()?;
        self.in_flight[number as usize] = false;
        Some((number, result))
    }

    /// Slot and piece of a number.
    pub fn place(&self, number: u32) -> (u32, u32) {
        (number / self.pieces, number % self.pieces)
    }

    /// Ends a piece that is in flight, if any, of a library that is never called again and touches none of them.
    pub fn give_up(&mut self) -> Option<u32> {
        let number = self.in_flight.iter().position(|in_flight| *in_flight)?;
        self.in_flight[number] = false;
        Some(number as u32)
    }
}

impl<H, T> Drop for InFlight<H, T> {
    fn drop(&mut self) {
        if !self.is_idle() {
            std::mem::forget(self.buffer.take());
            std::mem::forget(self.tickets.take());
            std::mem::forget(self.held.take());
        }
    }
}
