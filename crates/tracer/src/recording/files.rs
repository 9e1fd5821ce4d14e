//! Files that are opened and closed.

use core::ffi::c_char;

use leadline_record::trace::Kind;
use leadline_record::trace::layout::FileRecord;

use super::{Made, counted, errno, is_named};
use crate::delay::Owed;
use crate::thread::enter;
use crate::{descriptors, paths};

/// A file was opened at a path, as descriptor `made.result`.
///
/// # Safety
/// As for `on_path`.
pub unsafe fn opened(made: Made, (directory, path): (i32, *const c_char), flags: i32) {
    let end = made.clock.now();
    let _after = Owed;
    let Some(mut thread) = enter() else {
        return;
    };
    if path.is_null() || !is_named(made, path) {
        return;
    }
    // The path of an O_TMPFILE is its directory's. The kernel has a name for the file, where it may be asked.
    let is_unnamed = made.result >= 0 && flags & libc::O_TMPFILE == libc::O_TMPFILE;
    let length = if is_unnamed {
        paths::of_descriptor(&mut thread.path, made.result as i32)
    } else {
        0
    };
    let file = if length > 0 {
        let name = thread.path.get(..length).unwrap_or(&[]);
        let unseen = name.strip_suffix(b" (deleted)").unwrap_or(name).len();
        paths::number_of_text(&mut thread, unseen)
    } else {
        // SAFETY: promised by the caller, and it can be read.
        let text = unsafe { core::ffi::CStr::from_ptr(path) }.to_bytes();
        paths::number(&mut thread, directory, text)
    };
    if made.result >= 0 {
        descriptors::opened(&thread, made.result as i32, file, flags);
    }
    let record = paths::record_of(&mut thread, file);
    // SAFETY: the record is this thread's.
    let record = unsafe { &mut *record };
    if made.result >= 0 {
        record.opens += 1;
        if record.open_start == 0 {
            record.open_start = made.start;
        }
        record.open_end = end;
    }
    counted(&mut thread, record, made, Kind::Meta, end, None);
}

/// What is done before the real close: the descriptor may belong to another thread's file right after it.
pub fn before_close(fd: i32) -> *mut FileRecord {
    let errno = errno();
    let Some(mut thread) = enter() else {
        return core::ptr::null_mut();
    };
    let process = thread.process();
    // What was never used needs not be looked up to be closed.
    let known = descriptors::file_of(process, fd).is_some();
    let place = if known {
        descriptors::place(&mut thread, fd)
    } else {
        None
    };
    descriptors::closed(process, fd);
    // SAFETY: the address is the calling thread's own.
    unsafe { *libc::__errno_location() = errno as i32 };
    place.map_or(core::ptr::null_mut(), |place| place.record)
}

/// A descriptor was closed; `record` is what `before_close` gave.
pub fn closed(made: Made, record: *mut FileRecord) {
    let end = made.clock.now();
    if record.is_null() {
        return;
    }
    let _after = Owed;
    let Some(mut thread) = enter() else {
        return;
    };
    // SAFETY: records are never unmapped, and this one is the thread's.
    let record = unsafe { &mut *record };
    record.closes += 1;
    if record.close_start == 0 {
        record.close_start = made.start;
    }
    record.close_end = end;
    counted(&mut thread, record, made, Kind::Meta, end, None);
}
