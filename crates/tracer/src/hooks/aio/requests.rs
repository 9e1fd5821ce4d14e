//! Requests to the kernel's asynchronous I/O that are under way.
//!
//! Once submitted, a request's memory is the program's again: it may be another request, or gone, when the result
//! comes. So what it asked for is kept here, from before the submission: its result may come before that is back.

use core::ffi::c_long;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU64, AtomicUsize};

use crate::extent;
use crate::memory::Reach;
use crate::process::{self, Process};

/// Requests that are followed at once; more take the places of some.
const REQUESTS: usize = 1 << 14;
/// Places where one request may be.
const NEAR: usize = 8;
const FREE: usize = 0;
const TAKEN: usize = 1;

/// The kernel's `struct iocb`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Request {
    data: u64,
    key: u32,
    flags: u32,
    pub operation: u16,
    priority: i16,
    pub descriptor: u32,
    pub memory: u64,
    pub bytes: u64,
    pub offset: i64,
}

/// A request under way. Zeros are a free place.
#[repr(C)]
struct Place {
    /// The request's address, which its event has, too.
    address: AtomicUsize,
    /// Which of the same address: the program's own mark, and of several the one that was submitted first.
    data: AtomicU64,
    request: core::cell::UnsafeCell<Request>,
}

/// What the table takes.
pub fn bytes() -> usize {
    extent::of(REQUESTS) * size_of::<Place>()
}

fn places(process: &'static Process, address: usize) -> &'static [Place] {
    let hash = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let first = hash % (extent::of(REQUESTS) / NEAR) * NEAR;
    let table: *const Place = process.requests().cast();
    // SAFETY: within the table, where zeros are valid, and which is never unmapped.
    unsafe { core::slice::from_raw_parts(table.wrapping_add(first), NEAR) }
}

fn kept() -> Option<&'static Process> {
    if crate::thread::is_vfork_child() {
        return None;
    }
    process::ready()
}

/// Calls `each` for requests that are being submitted, from the `first` on, as far as they can be read.
fn for_each(
    (requests, count): (*const *mut core::ffi::c_void, c_long),
    first: c_long,
    mut each: impl FnMut(usize, &Request),
) {
    let mut reach = Reach::new();
    for number in first.max(0)..count {
        let slot = requests.wrapping_add(number as usize);
        if !reach.holds(slot.addr(), size_of::<usize>()) {
            return;
        }
        // SAFETY: it can be read.
        let request: *const Request = unsafe { slot.read_unaligned() }.cast_const().cast();
        if !reach.holds(request.addr(), size_of::<Request>()) {
            return;
        }
        // SAFETY: as above.
        each(request.addr(), &unsafe { request.read_unaligned() });
    }
}

/// Requests are about to be submitted.
pub fn submitting(all: (*const *mut core::ffi::c_void, c_long)) {
    let Some(process) = kept() else {
        return;
    };
    for_each(all, 0, |address, request| {
        let places = places(process, address);
        let take = |place: &&Place, held: usize| {
            held != TAKEN
                && place
                    .address
                    .compare_exchange(held, TAKEN, AcqRel, Relaxed)
                    .is_ok()
        };
        let free = places.iter().find(|place| take(place, FREE));
        let place = free.or_else(|| {
            let mut all = places.iter();
            all.find(|place| take(place, place.address.load(Relaxed)))
        });
        if let Some(place) = place {
            // SAFETY: the place is this call's until its address is set.
            unsafe { place.request.get().write(*request) };
            place.data.store(request.data, Relaxed);
            place.address.store(address, Release);
        }
    });
}

/// Only the first `done` of them were.
pub fn submitted(all: (*const *mut core::ffi::c_void, c_long), done: i64) {
    let done = done.max(0);
    if done < all.1 {
        for_each(all, done, |address, request| {
            take(address, request.data);
        });
    }
}

/// What was asked for by the request that an event has the address and mark of.
pub fn take(address: usize, data: u64) -> Option<Request> {
    let process = kept()?;
    places(process, address).iter().find_map(|place| {
        let is_this = place.address.load(Acquire) == address && place.data.load(Relaxed) == data;
        if !is_this
            || place
                .address
                .compare_exchange(address, TAKEN, AcqRel, Relaxed)
                .is_err()
        {
            return None;
        }
        // SAFETY: the place is this call's until it is free.
        let request = unsafe { place.request.get().read() };
        place.address.store(FREE, Release);
        Some(request)
    })
}
