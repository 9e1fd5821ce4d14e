//! What asks for the state of files: stat in all its names, and access.

use core::ffi::{c_char, c_int, c_uint, c_void};

use leadline_record::trace::Kind;
use libc::{AT_FDCWD, size_t, ssize_t};

use super::hook;
use crate::memory;
use crate::recording::{Made, on_descriptor, on_nothing, on_path, on_status};

#[inline(always)]
unsafe fn path(made: Made, path: *const c_char) {
    // SAFETY: as given to the real function.
    unsafe { on_path(made, (AT_FDCWD, path), |record| record.stats += 1) };
}

/// With an empty path the directory's descriptor is meant itself.
pub unsafe fn at(made: Made, directory: c_int, path: *const c_char, flags: c_int) {
    // SAFETY: as given to the real function, which has read it where it succeeded.
    let is_empty = || path.is_null() || (made.result >= 0 && unsafe { path.read() } == 0);
    if flags & libc::AT_EMPTY_PATH != 0 && is_empty() {
        return descriptor(made, directory);
    }
    // SAFETY: as above.
    unsafe { on_path(made, (directory, path), |record| record.stats += 1) };
}

fn descriptor(made: Made, fd: c_int) {
    on_descriptor(made, fd, Kind::Meta, |record, _| record.stats += 1);
}

/// `into` is the kernel's own structure, which is the C library's on x86-64.
#[inline(always)]
pub unsafe fn status(made: Made, fd: c_int, into: *const c_void) {
    // SAFETY: the real function has filled it where it succeeded.
    unsafe {
        on_status(made, fd, Kind::Meta, into.cast(), |record, _| {
            record.stats += 1
        })
    };
}

/// Not a stat: the call, its time and its failures are counted.
pub unsafe fn asked(made: Made, directory: c_int, path: *const c_char) {
    // SAFETY: as given to the real function.
    unsafe { on_path(made, (directory, path), |_| ()) };
}

/// The answer may be where the question was.
pub unsafe fn link_read(made: Made, directory: c_int, path: *const c_char, into: *const c_char) {
    let bytes = usize::try_from(made.result).unwrap_or(0);
    // SAFETY: as given to the real function.
    unsafe {
        if memory::is_overwritten(path, into, bytes) {
            on_nothing(made, Kind::Meta);
        } else {
            asked(made, directory, path);
        }
    }
}

hook! {
    fn stat | stat64 | lstat | lstat64: (name: *const c_char, into: *mut c_void) -> c_int, |made| path(made, name);
    fn fstat | fstat64: (fd: c_int, into: *mut c_void) -> c_int, |made| status(made, fd, into);
    fn fstatat | fstatat64: (directory: c_int, name: *const c_char, into: *mut c_void, flags: c_int) -> c_int,
        |made| at(made, directory, name, flags);
    fn statx: (directory: c_int, name: *const c_char, flags: c_int, mask: c_uint, into: *mut c_void) -> c_int,
        |made| at(made, directory, name, flags);
    fn __xstat | __xstat64 | __lxstat | __lxstat64: (version: c_int, name: *const c_char, into: *mut c_void) -> c_int,
        |made| path(made, name);
    fn __fxstat | __fxstat64: (version: c_int, fd: c_int, into: *mut c_void) -> c_int, |made| status(made, fd, into);
    fn __fxstatat | __fxstatat64:
        (version: c_int, directory: c_int, name: *const c_char, into: *mut c_void, flags: c_int) -> c_int,
        |made| at(made, directory, name, flags);
    fn access | euidaccess | eaccess: (name: *const c_char, mode: c_int) -> c_int, |made| asked(made, AT_FDCWD, name);
    fn faccessat: (directory: c_int, name: *const c_char, mode: c_int, flags: c_int) -> c_int,
        |made| asked(made, directory, name);
    fn readlink: (name: *const c_char, into: *mut c_char, bytes: size_t) -> ssize_t,
        |made| link_read(made, AT_FDCWD, name, into);
    fn readlinkat: (directory: c_int, name: *const c_char, into: *mut c_char, bytes: size_t) -> ssize_t,
        |made| link_read(made, directory, name, into);
}
