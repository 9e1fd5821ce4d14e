//! What a call changes in the records of the thread that made it.

mod files;
mod transfers;

use core::ffi::c_char;

use leadline_record::trace::layout::{
    FILE_NONE, FileRecord, HISTOGRAM_BUCKETS, MODULE_POSIX, MODULE_STDIO, bucket_of,
};
use leadline_record::trace::{Call, Kind};

use crate::clock::ticks;
use crate::descriptors::{self, Description};
use crate::paths;
use crate::process::lost;
use crate::segments::{self, Segment};
use crate::thread::{Thread, enter};

pub use files::{before_close, closed, opened};
pub use transfers::{Direction, Transfer, arrived, copied, stream_transfer, transfer};

/// A call that was made: which, when it began, what it returned.
#[derive(Clone, Copy)]
pub struct Made {
    pub call: Call,
    pub start: u64,
    pub result: i64,
}

/// errno of the calling thread, as the call left it.
fn errno() -> i64 {
    // SAFETY: the address is the calling thread's own.
    i64::from(unsafe { *libc::__errno_location() })
}

fn is_bad_address(made: Made) -> bool {
    made.result < 0 && errno() == i64::from(libc::EFAULT)
}

/// Counts, latency and segment of a call, whatever it did.
#[inline(always)]
fn finish(
    thread: &mut Thread,
    made: Made,
    kind: Kind,
    end: u64,
    on: (u32, Option<u64>, Option<u64>),
) {
    // SAFETY: `calls` has room for every number, and is this thread's.
    unsafe { *thread.calls.wrapping_add(made.call.number()) += 1 };
    let counts = thread.histograms[kind as usize];
    let bucket = bucket_of(end.wrapping_sub(made.start));
    if counts.is_null() || bucket >= HISTOGRAM_BUCKETS {
        count_first(thread, kind, bucket);
    } else {
        // SAFETY: within the histogram, which is this thread's.
        unsafe { *counts.wrapping_add(bucket) += 1 };
    }
    if thread.segments.wanted {
        segment(thread, made, end, on);
    }
}

/// Begins the histogram, or counts the latency as lost.
#[cold]
#[inline(never)]
fn count_first(thread: &mut Thread, kind: Kind, bucket: usize) {
    let mut counts = thread.histograms[kind as usize];
    if counts.is_null() {
        counts = thread.new_histogram(kind);
    }
    if counts.is_null() || bucket >= HISTOGRAM_BUCKETS {
        thread.lost(lost::HISTOGRAMS);
    } else {
        // SAFETY: within the histogram, which is this thread's.
        unsafe { *counts.wrapping_add(bucket) += 1 };
    }
}

#[inline(always)]
fn segment(thread: &mut Thread, made: Made, end: u64, on: (u32, Option<u64>, Option<u64>)) {
    let (file, offset, length) = on;
    let result = if made.result < 0 {
        -errno()
    } else {
        made.result
    };
    let segment = Segment {
        call: made.call,
        start: made.start,
        end,
        file,
        offset,
        length,
        result,
    };
    segments::append(thread, &segment);
}

#[inline(always)]
fn used(thread: &mut Thread, record: *mut FileRecord) {
    // SAFETY: the record is this thread's.
    unsafe { (*record).operations += 1 };
    if paths::is_used_up(record) {
        paths::forget_found(thread);
    }
}

/// A call on a descriptor that moves no bytes: `change` counts it in the file's record.
#[inline(always)]
pub fn on_descriptor(
    made: Made,
    fd: i32,
    kind: Kind,
    change: impl FnOnce(&mut FileRecord, &Description),
) {
    let end = ticks();
    let Some(mut thread) = enter() else {
        return;
    };
    let Some(place) = descriptors::place(&mut thread, fd, MODULE_POSIX) else {
        return;
    };
    // SAFETY: the record is this thread's.
    let record = unsafe { &mut *place.record };
    if made.result >= 0 {
        change(record, place.description);
    }
    counted(&mut thread, record, made, kind, end, None);
}

/// A call on a stream, counted in the STDIO module.
#[inline(always)]
pub fn on_stream(
    made: Made,
    fd: i32,
    kind: Kind,
    change: impl FnOnce(&mut FileRecord, &Description),
) {
    let end = ticks();
    let Some(mut thread) = enter() else {
        return;
    };
    let Some(place) = descriptors::place(&mut thread, fd, MODULE_STDIO) else {
        return;
    };
    // SAFETY: the record is this thread's.
    let record = unsafe { &mut *place.record };
    if made.result >= 0 {
        change(record, place.description);
    }
    counted(&mut thread, record, made, kind, end, None);
}

/// A call on a path: `change` counts it in the file's record.
///
/// # Safety
/// `path` is null or what was given to the real function.
#[inline(always)]
pub unsafe fn on_path(
    made: Made,
    (directory, path): (i32, *const c_char),
    change: impl FnOnce(&mut FileRecord),
) {
    let end = ticks();
    let Some(mut thread) = enter() else {
        return;
    };
    let record = if is_bad_address(made) {
        thread.others
    } else {
        // SAFETY: promised by the caller, and the kernel could read it.
        unsafe { paths::record(&mut thread, directory, path) }
    };
    // SAFETY: the record is this thread's.
    let record = unsafe { &mut *record };
    if made.result >= 0 {
        change(record);
    }
    counted(&mut thread, record, made, Kind::Meta, end, None);
}

/// Changes the record of a second path that a call names, without counting the call again.
///
/// # Safety
/// As for `on_path`.
pub unsafe fn also_on_path(
    made: Made,
    (directory, path): (i32, *const c_char),
    change: impl FnOnce(&mut FileRecord),
) {
    if made.result < 0 {
        return;
    }
    let Some(mut thread) = enter() else {
        return;
    };
    // SAFETY: promised by the caller.
    let record = unsafe { &mut *paths::record(&mut thread, directory, path) };
    change(record);
    used(&mut thread, record);
}

#[inline(always)]
fn counted(
    thread: &mut Thread,
    record: &mut FileRecord,
    made: Made,
    kind: Kind,
    end: u64,
    length: Option<u64>,
) {
    record.failed += u32::from(made.result < 0);
    let ticks = end.wrapping_sub(made.start);
    match kind {
        Kind::Sync => record.sync_ticks += ticks,
        _ => record.meta_ticks += ticks,
    }
    let file = record.file;
    used(thread, record);
    finish(thread, made, kind, end, (file, None, length));
}

/// A call without a file.
pub fn on_nothing(made: Made, kind: Kind) {
    let end = ticks();
    let Some(mut thread) = enter() else {
        return;
    };
    let ticks = end.wrapping_sub(made.start);
    // SAFETY: the record is this thread's.
    let record = unsafe { &mut *thread.others };
    match kind {
        Kind::Sync => record.sync_ticks += ticks,
        _ => record.meta_ticks += ticks,
    }
    finish(&mut thread, made, kind, end, (FILE_NONE, None, None));
}
