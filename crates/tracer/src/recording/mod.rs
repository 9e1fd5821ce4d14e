//! What a call changes in the records of the thread that made it.

mod requests;
mod transfers;

use core::ffi::c_char;

use leadline_record::trace::layout::{
    FILE_NONE, FileRecord, HISTOGRAM_TICKS, ThreadRecord, bucket_of,
};
use leadline_record::trace::{Call, Kind};

use crate::clock::{self, Clock};
use crate::delay::{self, Owed};
use crate::descriptors::{self, Description};
use crate::memory;
use crate::paths::{self, OPERATIONS_MAX};
use crate::process::lost;
use crate::segments::{self, Segment};
use crate::thread::{Thread, enter, enter_idle};
pub use requests::{Asked, Request, arrived, only_counted};
pub use transfers::{Direction, Transfer, copied, moved_until_now, transfer};

/// A call that was made: which, when it began by which clock, what it returned.
#[derive(Clone, Copy)]
pub struct Made {
    pub call: Call,
    pub start: u64,
    pub result: i64,
    pub clock: Clock,
}

impl Made {
    pub fn new(call: Call, start: u64, result: i64) -> Self {
        Self {
            call,
            start,
            result,
            clock: Clock::Either,
        }
    }
}

/// errno of the calling thread, as the call left it.
fn errno() -> i64 {
    // SAFETY: the address is the calling thread's own.
    i64::from(unsafe { *libc::__errno_location() })
}

/// Can the path be read that a call was given? Where it has succeeded the kernel has read it; where it failed, that
/// may have been for this path, or before it was looked at.
fn is_named(made: Made, path: *const c_char) -> bool {
    made.result >= 0 || memory::is_path(path)
}

/// The record of the file that a call was on, if any; offset and length where it has them.
type On = (*mut FileRecord, Option<u64>, Option<u64>);

/// Counts, latency and segment of a call, whatever it did; a call of a class that is delayed owes its wait.
#[inline(always)]
fn finish(thread: &mut Thread, made: Made, kind: Kind, end: u64, on: On) {
    if !written(thread, made, kind, end, on) {
        delay::met(thread, (made, kind), end, on.0);
    }
}

/// Counts, latency and segment; false where it went the long way.
#[inline(always)]
fn written(thread: &mut Thread, made: Made, kind: Kind, end: u64, on: On) -> bool {
    let ticks = end.wrapping_sub(made.start);
    let again = is_countable(thread, kind, ticks);
    if again {
        count(thread, made.call, kind, ticks, end);
    } else {
        // SAFETY: `calls` has room for every number, and is this thread's.
        unsafe { *thread.calls.wrapping_add(made.call.number()) += 1 };
        count_first(thread, kind, ticks);
    }
    if thread.segments.wanted {
        segment(thread, made, end, on);
    }
    again
}

/// Is there room for a latency?
#[inline(always)]
fn is_countable(thread: &Thread, kind: Kind, ticks: u64) -> bool {
    ticks < thread.histograms[kind as usize].below_ticks
}

/// Count and latency of a call, where there is room for it.
#[inline(always)]
fn count(thread: &mut Thread, call: Call, kind: Kind, ticks: u64, end: u64) {
    // SAFETY: `calls` has room for every number, the histogram for every bucket below its bound.
    unsafe {
        let calls = thread.calls.wrapping_add(call.number());
        *calls += 1;
        if (*calls).is_multiple_of(SAMPLED) {
            sample(thread, end);
        }
        let counts = thread.histograms[kind as usize].counts;
        *counts.wrapping_add(bucket_of(ticks)) += 1;
    }
}

/// One in so many calls of a name tells what recording it took.
const SAMPLED: u64 = 256;
/// What takes longer was interrupted.
const SAMPLE_TICKS_MAX: u64 = 1 << 13;

/// Looks at what recording a call has taken since its end.
#[cold]
#[inline(never)]
fn sample(thread: &mut Thread, end: u64) {
    let ticks = clock::ticks().wrapping_sub(end);
    if ticks < SAMPLE_TICKS_MAX {
        let record: *mut ThreadRecord = thread.calls.cast();
        // SAFETY: the counts are at the start of the thread's record in the log.
        unsafe {
            (*record).own_ticks += ticks;
            (*record).own_samples += 1;
        }
    }
}

/// The segment of a call that has succeeded, where segments are wanted; false when it is not a plain one.
#[inline(always)]
fn segment_again(
    thread: &mut Thread,
    made: Made,
    ticks: u64,
    (file, offset, length): (u32, Option<u64>, Option<u64>),
) -> bool {
    if !thread.segments.wanted {
        return true;
    }
    let segment = Segment {
        call: made.call,
        start: made.start,
        ticks,
        file,
        offset,
        length,
        result: made.result,
    };
    thread.segments.append_again(&segment)
}

/// Begins the histogram, or counts the latency as lost.
#[cold]
#[inline(never)]
fn count_first(thread: &mut Thread, kind: Kind, ticks: u64) {
    let mut counts = thread.histograms[kind as usize].counts;
    if counts.is_null() {
        counts = thread.new_histogram(kind);
    }
    if counts.is_null() || ticks >= HISTOGRAM_TICKS {
        thread.lost(lost::HISTOGRAMS);
    } else {
        // SAFETY: within the histogram, which is this thread's.
        unsafe { *counts.wrapping_add(bucket_of(ticks)) += 1 };
    }
}

fn segment(thread: &mut Thread, made: Made, end: u64, on: On) {
    let (record, offset, length) = on;
    // SAFETY: the record is this thread's.
    let file = unsafe { record.as_ref() }.map_or(FILE_NONE, |record| record.file);
    // Some return the error itself.
    let result = if made.result == -1 {
        -errno().max(1)
    } else {
        made.result
    };
    let segment = Segment {
        call: made.call,
        start: made.start,
        ticks: end.wrapping_sub(made.start),
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
    change: impl Fn(&mut FileRecord, &Description),
) {
    // SAFETY: no status.
    unsafe { on_status(made, fd, kind, core::ptr::null(), change) };
}

/// A call on a descriptor that may have filled `status`: what it says needs not be asked of the kernel again.
///
/// # Safety
/// `status` is null or valid where the call has succeeded.
#[inline(always)]
pub unsafe fn on_status(
    made: Made,
    fd: i32,
    kind: Kind,
    status: *const libc::stat,
    change: impl Fn(&mut FileRecord, &Description),
) {
    let end = made.clock.now();
    if !on_descriptor_again(made, end, fd, kind, &change) {
        let times = (made.start, end);
        // SAFETY: promised by the caller.
        unsafe { on_descriptor_first((made.call, kind), times, made.result, fd, status, change) };
    }
}

/// A call that succeeded, on a descriptor that the thread has used: nothing is looked up or begun. False, and
/// nothing changed, for all others.
#[inline(always)]
fn on_descriptor_again(
    made: Made,
    end: u64,
    fd: i32,
    kind: Kind,
    change: &impl Fn(&mut FileRecord, &Description),
) -> bool {
    let Some(mut thread) = enter_idle() else {
        return false;
    };
    let Some(known) = descriptors::known(&thread, fd) else {
        return false;
    };
    if known.record.is_null() || made.result < 0 {
        return false;
    }
    // SAFETY: the record is this thread's, and descriptions are never unmapped.
    let (record, description) = unsafe { (&mut *known.record, &*known.description) };
    if !count_again(&mut thread, record, made, kind, end) {
        return false;
    }
    change(record, description);
    true
}

/// Counts, time, latency and segment of a call on a file that has succeeded, where nothing has to be begun for it;
/// else false, and nothing is changed.
#[inline(always)]
fn count_again(
    thread: &mut Thread,
    record: &mut FileRecord,
    made: Made,
    kind: Kind,
    end: u64,
) -> bool {
    let ticks = end.wrapping_sub(made.start);
    if record.operations >= OPERATIONS_MAX - 1
        || !is_countable(thread, kind, ticks)
        || !segment_again(thread, made, ticks, (record.file, None, None))
    {
        return false;
    }
    match kind {
        Kind::Sync => record.sync_ticks += ticks,
        _ => record.meta_ticks += ticks,
    }
    record.operations += 1;
    count(thread, made.call, kind, ticks, end);
    true
}

/// A call of any outcome on any descriptor; takes everything in registers.
#[cold]
#[inline(never)]
unsafe fn on_descriptor_first(
    (call, kind): (Call, Kind),
    (start, end): (u64, u64),
    result: i64,
    fd: i32,
    status: *const libc::stat,
    change: impl Fn(&mut FileRecord, &Description),
) {
    let _after = Owed;
    let Some(mut thread) = enter() else {
        return;
    };
    // SAFETY: promised by the caller.
    if let Some(status) = unsafe { status.as_ref() }.filter(|_| result >= 0) {
        descriptors::told(&thread, fd, status);
    }
    let Some(place) = descriptors::place(&mut thread, fd) else {
        return;
    };
    // SAFETY: the record is this thread's.
    let record = unsafe { &mut *place.record };
    if result >= 0 {
        change(record, place.description);
    }
    counted(
        &mut thread,
        record,
        Made::new(call, start, result),
        kind,
        end,
        None,
    );
}

/// A call on a path: `change` counts it in the file's record.
///
/// # Safety
/// `path` is null or what was given to the real function.
#[inline(always)]
pub unsafe fn on_path(
    made: Made,
    (directory, path): (i32, *const c_char),
    change: impl Fn(&mut FileRecord),
) {
    let end = made.clock.now();
    // SAFETY: promised by the caller.
    unsafe {
        if !on_path_again(made, end, (directory, path), &change) {
            let (
                Made {
                    call,
                    start,
                    result,
                    ..
                },
                at,
            ) = (made, (directory, path));
            on_path_first(call, (start, end), result, at, change);
        }
    }
}

/// A call that succeeded, on a path that the thread has used lately: nothing is looked up or begun. False, and
/// nothing changed, for all others.
#[inline(always)]
unsafe fn on_path_again(
    made: Made,
    end: u64,
    (directory, path): (i32, *const c_char),
    change: &impl Fn(&mut FileRecord),
) -> bool {
    let Some(mut thread) = enter_idle() else {
        return false;
    };
    if made.result < 0 {
        return false;
    }
    // SAFETY: promised by the caller, and the kernel could read it.
    let Some(record) = (unsafe { paths::known(&thread, directory, path) }) else {
        return false;
    };
    // SAFETY: the record is this thread's.
    let record = unsafe { &mut *record };
    if !count_again(&mut thread, record, made, Kind::Meta, end) {
        return false;
    }
    change(record);
    true
}

/// A call of any outcome on any path; takes everything in registers.
#[cold]
#[inline(never)]
unsafe fn on_path_first(
    call: Call,
    (start, end): (u64, u64),
    result: i64,
    (directory, path): (i32, *const c_char),
    change: impl Fn(&mut FileRecord),
) {
    let _after = Owed;
    let Some(mut thread) = enter() else {
        return;
    };
    let made = Made::new(call, start, result);
    let record = if is_named(made, path) {
        // SAFETY: promised by the caller, and it can be read.
        unsafe { paths::record(&mut thread, directory, path) }
    } else {
        thread.others
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
    used(thread, record);
    finish(thread, made, kind, end, (record, None, length));
}

/// A call without a file.
pub fn on_nothing(made: Made, kind: Kind) {
    let end = made.clock.now();
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
    finish(
        &mut thread,
        made,
        kind,
        end,
        (core::ptr::null_mut(), None, None),
    );
}

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
