//! Asynchronous requests that are under way, the C library's and the kernel's.
//!
//! Once submitted, a request's memory is the program's again: it may be another request, or gone, when the result
//! comes. So what it asked for is kept here, from before the submission: its result may come before that is back.

use core::ffi::{c_int, c_long, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use leadline_record::trace::Call;
use leadline_record::trace::layout::NOTE_ASYNCHRONOUS;
use libc::aiocb;

use crate::memory::Reach;
use crate::process::{self, Process, lost};
use crate::recording::{Asked, Request};
use crate::{chunks, clock, extent};

/// Requests that are followed at once; more take the places of some.
const REQUESTS: usize = 1 << 14;
/// Places where one request may be.
const NEAR: usize = 8;
const FREE: usize = 0;
const TAKEN: usize = 1;
/// The mark of the C library's requests, which have none of their own: one address is under way once.
const OF_LIBRARY: u64 = u64::MAX;

static USED: AtomicBool = AtomicBool::new(false);

/// The kernel's `struct iocb`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Block {
    data: u64,
    key: u32,
    flags: u32,
    operation: u16,
    priority: i16,
    descriptor: u32,
    memory: u64,
    bytes: u64,
    offset: i64,
}

impl Block {
    fn request(&self, start: u64) -> Request {
        let is_vector = matches!(self.operation, 7 | 8);
        let (asked, call) = match self.operation {
            0 | 7 => (Asked::Read, Call::io_submit_read),
            1 | 8 => (Asked::Write, Call::io_submit_write),
            2 => (Asked::Sync, Call::io_submit_sync),
            3 => (Asked::DataSync, Call::io_submit_sync),
            _ => (Asked::Nothing, Call::io_submit),
        };
        Request {
            call,
            asked,
            start,
            descriptor: self.descriptor as c_int,
            offset: u64::try_from(self.offset).ok(),
            bytes: (!is_vector).then_some(self.bytes),
            memory: self.memory as usize,
        }
    }
}

/// A request under way. Zeros are a free place.
#[repr(C)]
struct Place {
    /// The request's address, which its event has, too.
    address: AtomicUsize,
    /// Which of the same address: the program's own mark, and of several the one that was submitted first.
    mark: AtomicU64,
    request: core::cell::UnsafeCell<MaybeUninit<Request>>,
}

/// What the table takes.
pub fn bytes() -> usize {
    extent::of(REQUESTS) * size_of::<Place>()
}

fn table(process: &'static Process) -> &'static [Place] {
    // SAFETY: the process's memory has room for it, where zeros are valid, and is never unmapped.
    unsafe { core::slice::from_raw_parts(process.requests().cast(), extent::of(REQUESTS)) }
}

fn places(process: &'static Process, address: usize) -> &'static [Place] {
    let hash = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let first = hash % (extent::of(REQUESTS) / NEAR) * NEAR;
    table(process).get(first..first + NEAR).unwrap_or(&[])
}

impl Place {
    fn claim(&self, held: usize) -> bool {
        let found = self.address.compare_exchange(held, TAKEN, AcqRel, Relaxed);
        held != TAKEN && found.is_ok()
    }
}

fn kept() -> Option<&'static Process> {
    if crate::thread::is_vfork_child() {
        return None;
    }
    process::ready()
}

/// The program cannot be asked any more what became of a request.
pub fn lose() {
    if let Some(process) = process::existing() {
        process::count(chunks::header(process), lost::CALLS);
    }
}

fn keep(process: &'static Process, address: usize, mark: u64, request: Request) {
    USED.store(true, Relaxed);
    process::flag(chunks::header(process), NOTE_ASYNCHRONOUS);
    let places = places(process, address);
    let place = places.iter().find(|place| place.claim(FREE)).or_else(|| {
        let mut all = places.iter();
        let found = all.find(|place| place.claim(place.address.load(Relaxed)));
        lose();
        found
    });
    if let Some(place) = place {
        // SAFETY: the place is this call's until its address is set.
        unsafe { (*place.request.get()).write(request) };
        place.mark.store(mark, Relaxed);
        place.address.store(address, Release);
    }
}

/// Calls `each` for requests that are being submitted, from the `first` on, as far as they can be read.
fn for_each(
    (requests, count): (*const *mut c_void, c_long),
    first: c_long,
    mut each: impl FnMut(usize, &Block),
) {
    let mut reach = Reach::new();
    for number in first.max(0)..count {
        let slot = requests.wrapping_add(number as usize);
        if !reach.holds(slot.addr(), size_of::<usize>()) {
            return;
        }
        // SAFETY: it can be read.
        let request: *const Block = unsafe { slot.read_unaligned() }.cast_const().cast();
        if !reach.holds(request.addr(), size_of::<Block>()) {
            return;
        }
        // SAFETY: as above.
        each(request.addr(), &unsafe { request.read_unaligned() });
    }
}

/// Requests are about to be submitted to the kernel.
pub fn submitting(all: (*const *mut c_void, c_long)) {
    let Some(process) = kept() else {
        return;
    };
    let start = clock::ticks();
    for_each(all, 0, |address, block| {
        keep(process, address, block.data, block.request(start));
    });
}

/// Only the first `done` of them were.
pub fn submitted(all: (*const *mut c_void, c_long), done: i64) {
    let done = done.max(0);
    if done < all.1 {
        for_each(all, done, |address, block| {
            take(address, block.data);
        });
    }
}

/// The C library is about to be given a request.
///
/// # Safety
/// `block` is null or what the real function reads.
pub unsafe fn giving(block: *const aiocb, call: Call, asked: Asked) {
    // SAFETY: promised by the caller.
    let (Some(process), Some(given)) = (kept(), unsafe { block.as_ref() }) else {
        return;
    };
    let request = Request {
        call,
        asked,
        start: clock::ticks(),
        descriptor: given.aio_fildes,
        offset: u64::try_from(given.aio_offset).ok(),
        bytes: Some(given.aio_nbytes as u64),
        memory: given.aio_buf.addr(),
    };
    returned(block); // what an earlier use of this memory has left
    keep(process, block.addr(), OF_LIBRARY, request);
}

/// What was asked for by a request whose result the C library has handed out, or which it did not take.
pub fn returned(block: *const aiocb) -> Option<Request> {
    take(block.addr(), OF_LIBRARY)
}

/// What was asked for by the request that an event has the address and mark of.
pub fn take(address: usize, mark: u64) -> Option<Request> {
    let process = kept()?;
    places(process, address).iter().find_map(|place| {
        let is_this = place.address.load(Acquire) == address && place.mark.load(Relaxed) == mark;
        if !is_this || !place.claim(address) {
            return None;
        }
        // SAFETY: the place is this call's until it is free, and was filled before it got its address.
        let request = unsafe { (*place.request.get()).assume_init() };
        place.address.store(FREE, Release);
        Some(request)
    })
}

/// The program ends: what became of requests whose results it has not asked for is not known.
pub fn abandoned() {
    let Some(process) = process::existing().filter(|_| USED.load(Relaxed)) else {
        return;
    };
    for place in table(process) {
        let held = place.address.load(Acquire);
        if held != FREE && place.claim(held) {
            place.address.store(FREE, Release);
            lose();
        }
    }
}
