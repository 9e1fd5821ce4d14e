//! Segments: one record a call, in chunks of one thread each.

use std::mem::offset_of;

use super::calls::CALLS;
use super::layout::{
    CALL_EXTENSION, CHUNK_SEGMENTS, ChunkHead, FILE_NONE, SEGMENT_NO_LENGTH, SEGMENT_NO_OFFSET,
    SEGMENT_WRITTEN, SEGMENTS_AT, SegmentRecord,
};
use super::reader::TraceError;
use super::reader::{Process, Source, half, long, walk, word};

/// One call, in the log's own numbers and ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub thread: u32,
    pub file: Option<u32>,
    pub call: u16,
    pub offset: Option<u64>,
    pub length: Option<u64>,
    pub result: i64,
    pub start_ticks: u64,
    pub duration_ticks: u64,
}

/// Calls `each` for every segment, thread by thread in pieces; true when the file is cut.
pub fn read_segments<S: Source + ?Sized>(
    source: &S,
    process: &Process,
    mut each: impl FnMut(Segment),
) -> Result<bool, TraceError> {
    let mut holes = false;
    walk(source, process.segments, &mut holes, |chunk| {
        if chunk.kind != CHUNK_SEGMENTS {
            return Err(chunk.damaged("a chunk among segments that holds none"));
        }
        let skipped = if process.version < 2 {
            0
        } else {
            SEGMENTS_AT - size_of::<ChunkHead>()
        };
        let payload = chunk.payload.get(skipped..).unwrap_or(&[]);
        let (records, rest) = payload.as_chunks::<{ size_of::<SegmentRecord>() }>();
        let mut clock = chunk.extra;
        let mut extension = None;
        for record in records {
            let flags = half(record, offset_of!(SegmentRecord, flags));
            if process.version >= 2 && flags & SEGMENT_WRITTEN == 0 {
                break;
            }
            let call = half(record, offset_of!(SegmentRecord, call));
            if call == CALL_EXTENSION {
                clock = long(record, offset_of!(SegmentRecord, offset));
                extension = Some(*record);
                continue;
            }
            if usize::from(call) >= CALLS.len() {
                return Err(chunk.damaged("a segment of a call that there is none of"));
            }
            each(decode(
                record,
                chunk.thread,
                &mut clock,
                extension.take().as_ref(),
            ));
        }
        Ok(!rest.is_empty())
    })
}

fn decode(
    record: &[u8; size_of::<SegmentRecord>()],
    thread: u32,
    clock: &mut u64,
    extension: Option<&[u8; size_of::<SegmentRecord>()]>,
) -> Segment {
    let wide = |offset: usize, upper: usize| {
        let high = extension.map_or(0, |extension| word(extension, upper));
        u64::from(high) << 32 | u64::from(word(record, offset))
    };
    let flags = half(record, offset_of!(SegmentRecord, flags));
    let file = word(record, offset_of!(SegmentRecord, file));
    *clock = clock.wrapping_add(u64::from(word(record, offset_of!(SegmentRecord, start))));
    let result = word(record, offset_of!(SegmentRecord, result));
    Segment {
        thread,
        file: (file != FILE_NONE).then_some(file),
        call: half(record, offset_of!(SegmentRecord, call)),
        offset: (flags & SEGMENT_NO_OFFSET == 0)
            .then_some(long(record, offset_of!(SegmentRecord, offset))),
        length: (flags & SEGMENT_NO_LENGTH == 0).then_some(wide(
            offset_of!(SegmentRecord, length),
            offset_of!(SegmentRecord, start),
        )),
        result: match extension {
            Some(extension) => {
                let high = word(extension, offset_of!(SegmentRecord, result));
                (u64::from(high) << 32 | u64::from(result)) as i64
            }
            None => i64::from(result as i32),
        },
        start_ticks: *clock,
        duration_ticks: wide(
            offset_of!(SegmentRecord, duration),
            offset_of!(SegmentRecord, duration),
        ),
    }
}
