//! Bytes that the kernel moves from descriptor to descriptor: counted as read and as written.

use core::ffi::{c_int, c_uint};

use libc::{off64_t, size_t, ssize_t};

use super::hook;
use crate::recording::{Made, copied};

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
    fn copy_file_range(
        from: c_int, from_offset: *mut off64_t, to: c_int, to_offset: *mut off64_t, bytes: size_t, flags: c_uint,
    ) -> ssize_t,
        |made| between(made, (from, from_offset), (to, to_offset), bytes as u64);
    fn splice(
        from: c_int, from_offset: *mut off64_t, to: c_int, to_offset: *mut off64_t, bytes: size_t, flags: c_uint,
    ) -> ssize_t,
        |made| between(made, (from, from_offset), (to, to_offset), bytes as u64);
    fn sendfile(to: c_int, from: c_int, offset: *mut off64_t, bytes: size_t) -> ssize_t,
        |made| sent(made, to, (from, offset), bytes as u64);
    fn sendfile64(to: c_int, from: c_int, offset: *mut off64_t, bytes: size_t) -> ssize_t,
        |made| sent(made, to, (from, offset), bytes as u64);
}
