//! Segments: one record a call, in chunks of the thread's own.

use core::mem::offset_of;
use core::sync::atomic::{Ordering::Release, compiler_fence};

use leadline_record::trace::Call;
use leadline_record::trace::layout::{
    CALL_EXTENSION, CHUNK_SEGMENTS, ChunkHead, PAGE_BYTES, SEGMENT_EXTENDED, SEGMENT_NO_LENGTH,
    SEGMENT_NO_OFFSET, SEGMENT_WRITTEN, SEGMENTS_AT, SegmentRecord,
};

use crate::chunks::{self, Wanted};
use crate::process::{Process, lost};
use crate::thread::Thread;

const PAGES_MAX: u16 = 8;

/// Where the thread's next segment goes.
#[repr(C)]
pub struct SegmentCursor {
    next: *mut SegmentRecord,
    end: *mut SegmentRecord,
    last_start: u64,
    pages: u16,
    pub wanted: bool,
}

/// One call, as a segment tells it.
#[derive(Clone, Copy)]
pub struct Segment {
    pub call: Call,
    pub start: u64,
    pub ticks: u64,
    pub file: u32,
    pub offset: Option<u64>,
    pub length: Option<u64>,
    pub result: i64,
}

impl SegmentCursor {
    /// Another thread goes on with this state: its segments are a chunk of their own.
    pub fn leave(&mut self) {
        self.next = core::ptr::null_mut();
        self.end = core::ptr::null_mut();
        self.pages = 0;
    }

    fn renew(&mut self, process: &Process, thread: u32, start: u64) -> bool {
        let pages = (self.pages * 4).clamp(1, PAGES_MAX);
        let wanted = Wanted {
            kind: CHUNK_SEGMENTS,
            pages,
            thread,
            extra: start,
        };
        let chunk = chunks::take(process, true, wanted);
        if chunk.is_null() {
            return false;
        }
        let bytes = usize::from(pages) * PAGE_BYTES;
        let payload_bytes = (bytes - size_of::<ChunkHead>()) as u32;
        // SAFETY: the chunk's pages are resident and ours. Each record tells itself whether it was written.
        unsafe { (&raw mut (*chunk).used).write_volatile(payload_bytes) };
        self.next = chunk.wrapping_byte_add(SEGMENTS_AT).cast();
        // Where only one record has room: an extension needs another.
        self.end = chunk
            .wrapping_byte_add(bytes)
            .cast::<SegmentRecord>()
            .wrapping_sub(1);
        self.pages = pages;
        self.last_start = start;
        true
    }

    /// A segment that is not the first of its chunk and fits into one record; else false.
    #[inline(always)]
    pub fn append_again(&mut self, segment: &Segment) -> bool {
        if self.next >= self.end || !self.is_narrow(segment) {
            return false;
        }
        let start = segment.start.wrapping_sub(self.last_start) as u32;
        self.last_start = segment.start;
        self.push(segment, start, flags(segment));
        true
    }

    /// A call that began before the one that was recorded last (a signal handler's) wraps, and is not.
    #[inline(always)]
    fn is_narrow(&self, segment: &Segment) -> bool {
        let delta = segment.start.wrapping_sub(self.last_start);
        let result = segment.result.wrapping_add(1 << 31) as u64;
        (delta | segment.ticks | segment.length.unwrap_or(0) | result) >> 32 == 0
    }

    #[inline(always)]
    fn push(&mut self, segment: &Segment, start: u32, flags: u16) {
        let place = self.next;
        self.next = place.wrapping_add(1);
        // SAFETY: callers have made room; the chunk's pages are resident and this thread's.
        unsafe {
            (*place).start = start;
            (*place).duration = segment.ticks as u32;
            (*place).file = segment.file;
            (*place).offset = segment.offset.unwrap_or(0);
            (*place).length = segment.length.unwrap_or(0) as u32;
            (*place).result = segment.result as u32;
            finish(place, segment.call as u16, flags);
        }
    }

    /// What does not fit into the record that follows: the start, the upper halves of length, duration and result.
    fn push_extension(&mut self, segment: &Segment) {
        let place = self.next;
        self.next = place.wrapping_add(1);
        // SAFETY: as in `push`.
        unsafe {
            (*place).start = (segment.length.unwrap_or(0) >> 32) as u32;
            (*place).duration = (segment.ticks >> 32) as u32;
            (*place).file = segment.file;
            (*place).offset = segment.start;
            (*place).result = (segment.result >> 32) as u32;
            finish(place, CALL_EXTENSION, SEGMENT_WRITTEN);
        }
    }
}

/// A record is there once its flags are: last, and in one go with the call.
#[inline(always)]
unsafe fn finish(place: *mut SegmentRecord, call: u16, flags: u16) {
    const { assert!(offset_of!(SegmentRecord, call) + 2 == offset_of!(SegmentRecord, flags)) };
    let both = u32::from(call) | u32::from(flags) << 16;
    compiler_fence(Release);
    // SAFETY: promised by the caller; both fields are four aligned bytes.
    unsafe { (&raw mut (*place).call).cast::<u32>().write_volatile(both) };
}

/// Writes a segment down, or counts it as lost.
pub fn append(thread: &mut Thread, segment: &Segment) {
    if thread.segments.append_again(segment) {
        return;
    }
    let cursor = &thread.segments;
    if cursor.next >= cursor.end && !renew(thread, segment.start) {
        thread.lost(lost::SEGMENTS);
        return;
    }
    let cursor = &mut thread.segments;
    let (mut start, mut flags) = (0, flags(segment));
    if cursor.is_narrow(segment) {
        start = segment.start.wrapping_sub(cursor.last_start) as u32;
    } else {
        cursor.push_extension(segment);
        flags |= SEGMENT_EXTENDED;
    }
    cursor.last_start = segment.start;
    cursor.push(segment, start, flags);
}

#[inline(always)]
fn flags(segment: &Segment) -> u16 {
    SEGMENT_WRITTEN
        | flag(segment.offset.is_none(), SEGMENT_NO_OFFSET)
        | flag(segment.length.is_none(), SEGMENT_NO_LENGTH)
}

#[inline(always)]
fn flag(set: bool, bit: u16) -> u16 {
    if set { bit } else { 0 }
}

#[cold]
fn renew(thread: &mut Thread, start: u64) -> bool {
    let (process, id) = (thread.process(), thread.id);
    thread.segments.renew(process, id, start)
}
