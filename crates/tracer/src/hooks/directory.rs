//! Directories as streams: opened like files, read entry by entry from a buffer that the C library fills.

use core::ffi::{c_char, c_int, c_void};

use leadline_record::trace::{Call, Kind};
use libc::{AT_FDCWD, DIR, size_t, ssize_t};

use super::{Outcome, hook};
use crate::recording::{Made, before_close, closed, on_descriptor, on_path, opened};
use crate::{clock, symbols};

/// The descriptor of a stream that is open.
unsafe fn descriptor(directory: *mut DIR) -> c_int {
    if directory.is_null() {
        return -1;
    }
    // SAFETY: the program gave it to a function that takes an open stream.
    unsafe { libc::dirfd(directory) }
}

unsafe fn began(made: Made, path: *const c_char, directory: *mut DIR) {
    // SAFETY: the program gave it to a function that takes an open stream.
    let fd = i64::from(unsafe { descriptor(directory) });
    // SAFETY: as given to the real function.
    unsafe {
        opened(
            Made { result: fd, ..made },
            (AT_FDCWD, path),
            libc::O_DIRECTORY,
        )
    };
}

/// Null is the end as well as an error.
fn entry_read(made: Made, directory: *mut DIR) {
    // SAFETY: the program gave it to a function that takes an open stream.
    let fd = unsafe { descriptor(directory) };
    on_descriptor(Made { result: 0, ..made }, fd, Kind::Meta, |record, _| {
        record.readdirs += 1
    });
}

/// A directory that the C library opens, reads and closes by itself.
unsafe fn scanned(made: Made, path: *const c_char) {
    // SAFETY: as given to the real function.
    unsafe {
        on_path(made, (AT_FDCWD, path), |record| {
            record.opens += 1;
            record.closes += 1;
            record.readdirs += 1;
        });
    }
}

/// Takes a descriptor over; the file stays what it was.
fn taken_over(made: Made, fd: c_int) {
    on_descriptor(made, fd, Kind::Meta, |_, _| ());
}

/// The record is found before the stream is gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closedir(directory: *mut DIR) -> c_int {
    let real = symbols::real(Call::closedir);
    if real.is_null() {
        return symbols::missing();
    }
    // SAFETY: the real function of this name has this type.
    let real: unsafe extern "C" fn(*mut DIR) -> c_int = unsafe { core::mem::transmute(real) };
    // SAFETY: the program gave it to a function that takes an open stream.
    let record = before_close(unsafe { descriptor(directory) });
    let start = clock::ticks();
    // SAFETY: the argument is the program's own.
    let result = unsafe { real(directory) };
    closed(Made::new(Call::closedir, start, result.number()), record);
    result
}

hook! {
    fn opendir: (path: *const c_char) -> *mut DIR, |made, stream| began(made, path, stream);
    fn fdopendir: (fd: c_int) -> *mut DIR, |made| taken_over(made, fd);
    fn readdir | readdir64: (directory: *mut DIR) -> *mut c_void, |made| entry_read(made, directory);
    fn readdir_r | readdir64_r: (directory: *mut DIR, entry: *mut c_void, into: *mut *mut c_void) -> c_int,
        |made| entry_read(made, directory);
    fn scandir | scandir64:
        (path: *const c_char, into: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int,
        |made| scanned(made, path);
    fn getdents64: (fd: c_int, into: *mut c_void, bytes: size_t) -> ssize_t,
        |made| on_descriptor(made, fd, Kind::Meta, |record, _| record.readdirs += 1);
}
