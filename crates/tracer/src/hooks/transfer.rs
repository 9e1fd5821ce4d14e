//! Reads and writes of descriptors, with memory or vectors of it, at the position or at an offset.

use core::ffi::{c_int, c_uint, c_void};

use libc::{iovec, off64_t, size_t, ssize_t};

use super::hook;
use crate::recording::{Direction, Made, Transfer, copied, transfer};

#[inline(always)]
fn plain(made: Made, direction: Direction, fd: c_int, memory: *const c_void, asked: usize) {
    let memory = memory.addr();
    transfer(
        made,
        fd,
        Transfer {
            direction,
            offset: None,
            asked: asked as u64,
            memory,
        },
    );
}

#[inline(always)]
fn at(
    made: Made,
    direction: Direction,
    (fd, offset): (c_int, i64),
    memory: *const c_void,
    asked: usize,
) {
    let offset = Some(offset as u64);
    transfer(
        made,
        fd,
        Transfer {
            direction,
            offset,
            asked: asked as u64,
            memory: memory.addr(),
        },
    );
}

/// A vector at an offset; -1 is the position, as for preadv2.
#[inline(always)]
pub unsafe fn vector(
    made: Made,
    direction: Direction,
    fd: c_int,
    (parts, count): (*const iovec, c_int),
    offset: Option<i64>,
) {
    let offset = offset.and_then(|offset| u64::try_from(offset).ok());
    let (mut asked, mut memory) = (0_u64, 0);
    if made.result >= 0 && !parts.is_null() {
        for place in 0..count.max(0) as usize {
            // SAFETY: the kernel has just read these.
            let part = unsafe { &*parts.wrapping_add(place) };
            asked = asked.saturating_add(part.iov_len as u64);
            memory |= part.iov_base.addr();
        }
    }
    transfer(
        made,
        fd,
        Transfer {
            direction,
            offset,
            asked,
            memory,
        },
    );
}

use Direction::{Read, Write};

hook! {
    fn read: (fd: c_int, into: *mut c_void, bytes: size_t) -> ssize_t, |made| plain(made, Read, fd, into, bytes);
    fn __read_chk: (fd: c_int, into: *mut c_void, bytes: size_t, room: size_t) -> ssize_t,
        |made| plain(made, Read, fd, into, bytes);
    fn pread | pread64: (fd: c_int, into: *mut c_void, bytes: size_t, offset: off64_t) -> ssize_t,
        |made| at(made, Read, (fd, offset), into, bytes);
    fn __pread_chk | __pread64_chk:
        (fd: c_int, into: *mut c_void, bytes: size_t, offset: off64_t, room: size_t) -> ssize_t,
        |made| at(made, Read, (fd, offset), into, bytes);
    fn readv: (fd: c_int, parts: *const iovec, count: c_int) -> ssize_t,
        |made| vector(made, Read, fd, (parts, count), None);
    fn preadv | preadv64: (fd: c_int, parts: *const iovec, count: c_int, offset: off64_t) -> ssize_t,
        |made| vector(made, Read, fd, (parts, count), Some(offset));
    fn preadv2 | preadv64v2: (fd: c_int, parts: *const iovec, count: c_int, offset: off64_t, flags: c_int) -> ssize_t,
        |made| vector(made, Read, fd, (parts, count), Some(offset));
    fn write: (fd: c_int, from: *const c_void, bytes: size_t) -> ssize_t,
        |made| plain(made, Write, fd, from, bytes);
    fn pwrite | pwrite64: (fd: c_int, from: *const c_void, bytes: size_t, offset: off64_t) -> ssize_t,
        |made| at(made, Write, (fd, offset), from, bytes);
    fn writev: (fd: c_int, parts: *const iovec, count: c_int) -> ssize_t,
        |made| vector(made, Write, fd, (parts, count), None);
    fn pwritev | pwritev64: (fd: c_int, parts: *const iovec, count: c_int, offset: off64_t) -> ssize_t,
        |made| vector(made, Write, fd, (parts, count), Some(offset));
    fn pwritev2 | pwritev64v2:
        (fd: c_int, parts: *const iovec, count: c_int, offset: off64_t, flags: c_int) -> ssize_t,
        |made| vector(made, Write, fd, (parts, count), Some(offset));
}

/// Where a transfer began: the kernel has moved the program's offset on by what it copied.
unsafe fn began(made: Made, offset: *const off64_t) -> Option<u64> {
    if offset.is_null() || made.result < 0 {
        return None;
    }
    // SAFETY: the kernel has just written it.
    u64::try_from(unsafe { offset.read() } - made.result).ok()
}

type End = (c_int, *mut off64_t);

/// Both have an offset of their own, or none.
pub unsafe fn between(made: Made, from: End, to: End, asked: u64) {
    // SAFETY: as given to the real function.
    let (read_at, written_at) = unsafe { (began(made, from.1), began(made, to.1)) };
    copied(made, (from.0, read_at), (to.0, written_at), asked);
}

/// To a descriptor's position.
pub unsafe fn sent(made: Made, to: c_int, from: End, asked: u64) {
    // SAFETY: as given to the real function.
    copied(
        made,
        (from.0, unsafe { began(made, from.1) }),
        (to, None),
        asked,
    );
}

hook! {
    fn copy_file_range | splice: (
        from: c_int, from_offset: *mut off64_t, to: c_int, to_offset: *mut off64_t, bytes: size_t, flags: c_uint,
    ) -> ssize_t,
        |made| between(made, (from, from_offset), (to, to_offset), bytes as u64);
    fn sendfile | sendfile64: (to: c_int, from: c_int, offset: *mut off64_t, bytes: size_t) -> ssize_t,
        |made| sent(made, to, (from, offset), bytes as u64);
}
