//! Operations of librados in flight: buffers of slots, completions, and where ended ones wait to be fetched.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::sys::buffer::{ALIGNMENT_BYTES, AlignedBuffer};
use crate::sys::librados::{Handle, Librados};

pub type Callback = extern "C" fn(completion: Handle, argument: *mut c_void);

/// What starts pieces of operations, with librados's completions: librados itself, or the striper above it.
/// Each call returns 0, or minus errno if nothing was started.
pub trait Aio: Send + Sync {
    fn completions(&self) -> &'static Librados;

    /// # Safety
    /// `memory` (start and length) must be left alone until `completion` has ended.
    unsafe fn start_read(
        &self,
        object: &CStr,
        completion: Handle,
        memory: (*mut u8, usize),
        offset: u64,
    ) -> i64;

    /// # Safety
    /// As of `start_read`.
    unsafe fn start_write(
        &self,
        object: &CStr,
        completion: Handle,
        memory: (*mut u8, usize),
        offset: u64,
    ) -> i64;

    /// # Safety
    /// `completion` must be a fresh one of `completions`.
    unsafe fn start_remove(&self, object: &CStr, completion: Handle) -> i64;
}

/// What one piece of an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Read,
    Write,
    Remove,
}

/// Where ended pieces wait to be fetched: (ticket, the library's completion).
#[derive(Default)]
struct Inbox {
    ended: Mutex<Vec<u32>>,
    filled: Condvar,
}

/// What the library is given with a piece. Its address must not change while it is in flight.
struct Ticket {
    number: u32,
    inbox: Arc<Inbox>,
    completion: AtomicPtr<c_void>,
}

/// Called by a thread of the library.
extern "C" fn ended(_completion: Handle, argument: *mut c_void) {
    // SAFETY: the argument is a ticket of a queue, which lives until all its pieces have ended (or for ever).
    let ticket = unsafe { &*argument.cast::<Ticket>() };
    let mut list = ticket
        .inbox
        .ended
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    list.push(ticket.number);
    drop(list);
    ticket.inbox.filled.notify_one();
}

/// Buffers of slots, and asynchronous pieces of operations on them.
pub struct Queue {
    aio: Arc<dyn Aio>,
    inbox: Arc<Inbox>,
    /// Leaked with the tickets when the library may still write to it.
    buffer: Option<AlignedBuffer>,
    tickets: Option<Box<[Ticket]>>,
    stride_bytes: usize,
    pieces: u32,
    in_flight: Vec<bool>,
    fetched: Vec<u32>,
}

impl Queue {
    /// `slots` buffers of `slot_bytes`, and at most `pieces` pieces of each in flight.
    pub fn new(
        aio: Arc<dyn Aio>,
        slots: u32,
        slot_bytes: usize,
        pieces: u32,
    ) -> std::io::Result<Self> {
        let stride_bytes = slot_bytes.next_multiple_of(ALIGNMENT_BYTES);
        let inbox = Arc::new(Inbox::default());
        let count = slots * pieces;
        let tickets = (0..count)
            .map(|number| Ticket {
                number,
                inbox: Arc::clone(&inbox),
                completion: AtomicPtr::new(std::ptr::null_mut()),
            })
            .collect();
        inbox
            .ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .reserve(count as usize);
        Ok(Self {
            aio,
            inbox,
            buffer: Some(AlignedBuffer::new(stride_bytes * slots as usize)?),
            tickets: Some(tickets),
            stride_bytes,
            pieces,
            in_flight: vec![false; count as usize],
            fetched: Vec::with_capacity(count as usize),
        })
    }

    /// The buffer of a slot without a piece in flight.
    #[inline]
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        let first = (slot * self.pieces) as usize;
        assert!(
            !self.in_flight[first..first + self.pieces as usize].contains(&true),
            "librados still uses the buffer of slot {slot}"
        );
        let buffer = self.buffer.as_mut().expect("it is taken only by drop");
        let start = slot as usize * self.stride_bytes;
        &mut buffer.as_mut_slice()[start..start + self.stride_bytes]
    }

    /// Starts piece `piece` of a slot: `length` bytes at `start` of its buffer, at `offset` of the object.
    /// 0, or minus errno, and then nothing was started.
    pub fn start(
        &mut self,
        (slot, piece): (u32, u32),
        action: Action,
        object: &CStr,
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
        let library = self.aio.completions();
        let tickets = self.tickets.as_ref().expect("they are taken only by drop");
        let ticket = &tickets[number as usize];
        let mut completion: Handle = std::ptr::null_mut();
        let argument = std::ptr::from_ref(ticket).cast_mut().cast();
        // SAFETY: the ticket lives until the piece has ended: `drop` leaks it otherwise.
        let made =
            unsafe { (library.rados_aio_create_completion2)(argument, ended, &raw mut completion) };
        if made < 0 {
            return i64::from(made);
        }
        ticket.completion.store(completion, Ordering::Release);
        let buffer = self.buffer.as_ref().expect("it is taken only by drop");
        let start = buffer
            .as_ptr()
            .wrapping_add(slot as usize * self.stride_bytes + start);
        let memory = (start, length);
        // SAFETY: the memory lies within the slot (asserted), which nobody touches while a piece is in flight
        // (`buffer` asserts it) and which is leaked by `drop` where one still is; the completion is fresh.
        let result = unsafe {
            match action {
                Action::Read => self.aio.start_read(object, completion, memory, offset),
                Action::Write => self.aio.start_write(object, completion, memory, offset),
                Action::Remove => self.aio.start_remove(object, completion),
            }
        };
        if result < 0 {
            // SAFETY: the completion was made above and is in no operation.
            unsafe { (library.rados_aio_release)(completion) };
            return result;
        }
        self.in_flight[number as usize] = true;
        0
    }

    /// Calls `settle` with (slot, piece, result) of every piece that has ended, after waiting for one at most
    /// `timeout`.
    pub fn reap(&mut self, timeout: Duration, mut settle: impl FnMut(u32, u32, i64)) {
        self.wait(timeout);
        let library = self.aio.completions();
        let tickets = self.tickets.as_ref().expect("they are taken only by drop");
        for number in self.fetched.drain(..) {
            let completion = tickets[number as usize].completion.load(Ordering::Acquire);
            // SAFETY: the completion is of an operation that has ended, and is released once.
            let result = unsafe {
                let result = (library.rados_aio_get_return_value)(completion);
                (library.rados_aio_release)(completion);
                result
            };
            self.in_flight[number as usize] = false;
            settle(
                number / self.pieces,
                number % self.pieces,
                i64::from(result),
            );
        }
    }

    fn wait(&mut self, timeout: Duration) {
        let end = Instant::now() + timeout;
        let mut list = self
            .inbox
            .ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while list.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            (list, _) = self
                .inbox
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
            // Operations that the cluster never ended may yet write there, and call back.
            std::mem::forget(self.buffer.take());
            std::mem::forget(self.tickets.take());
            std::mem::forget(Arc::clone(&self.aio));
        }
    }
}
