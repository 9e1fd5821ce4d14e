//! Bytes that were moved: between memory and a file, a stream, or two files.

use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::compiler_fence;

use leadline_record::trace::layout::{
    FileRecord, SIZE_MAX, SideRecord, TAG_READ, TAG_WRITE, size_bin,
};
use leadline_record::trace::{Call, Kind};

use super::{Made, count, finish, is_countable, segment_again, used};
use crate::delay::Owed;
use crate::descriptors::{self, ASK_POSITION, Description};
use crate::paths::{self, OPERATIONS_MAX};
use crate::process::lost;
use crate::sys;
use crate::thread::{Thread, enter, enter_idle};

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
    let end = made.clock.now();
    if !transfer_again(made, end, fd, transfer) {
        transfer_first(
            fd,
            (made.call, transfer.direction),
            (made.start, end),
            made.result,
            transfer.offset,
            transfer.asked,
            transfer.memory,
        );
    }
}

/// A transfer of a side that has had one: nothing is looked up or begun. False, and nothing changed, for all others.
#[inline(always)]
fn transfer_again(made: Made, end: u64, fd: i32, transfer: Transfer) -> bool {
    let Some(mut thread) = enter_idle() else {
        return false;
    };
    let Some(known) = descriptors::known(&thread, fd) else {
        return false;
    };
    let direction = transfer.direction;
    let (side, description) = (known.sides[direction as usize], known.description);
    // What fails is more than any bytes, so that one comparison finds both.
    if side.is_null() || made.result as u64 >= SIZE_MAX {
        return false;
    }
    // SAFETY: a record and its sides are the thread's, and descriptions are never unmapped.
    let (record, side) = unsafe { (&mut *known.record, &mut *side) };
    let misaligned = known.misaligned;
    let offset = match transfer.offset {
        Some(offset) => offset,
        None if known.asks_position => return false,
        // SAFETY: as above.
        None => unsafe { &*description }.position.load(Relaxed),
    };
    let (bytes, ticks) = (made.result as u64, end.wrapping_sub(made.start));
    if side.count >= OPERATIONS_MAX || !is_countable(&thread, kind_of(direction), ticks) {
        return false;
    }
    let on = (record.file, Some(offset), Some(transfer.asked));
    if !segment_again(&mut thread, made, ticks, on) {
        return false;
    }
    if transfer.offset.is_none() {
        // One thread at a time moves a position, or the program itself cannot know where it reads.
        // SAFETY: as above.
        unsafe { &*description }
            .position
            .store(offset + bytes, Relaxed);
    }
    record.memory_not_aligned += u32::from(is_misaligned(transfer.memory));
    let misaligned = misaligned & offset != 0;
    add(
        record,
        side,
        direction,
        (offset, bytes, misaligned),
        (ticks, end),
    );
    thread.moved[direction as usize] += bytes;
    count(&mut thread, made.call, kind_of(direction), ticks, end);
    true
}

pub(super) fn is_misaligned(memory: usize) -> bool {
    memory & (MEMORY_ALIGNMENT - 1) != 0
}

/// A transfer of any kind.
///
/// Takes everything in registers: what is given by address would be written to the stack for every call.
#[cold]
#[inline(never)]
fn transfer_first(
    fd: i32,
    (call, direction): (Call, Direction),
    (start, end): (u64, u64),
    result: i64,
    offset: Option<u64>,
    asked: u64,
    memory: usize,
) {
    let _after = Owed;
    let Some(mut thread) = enter() else {
        return;
    };
    let thread = &mut *thread;
    thread.moved[direction as usize] += result.max(0) as u64;
    let Some(place) = descriptors::place(thread, fd) else {
        return;
    };
    let made = Made::new(call, start, result);
    if result < 0 {
        return failed(thread, place.record, made, (direction, end), offset, asked);
    }
    let bytes = result as u64;
    let offset = offset.unwrap_or_else(|| moved(place.description, fd, bytes));
    // SAFETY: the record is this thread's.
    unsafe { (*place.record).memory_not_aligned += u32::from(is_misaligned(memory)) };
    moved_bytes(thread, place.record, (direction, offset, bytes), start, end);
    descriptors::keep_side(thread, fd, place.record, direction as usize);
    let on = (place.record, Some(offset), Some(asked));
    finish(thread, made, kind_of(direction), end, on);
}

/// Bytes that the thread has moved that way, of files or anything else.
pub fn moved_until_now(direction: Direction) -> u64 {
    enter_idle().map_or(0, |thread| thread.moved[direction as usize])
}

pub(super) fn kind_of(direction: Direction) -> Kind {
    match direction {
        Direction::Read => Kind::Read,
        Direction::Write => Kind::Write,
    }
}

#[cold]
#[inline(never)]
fn failed(
    thread: &mut Thread,
    record: *mut FileRecord,
    made: Made,
    (direction, end): (Direction, u64),
    offset: Option<u64>,
    asked: u64,
) {
    // SAFETY: the record is this thread's.
    let record_of = unsafe { &mut *record };
    record_of.failed += 1;
    // SAFETY: as above.
    let side = unsafe { descriptors::side_of(record, direction as usize) };
    let ticks = end.wrapping_sub(made.start);
    if side.is_null() {
        record_of.meta_ticks += ticks;
    } else {
        // SAFETY: sides are never unmapped, and are this thread's.
        unsafe { (*side).ticks += ticks };
    }
    used(thread, record);
    finish(
        thread,
        made,
        kind_of(direction),
        end,
        (record, offset, Some(asked)),
    );
}

/// Where a plain read or write began.
fn moved(description: &Description, fd: i32, bytes: u64) -> u64 {
    if description.flags.load(Relaxed) & ASK_POSITION != 0 {
        return asked(description, fd, bytes);
    }
    let offset = description.position.load(Relaxed);
    description.position.store(offset + bytes, Relaxed);
    offset
}

#[cold]
fn asked(description: &Description, fd: i32, bytes: u64) -> u64 {
    let moved_on = || description.position.load(Relaxed) + bytes;
    let position = sys::position(fd).unwrap_or_else(moved_on);
    description.position.store(position, Relaxed);
    position.saturating_sub(bytes)
}

/// Adds a transfer to the record of its file, whose side may have to be begun.
#[inline(never)]
pub(super) fn moved_bytes(
    thread: &mut Thread,
    record: *mut FileRecord,
    (direction, offset, bytes): (Direction, u64, u64),
    start: u64,
    end: u64,
) -> *mut SideRecord {
    // SAFETY: the record is this thread's.
    let mut side = unsafe { descriptors::side_of(record, direction as usize) };
    if side.is_null() {
        side = begin_side(thread, record, direction, start);
    }
    // SAFETY: sides are never unmapped, and are this thread's.
    unsafe {
        // Block sizes are powers of two; an unknown one (0) aligns everything.
        let misaligned = offset & u64::from((*record).alignment.saturating_sub(1)) != 0;
        add(
            &mut *record,
            &mut *side,
            direction,
            (offset, bytes, misaligned),
            (end.wrapping_sub(start), end),
        );
    }
    used_side(thread, record, side);
    side
}

/// Branches where the next call does what the last did, and none where it may not.
#[inline(always)]
fn add(
    record: &mut FileRecord,
    side: &mut SideRecord,
    direction: Direction,
    (offset, bytes, misaligned): (u64, u64, bool),
    (ticks, end): (u64, u64),
) {
    let towards = direction as u32 + 1;
    if record.last_direction != towards {
        record.switches += u32::from(record.last_direction != 0);
        record.last_direction = towards;
    }
    record.file_not_aligned += u32::from(misaligned);
    let after = offset.wrapping_add(bytes);
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
    if after > side.end_max {
        side.end_max = if bytes > 0 { after } else { side.end_max };
    }
    side.bytes += bytes;
    side.ticks += ticks;
    if ticks > side.ticks_max {
        side.ticks_max = ticks;
    }
    side.empty += u64::from(bytes == 0);
    side.end_last = end;
    side.count += 1;
}

/// A side's count tells when a record is used up: it has no other count that grows faster.
#[inline(always)]
fn used_side(thread: &mut Thread, record: *mut FileRecord, side: *const SideRecord) {
    // SAFETY: both are the thread's.
    if unsafe { (*side).count } >= OPERATIONS_MAX {
        // SAFETY: as above.
        unsafe { (*record).operations = OPERATIONS_MAX };
        paths::forget_found(thread);
    }
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

/// Bytes that the kernel moved from one descriptor to another: read there, written here.
pub fn copied(made: Made, from: (i32, Option<u64>), to: (i32, Option<u64>), asked: u64) {
    let end = made.clock.now();
    let _after = Owed;
    let Some(mut thread) = enter() else {
        return;
    };
    // The kernel counts splice's bytes for neither side.
    if made.call != Call::splice {
        for moved in &mut thread.moved {
            *moved += made.result.max(0) as u64;
        }
    }
    let source = descriptors::place(&mut thread, from.0);
    let target = descriptors::place(&mut thread, to.0);
    let (timed, on) = match (source, target) {
        (_, Some(target)) => (Direction::Write, target),
        (Some(source), None) => (Direction::Read, source),
        (None, None) => return,
    };
    if made.result < 0 {
        return failed(&mut thread, on.record, made, (timed, end), None, asked);
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
        let start = if direction == timed { made.start } else { end };
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
    finish(
        &mut thread,
        made,
        kind_of(timed),
        end,
        (on.record, at, Some(asked)),
    );
}
