//! Room in the log: chunks of pages, handed out in order, made resident before they are written to.
//!
//! A page of a mapped file that the file system has no room for would kill the program with SIGBUS at the first
//! write. The kernel is asked to make the pages writable first; where it refuses, the chunk is counted as lost.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU64, compiler_fence};

use leadline_record::trace::layout::{ChunkHead, Header, PAGE_BYTES, chunk_check};

use crate::process::Process;
use crate::sys::{self, raw};

const MADV_POPULATE_WRITE: i32 = 23;
const NO_SUCH_ADVICE: isize = -(libc::EINVAL as isize);

/// What a chunk is for.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub kind: u16,
    pub pages: u16,
    pub thread: u32,
    pub extra: u64,
}

/// A chunk of the main region, or of the segments; null when there is no room.
pub fn take(process: &Process, segments: bool, wanted: Wanted) -> *mut ChunkHead {
    if process.full.load(Relaxed) != 0 {
        return core::ptr::null_mut();
    }
    let header = process.header.load(Relaxed);
    // SAFETY: the header stays mapped; its cursors are only ever changed atomically, its regions never.
    let (cursor, offset, limit) = unsafe {
        if segments {
            let cursor = AtomicU64::from_ptr(&raw mut (*header).segments_used);
            (cursor, (*header).segments_offset, (*header).segments_bytes)
        } else {
            let cursor = AtomicU64::from_ptr(&raw mut (*header).main_used);
            (cursor, (*header).main_offset, (*header).main_bytes)
        }
    };
    let bytes = u64::from(wanted.pages) * PAGE_BYTES as u64;
    let reserve = |used: u64| (used + bytes <= limit).then_some(used + bytes);
    let Ok(at) = cursor.fetch_update(Relaxed, Relaxed, reserve) else {
        return core::ptr::null_mut();
    };
    let chunk: *mut ChunkHead = header.wrapping_byte_add((offset + at) as usize).cast();
    if !populate(chunk.cast(), bytes as usize) {
        process.full.store(1, Relaxed);
        return core::ptr::null_mut();
    }
    write_head(chunk, wanted);
    chunk
}

fn write_head(chunk: *mut ChunkHead, wanted: Wanted) {
    // SAFETY: the chunk's pages are resident, writable and reserved for the caller.
    unsafe {
        (&raw mut (*chunk).extra).write(wanted.extra);
        (&raw mut (*chunk).used).write(0);
        (&raw mut (*chunk).thread).write(wanted.thread);
        (&raw mut (*chunk).pages).write(wanted.pages);
        (&raw mut (*chunk).check).write(chunk_check(wanted.kind, wanted.pages, wanted.thread));
        // The kind makes the chunk valid for readers: last.
        compiler_fence(core::sync::atomic::Ordering::Release);
        (&raw mut (*chunk).kind).write_volatile(wanted.kind);
    }
}

/// Makes pages of the log writable; false where the file system has no room for them.
pub fn populate(address: *mut u8, bytes: usize) -> bool {
    match sys::advise(address, bytes, MADV_POPULATE_WRITE) {
        0 => true,
        NO_SUCH_ADVICE => populate_by_hand(address, bytes),
        _ => false,
    }
}

/// Kernels before 5.14: the kernel writes into each page itself, and reports what would be a signal for us.
fn populate_by_hand(address: *mut u8, bytes: usize) -> bool {
    (0..bytes).step_by(PAGE_BYTES).all(|offset| {
        let page = address.wrapping_add(offset);
        raw!(SYS_clock_gettime, libc::CLOCK_MONOTONIC, page) == 0 && clear(page)
    })
}

fn clear(page: *mut u8) -> bool {
    // SAFETY: the kernel has just written these 16 bytes of the page.
    unsafe { page.write_bytes(0, size_of::<libc::timespec>()) };
    true
}

/// A place within a thread's current chunk of one kind.
#[repr(C)]
pub struct Cursor {
    chunk: *mut ChunkHead,
    used: u32,
    room: u32,
    pages: u16,
}

impl Cursor {
    /// `bytes` (a multiple of 8) more, zeroed; null when there is no room. Not yet counted as used.
    pub fn reserve(&mut self, process: &Process, bytes: u32, kind: u16, thread: u32) -> *mut u8 {
        if self.chunk.is_null() || self.used + bytes > self.room {
            // One page at first: most programs are small. More later: each chunk costs a system call.
            let pages = (self.pages * 2)
                .clamp(1, 16)
                .max(bytes.div_ceil(PAGE_BYTES as u32) as u16 + 1);
            let pages = if self.pages == 0 && bytes < 2048 {
                1
            } else {
                pages
            };
            let chunk = take(
                process,
                false,
                Wanted {
                    kind,
                    pages,
                    thread,
                    extra: 0,
                },
            );
            if chunk.is_null() {
                return core::ptr::null_mut();
            }
            self.chunk = chunk;
            self.pages = pages;
            self.used = 0;
            self.room = u32::from(pages) * PAGE_BYTES as u32 - size_of::<ChunkHead>() as u32;
        }
        self.chunk
            .wrapping_add(1)
            .cast::<u8>()
            .wrapping_add(self.used as usize)
    }

    /// Counts what was reserved last as used, after it was filled.
    pub fn commit(&mut self, bytes: u32) {
        self.used += bytes;
        compiler_fence(core::sync::atomic::Ordering::Release);
        // SAFETY: the chunk stays mapped, and this thread alone writes its head.
        unsafe { (&raw mut (*self.chunk).used).write_volatile(self.used) };
    }
}

/// The header of a process's log.
pub fn header(process: &Process) -> *mut Header {
    process.header.load(Relaxed)
}
