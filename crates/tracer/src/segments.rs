//! Segments: one record a call, in chunks of the thread's own.

use core::sync::atomic::compiler_fence;

use leadline_record::trace::Call;
use leadline_record::trace::layout::{
    CALL_EXTENSION, CHUNK_SEGMENTS, ChunkHead, PAGE_BYTES, SEGMENT_EXTENDED, SEGMENT_NO_LENGTH,
    SEGMENT_NO_OFFSET, SegmentRecord,
};

use crate::chunks::{self, Wanted};
use crate::process::{Process, lost};
use crate::thread::Thread;

const PAGES_MAX: u16 = 64;
const RECORD_BYTES: u32 = size_of::<SegmentRecord>() as u32;

/// Where the thread's next segment goes.
#[repr(C)]
pub struct SegmentCursor {
    pub wanted: bool,
    pages: u16,
    used: u32,
    room: u32,
    chunk: *mut ChunkHead,
    last_start: u64,
}

/// One call, as a segment tells it.
#[derive(Clone, Copy)]
pub struct Segment {
    pub call: Call,
    pub start: u64,
    pub end: u64,
    pub file: u32,
    pub offset: Option<u64>,
    pub length: Option<u64>,
    pub result: i64,
}

impl SegmentCursor {
    /// Another thread goes on with this state: its segments are a chunk of their own.
    pub fn leave(&mut self) {
        self.used = 0;
        self.room = 0;
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
        self.chunk = chunk;
        self.pages = pages;
        self.used = 0;
        self.room = u32::from(pages) * PAGE_BYTES as u32 - size_of::<ChunkHead>() as u32;
        self.last_start = start;
        true
    }

    #[inline(always)]
    fn push(&mut self, record: SegmentRecord) {
        let place = self
            .chunk
            .wrapping_add(1)
            .wrapping_byte_add(self.used as usize);
        // SAFETY: callers have made room; the chunk's pages are resident and this thread's.
        unsafe { place.cast::<SegmentRecord>().write(record) };
        self.used += RECORD_BYTES;
        compiler_fence(core::sync::atomic::Ordering::Release);
        // SAFETY: as above.
        unsafe { (&raw mut (*self.chunk).used).write_volatile(self.used) };
    }
}

/// Writes a segment down, or counts it as lost.
#[inline(always)]
pub fn append(thread: &mut Thread, segment: &Segment) {
    let cursor = &thread.segments;
    if cursor.used + 2 * RECORD_BYTES > cursor.room && !renew(thread, segment.start) {
        thread.lost(lost::SEGMENTS);
        return;
    }
    let cursor = &mut thread.segments;
    // A call that began before the one that was recorded last (a signal handler's) wraps, and gets an extension.
    let delta = segment.start.wrapping_sub(cursor.last_start);
    let duration = segment.end.wrapping_sub(segment.start);
    let length = segment.length.unwrap_or(0);
    let wide = (delta | duration | length) >> 32 != 0
        || i64::from(segment.result as i32) != segment.result;
    if wide {
        extend(cursor, segment, duration, length);
    }
    cursor.last_start = segment.start;
    cursor.push(SegmentRecord {
        start: if wide { 0 } else { delta as u32 },
        duration: duration as u32,
        file: segment.file,
        call: segment.call as u16,
        flags: flag(segment.offset.is_none(), SEGMENT_NO_OFFSET)
            | flag(segment.length.is_none(), SEGMENT_NO_LENGTH)
            | flag(wide, SEGMENT_EXTENDED),
        offset: segment.offset.unwrap_or(0),
        length: length as u32,
        result: segment.result as u32,
    });
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

#[cold]
fn extend(cursor: &mut SegmentCursor, segment: &Segment, duration: u64, length: u64) {
    cursor.push(SegmentRecord {
        start: (length >> 32) as u32,
        duration: (duration >> 32) as u32,
        file: segment.file,
        call: CALL_EXTENSION,
        flags: 0,
        offset: segment.start,
        length: 0,
        result: (segment.result >> 32) as u32,
    });
}
