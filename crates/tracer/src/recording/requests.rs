//! What asynchronous requests change: they are counted when they have come to their end, with their own time.

use leadline_record::trace::{Call, Kind};

use super::transfers::{is_misaligned, kind_of, moved_bytes};
use super::{Direction, Made, segment, used, written};
use crate::clock;
use crate::descriptors::{self, RecordedFile};
use crate::thread::{Thread, enter};

/// What a request is to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Read,
    Write,
    Sync,
    DataSync,
    /// Nothing with a file: to wait for a descriptor, or not even that.
    Nothing,
}

/// An asynchronous request, as it was when it was submitted.
#[derive(Clone, Copy)]
pub struct Request {
    pub call: Call,
    pub asked: Asked,
    /// Just before its submission.
    pub start: u64,
    pub descriptor: i32,
    pub offset: Option<u64>,
    /// None: of several parts.
    pub bytes: Option<u64>,
    pub memory: usize,
}

/// A call that submits requests, or waits for them: its time is no time of I/O, which the requests have.
pub fn only_counted(made: Made) {
    let end = made.clock.now();
    let Some(mut thread) = enter() else {
        return;
    };
    // SAFETY: `calls` has room for every number, and is this thread's.
    unsafe { *thread.calls.wrapping_add(made.call.number()) += 1 };
    if thread.segments.wanted {
        let on = (core::ptr::null_mut(), None, None);
        segment(&mut thread, made, end, on);
    }
}

/// The program has collected a request's result: bytes, or an error below 0.
pub fn arrived(request: &Request, result: i64) {
    if request.asked == Asked::Nothing {
        return;
    }
    let end = clock::ticks();
    let Some(mut thread) = enter() else {
        return;
    };
    let thread = &mut *thread;
    let Some(place) = descriptors::place(thread, request.descriptor) else {
        return;
    };
    if result < 0 {
        // SAFETY: the record is this thread's.
        unsafe { (*place.record).failed += 1 };
    }
    let kind = match request.asked {
        Asked::Read => moved(thread, &place, Direction::Read, request, (end, result)),
        Asked::Write => moved(thread, &place, Direction::Write, request, (end, result)),
        _ => synced(thread, &place, request, (end, result)),
    };
    let made = Made::new(request.call, request.start, result);
    let on = (place.record, request.offset, request.bytes);
    // It waited beside the program, which no sleep of ours repeats: it is in no class.
    written(thread, made, kind, end, on);
}

fn moved(
    thread: &mut Thread,
    place: &RecordedFile,
    direction: Direction,
    request: &Request,
    (end, result): (u64, i64),
) -> Kind {
    // SAFETY: the record and its sides are this thread's.
    let side = unsafe { descriptors::side_of(place.record, direction as usize).as_ref() };
    // Requests that are under way at once overlap: the file's time has what they share once.
    let start = request.start.max(side.map_or(0, |side| side.end_last));
    if result < 0 {
        // SAFETY: as above.
        let record = unsafe { &mut *place.record };
        record.meta_ticks += end.saturating_sub(start);
        used(thread, record);
        return kind_of(direction);
    }
    let offset = request.offset.unwrap_or(0);
    // SAFETY: as above.
    unsafe { (*place.record).memory_not_aligned += u32::from(is_misaligned(request.memory)) };
    let moved = (direction, offset, result as u64);
    let side = moved_bytes(thread, place.record, moved, start, end);
    // SAFETY: as above.
    unsafe {
        (*side).start_first = (*side).start_first.min(request.start);
        (*side).ticks_max = (*side).ticks_max.max(end.wrapping_sub(request.start));
    }
    kind_of(direction)
}

fn synced(
    thread: &mut Thread,
    place: &RecordedFile,
    request: &Request,
    (end, result): (u64, i64),
) -> Kind {
    // SAFETY: the record is this thread's.
    let record = unsafe { &mut *place.record };
    if result >= 0 {
        let count = if request.asked == Asked::DataSync {
            &mut record.fdsyncs
        } else {
            &mut record.fsyncs
        };
        *count += 1;
    }
    record.sync_ticks += end.wrapping_sub(request.start);
    used(thread, record);
    Kind::Sync
}
