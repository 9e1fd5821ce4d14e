//! Bytes that were moved: between memory and a file, a stream, or two files.

use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::compiler_fence;

use leadline_record::trace::layout::{
    FileRecord, MODULE_POSIX, MODULE_STDIO, SideRecord, TAG_READ, TAG_WRITE, size_bin,
};
use leadline_record::trace::{Call, Kind};

use super::{Made, finish, segment, used};
use crate::clock::ticks;
use crate::descriptors::{self, ASK_POSITION, Description};
use crate::process::lost;
use crate::sys;
use crate::thread::{Thread, enter};

/// Darshan's unit of alignment of memory.
const MEMORY_ALIGNMENT: usize = 8;
/// Where the transfer before a side's first one ended: no file has such an offset, so none follows it.
const NO_TRANSFER_YET: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

/// One transfer between memory and a descriptor.
#[derive(Clone, Copy)]
pub struct Transfer {
    pub direction: Direction,
    /// None: at the position of the open file.
    pub offset: Option<u64>,
    pub asked: u64,
    pub memory: usize,
}

/// A read or write of a descriptor.
#[inline(always)]
pub fn transfer(made: Made, fd: i32, transfer: Transfer) {
    let end = ticks();
    let Some(mut thread) = enter() else {
        return;
    };
    let Some(place) = descriptors::place(&mut thread, fd, MODULE_POSIX) else {
        return;
    };
    let kind = kind_of(transfer.direction);
    // SAFETY: the record is this thread's.
    let file = unsafe { (*place.record).file };
    if made.result < 0 {
        failed(
            &mut thread,
            place.record,
            (made.call, kind),
            (made.start, end),
            transfer.offset,
            transfer.asked,
        );
        return;
    }
    let bytes = made.result as u64;
    let offset = match transfer.offset {
        Some(offset) => offset,
        None => moved(place.description, fd, bytes),
    };
    let misaligned = transfer.memory & (MEMORY_ALIGNMENT - 1) != 0;
    // SAFETY: as above.
    unsafe { (*place.record).memory_not_aligned += u32::from(misaligned) };
    moved_bytes(
        &mut thread,
        place.record,
        (transfer.direction, offset, bytes),
        made.start,
        end,
    );
    finish(
        &mut thread,
        made,
        kind,
        end,
        (file, Some(offset), Some(transfer.asked)),
    );
}

fn kind_of(direction: Direction) -> Kind {
    match direction {
        Direction::Read => Kind::Read,
        Direction::Write => Kind::Write,
    }
}

/// Takes everything in registers: what is given by address would be written to the stack for every call.
#[cold]
#[inline(never)]
fn failed(
    thread: &mut Thread,
    record: *mut FileRecord,
    (call, kind): (Call, Kind),
    (start, end): (u64, u64),
    offset: Option<u64>,
    asked: u64,
) {
    // SAFETY: the record is this thread's.
    let record_of = unsafe { &mut *record };
    record_of.failed += 1;
    let side = record_of.sides[usize::from(kind == Kind::Write)];
    let side: *mut SideRecord = core::ptr::with_exposed_provenance_mut(side as usize);
    if side.is_null() {
        record_of.meta_ticks += end.wrapping_sub(start);
    } else {
        // SAFETY: sides are never unmapped, and are this thread's.
        unsafe { (*side).ticks += end.wrapping_sub(start) };
    }
    let file = record_of.file;
    used(thread, record);
    let result = -1;
    let made = Made {
        call,
        start,
        result,
    };
    finish(thread, made, kind, end, (file, offset, Some(asked)));
}

/// Where a plain read or write began.
#[inline(always)]
fn moved(description: &Description, fd: i32, bytes: u64) -> u64 {
    if description.flags.load(Relaxed) & ASK_POSITION != 0 {
        return asked(description, fd, bytes);
    }
    // One thread at a time moves a position, or the program itself cannot know where it reads.
    let offset = description.position.load(Relaxed);
    description.position.store(offset + bytes, Relaxed);
    offset
}

#[cold]
fn asked(description: &Description, fd: i32, bytes: u64) -> u64 {
    let position = sys::position(fd).unwrap_or(0);
    description.position.store(position, Relaxed);
    position.saturating_sub(bytes)
}

/// Adds a transfer to the record of its file.
#[inline(always)]
fn moved_bytes(
    thread: &mut Thread,
    record: *mut FileRecord,
    (direction, offset, bytes): (Direction, u64, u64),
    start: u64,
    end: u64,
) -> *mut SideRecord {
    // SAFETY: the record is this thread's.
    let file = unsafe { &mut *record };
    let side: *mut SideRecord =
        core::ptr::with_exposed_provenance_mut(file.sides[direction as usize] as usize);
    let side = if side.is_null() {
        begin_side(thread, record, direction, start)
    } else {
        side
    };
    let towards = direction as u32 + 1;
    file.switches += u32::from(file.last_direction == 3 - towards);
    file.last_direction = towards;
    // Block sizes are powers of two; an unknown one (0) aligns everything.
    let within = u64::from(file.alignment.wrapping_sub(1)) & offset;
    file.file_not_aligned += u32::from(file.alignment != 0 && within != 0);
    // SAFETY: sides are never unmapped, and are this thread's.
    add(unsafe { &mut *side }, direction, offset, bytes, start, end);
    used(thread, record);
    side
}

#[inline(always)]
fn add(side: &mut SideRecord, direction: Direction, offset: u64, bytes: u64, start: u64, end: u64) {
    let after = offset.wrapping_add(bytes);
    let duration = end.wrapping_sub(start);
    side.consecutive += u32::from(offset == side.last_end);
    // Two additions, not one of a vector that is built first.
    compiler_fence(Release);
    side.sequential += u32::from(offset >= side.last_end);
    if direction == Direction::Write && offset < side.end_max {
        side.rewritten += after.min(side.end_max) - offset;
    }
    // SAFETY: a bin is below SIZE_BINS by construction of its table, which a test goes through.
    unsafe { *side.sizes.get_unchecked_mut(size_bin(bytes)) += 1 };
    side.last_end = after;
    side.end_max = side.end_max.max(if bytes > 0 { after } else { 0 });
    side.bytes += bytes;
    side.ticks += duration;
    side.ticks_max = side.ticks_max.max(duration);
    side.end_last = end;
    side.count += 1;
}

#[cold]
fn begin_side(
    thread: &mut Thread,
    record: *mut FileRecord,
    direction: Direction,
    start: u64,
) -> *mut SideRecord {
    let tag = [TAG_READ, TAG_WRITE][direction as usize];
    // SAFETY: both records are this thread's; the one for others always has its sides.
    unsafe {
        let mut side = core::ptr::null_mut();
        if record != thread.others {
            side = thread.new_side((*record).file, tag);
            if side.is_null() {
                thread.lost(lost::FILES);
            }
        }
        if side.is_null() {
            side = thread.others_sides[direction as usize];
        }
        if (*side).count == 0 {
            (*side).start_first = start;
            (*side).last_end = NO_TRANSFER_YET;
        }
        (*record).sides[direction as usize] = side.expose_provenance() as u64;
        side
    }
}

/// A transfer between memory and a stream, at its position.
#[inline(always)]
pub fn stream_transfer(made: Made, fd: i32, direction: Direction, asked: u64) {
    let end = ticks();
    let Some(mut thread) = enter() else {
        return;
    };
    let Some(place) = descriptors::place(&mut thread, fd, MODULE_STDIO) else {
        return;
    };
    let kind = kind_of(direction);
    // SAFETY: the record is this thread's.
    let file = unsafe { (*place.record).file };
    if made.result < 0 {
        failed(
            &mut thread,
            place.record,
            (made.call, kind),
            (made.start, end),
            None,
            asked,
        );
        return;
    }
    let bytes = made.result as u64;
    let position = &place.description.stream_position;
    let offset = position.load(Relaxed);
    position.store(offset + bytes, Relaxed);
    moved_bytes(
        &mut thread,
        place.record,
        (direction, offset, bytes),
        made.start,
        end,
    );
    finish(
        &mut thread,
        made,
        kind,
        end,
        (file, Some(offset), Some(asked)),
    );
}

/// Bytes that the kernel moved from one descriptor to another: read there, written here.
pub fn copied(made: Made, from: (i32, Option<u64>), to: (i32, Option<u64>), asked: u64) {
    let end = ticks();
    let Some(mut thread) = enter() else {
        return;
    };
    let source = descriptors::place(&mut thread, from.0, MODULE_POSIX);
    let target = descriptors::place(&mut thread, to.0, MODULE_POSIX);
    let (kind, on) = match (source, target) {
        (_, Some(target)) => (Kind::Write, target),
        (Some(source), None) => (Kind::Read, source),
        (None, None) => return,
    };
    // SAFETY: the record is this thread's.
    let file = unsafe { (*on.record).file };
    if made.result < 0 {
        failed(
            &mut thread,
            on.record,
            (made.call, kind),
            (made.start, end),
            None,
            asked,
        );
        return;
    }
    let bytes = made.result as u64;
    let mut at = None;
    let ends = [
        (source, from, Direction::Read),
        (target, to, Direction::Write),
    ];
    for (place, (fd, offset), direction) in ends {
        let Some(place) = place else {
            continue;
        };
        let offset = offset.unwrap_or_else(|| moved(place.description, fd, bytes));
        at = Some(offset);
        // The time is the one direction's only: else it would be counted twice.
        let start = if kind_of(direction) == kind {
            made.start
        } else {
            end
        };
        let side = moved_bytes(
            &mut thread,
            place.record,
            (direction, offset, bytes),
            start,
            end,
        );
        // SAFETY: sides are never unmapped, and are this thread's.
        unsafe { (*side).copied += bytes };
    }
    finish(&mut thread, made, kind, end, (file, at, Some(asked)));
}

/// A transfer that was asked for earlier and has come to its end by now: its time passed beside the program.
pub fn arrived(made: Made, fd: i32, transfer: Transfer) {
    let end = ticks();
    let Some(mut thread) = enter() else {
        return;
    };
    let Some(place) = descriptors::place(&mut thread, fd, MODULE_POSIX) else {
        return;
    };
    if made.result < 0 {
        // SAFETY: the record is this thread's.
        unsafe { (*place.record).failed += 1 };
        return;
    }
    let bytes = made.result as u64;
    let offset = transfer.offset.unwrap_or(0);
    moved_bytes(
        &mut thread,
        place.record,
        (transfer.direction, offset, bytes),
        end,
        end,
    );
    if thread.segments.wanted {
        // SAFETY: as above.
        let file = unsafe { (*place.record).file };
        let made = Made { start: end, ..made };
        segment(
            &mut thread,
            made,
            end,
            (file, Some(offset), Some(transfer.asked)),
        );
    }
}
