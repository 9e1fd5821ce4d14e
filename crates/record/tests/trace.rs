//! The trace log's reader meets any bytes with a result or an error, never with a panic or made-up numbers.

use std::mem::offset_of;

use leadline_record::trace::calls::checksum;
use leadline_record::trace::layout::{
    CHUNK_FILES, CHUNK_HISTOGRAM, CHUNK_NAMES, CHUNK_SEGMENTS, CHUNK_THREAD, ChunkHead, FileRecord,
    Header, MAGIC, NameHead, PAGE_BYTES, SEGMENT_WRITTEN, SEGMENTS_AT, SegmentRecord, SideRecord,
    TAG_FILE, TAG_READ, VERSION, chunk_check,
};
use leadline_record::trace::{
    CALLS, CALLS_CHECKSUM, COUNTERS, Call, Columns, NONE, TraceError, read,
};
use proptest::prelude::*;

const START_TICKS: u64 = 1_000_000;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// A log of these chunks (kind, extra, payload), each of one page; segments are the last `segments` chunks.
fn log(chunks: &[(u16, u64, Vec<u8>)], segments: usize) -> Vec<u8> {
    log_of(VERSION, chunks, segments)
}

fn log_of(version: u32, chunks: &[(u16, u64, Vec<u8>)], segments: usize) -> Vec<u8> {
    let main_bytes = ((chunks.len() - segments) * PAGE_BYTES) as u64;
    let segments_bytes = (segments * PAGE_BYTES) as u64;
    let mut bytes = vec![0; PAGE_BYTES];
    put(&mut bytes, offset_of!(Header, magic), &MAGIC);
    put(
        &mut bytes,
        offset_of!(Header, version),
        &version.to_le_bytes(),
    );
    for (at, value) in [
        (offset_of!(Header, ticks_per_second), 1_000_000_000),
        (offset_of!(Header, start_ticks), START_TICKS),
        (offset_of!(Header, main_offset), PAGE_BYTES as u64),
        (offset_of!(Header, main_bytes), main_bytes),
        (offset_of!(Header, main_used), main_bytes),
        (
            offset_of!(Header, segments_offset),
            PAGE_BYTES as u64 + main_bytes,
        ),
        (offset_of!(Header, segments_bytes), segments_bytes),
        (offset_of!(Header, segments_used), segments_bytes),
        (offset_of!(Header, calls), CALLS.len() as u64),
        (offset_of!(Header, calls_checksum), CALLS_CHECKSUM),
    ] {
        put(&mut bytes, at, &u64::to_le_bytes(value));
    }
    let checksum = crc32fast::hash(&bytes[..offset_of!(Header, checksum)]);
    put(
        &mut bytes,
        offset_of!(Header, checksum),
        &checksum.to_le_bytes(),
    );
    for (kind, extra, payload) in chunks {
        let mut page = vec![0; PAGE_BYTES];
        put(&mut page, offset_of!(ChunkHead, kind), &kind.to_le_bytes());
        put(
            &mut page,
            offset_of!(ChunkHead, pages),
            &1_u16.to_le_bytes(),
        );
        put(
            &mut page,
            offset_of!(ChunkHead, used),
            &(payload.len() as u32).to_le_bytes(),
        );
        put(
            &mut page,
            offset_of!(ChunkHead, check),
            &chunk_check(*kind, 1, 0).to_le_bytes(),
        );
        put(
            &mut page,
            offset_of!(ChunkHead, extra),
            &extra.to_le_bytes(),
        );
        put(&mut page, size_of::<ChunkHead>(), payload);
        bytes.extend(page);
    }
    bytes
}

fn name(file: u32, path: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; (size_of::<NameHead>() + path.len()).next_multiple_of(8)];
    put(&mut bytes, offset_of!(NameHead, file), &file.to_le_bytes());
    put(
        &mut bytes,
        offset_of!(NameHead, bytes),
        &(path.len() as u16).to_le_bytes(),
    );
    put(&mut bytes, size_of::<NameHead>(), path);
    bytes
}

/// One file that was opened once and read twice, 300 bytes in all; one read found its end, which old logs lack.
fn records(version: u32, file: u32) -> Vec<u8> {
    let mut record = vec![0; size_of::<FileRecord>()];
    put(
        &mut record,
        offset_of!(FileRecord, tag),
        &TAG_FILE.to_le_bytes(),
    );
    put(
        &mut record,
        offset_of!(FileRecord, file),
        &file.to_le_bytes(),
    );
    put(
        &mut record,
        offset_of!(FileRecord, opens),
        &1_u32.to_le_bytes(),
    );
    let mut side = vec![0; size_of::<SideRecord>()];
    put(
        &mut side,
        offset_of!(SideRecord, tag),
        &TAG_READ.to_le_bytes(),
    );
    put(&mut side, offset_of!(SideRecord, file), &file.to_le_bytes());
    put(
        &mut side,
        offset_of!(SideRecord, count),
        &2_u32.to_le_bytes(),
    );
    put(
        &mut side,
        offset_of!(SideRecord, sizes) + 4,
        &2_u32.to_le_bytes(),
    );
    put(
        &mut side,
        offset_of!(SideRecord, bytes),
        &300_u64.to_le_bytes(),
    );
    let empty = offset_of!(SideRecord, empty);
    put(&mut side, empty, &1_u64.to_le_bytes());
    side.truncate(if version < 3 { empty } else { side.len() });
    record.extend(side);
    record
}

fn segment(start: u32, call: Call) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<SegmentRecord>()];
    put(
        &mut bytes,
        offset_of!(SegmentRecord, start),
        &start.to_le_bytes(),
    );
    put(
        &mut bytes,
        offset_of!(SegmentRecord, file),
        &7_u32.to_le_bytes(),
    );
    put(
        &mut bytes,
        offset_of!(SegmentRecord, call),
        &(call as u16).to_le_bytes(),
    );
    put(
        &mut bytes,
        offset_of!(SegmentRecord, flags),
        &SEGMENT_WRITTEN.to_le_bytes(),
    );
    bytes
}

fn whole() -> Vec<u8> {
    let room = vec![0; SEGMENTS_AT - size_of::<ChunkHead>()];
    let unwritten = vec![0; 3 * size_of::<SegmentRecord>()];
    let segments = [
        room,
        segment(5, Call::read),
        segment(6, Call::read),
        unwritten,
    ];
    whole_of(VERSION, segments.concat())
}

/// As version 1 had it: segments begin after the chunk's head, and all that it counts were written.
fn whole_of_version_1() -> Vec<u8> {
    let unmarked = |start| {
        let mut bytes = segment(start, Call::read);
        put(&mut bytes, offset_of!(SegmentRecord, flags), &[0, 0]);
        bytes
    };
    let mut bytes = whole_of(1, [unmarked(5), unmarked(6)].concat());
    put(&mut bytes, offset_of!(Header, calls), &[0; 16]);
    bytes
}

fn whole_of(version: u32, segments: Vec<u8>) -> Vec<u8> {
    let mut histogram = vec![0; 8 * 100];
    put(&mut histogram, 8 * 10, &2_u64.to_le_bytes());
    let chunks = [
        (CHUNK_THREAD, 0, vec![0; 8 * 448]),
        (CHUNK_NAMES, 0, name(7, b"/a/file")),
        (CHUNK_FILES, 0, records(version, 7)),
        (CHUNK_HISTOGRAM, 0, histogram),
        (CHUNK_SEGMENTS, START_TICKS, segments),
    ];
    log_of(version, &chunks, 1)
}

fn read_counts(bytes: &[u8]) -> Result<(u64, u64, bool), TraceError> {
    let log = read(bytes)?;
    let reads = log.files.values().map(|file| file.sides[0].count).sum();
    let bytes = log.files.values().map(|file| file.sides[0].bytes).sum();
    Ok((reads, bytes, log.truncated))
}

#[test]
fn a_whole_log_is_read_with_names_counts_and_segments() {
    holds_all(&whole());
    assert_eq!(empty_reads(&whole()), 1);
}

#[test]
fn a_log_of_version_1_is_read_as_ever() {
    holds_all(&whole_of_version_1());
    assert_eq!(empty_reads(&whole_of_version_1()), NONE);
}

fn empty_reads(bytes: &[u8]) -> i64 {
    let mut columns = Columns::new(0);
    columns.add(bytes).expect("it is whole");
    let at = COUNTERS.iter().position(|name| *name == "empty_reads");
    columns.counters[at.expect("it is counted")][0]
}

fn holds_all(bytes: &[u8]) {
    let mut columns = Columns::new(0);
    columns.add(bytes).expect("it is whole");
    assert_eq!(columns.paths, [b"/a/file"]);
    assert_eq!(columns.segments.start_ns, [5, 11]);
    assert_eq!(columns.segments.file, [0, 0]);
    let (reads, bytes, _) = read_counts(bytes).expect("it is whole");
    assert_eq!((reads, bytes), (2, 300));
}

/// The header of a log whose writer had a list of this length and checksum.
fn of_calls(count: u64, checksum: u64) -> Vec<u8> {
    let mut bytes = whole();
    put(&mut bytes, offset_of!(Header, calls), &count.to_le_bytes());
    let at = offset_of!(Header, calls_checksum);
    put(&mut bytes, at, &checksum.to_le_bytes());
    bytes
}

#[test]
fn a_log_of_another_list_of_calls_is_refused_and_says_what_to_do() {
    let longer = CALLS.len() as u64 + 1;
    for (count, checksum) in [(longer, CALLS_CHECKSUM), (CALLS.len() as u64, 1), (2, 3)] {
        let error =
            read(of_calls(count, checksum).as_slice()).expect_err("its names would be wrong");
        assert!(matches!(error, TraceError::OtherCalls { .. }), "{error}");
        assert!(
            error.to_string().contains("install leadline anew"),
            "{error}"
        );
    }
}

#[test]
fn a_log_of_the_beginning_of_the_list_is_read() {
    let earlier = checksum(CALLS.len() - 3);
    assert_ne!(earlier, CALLS_CHECKSUM);
    holds_all(&of_calls(CALLS.len() as u64 - 3, earlier));
}

#[test]
fn every_cut_is_an_error_or_said_to_be_truncated_with_no_more_than_was_there() {
    let bytes = whole();
    let main = PAGE_BYTES * 4;
    for length in (0..main).step_by(61) {
        if let Ok((reads, read, truncated)) = read_counts(&bytes[..length]) {
            assert!(truncated, "a cut at {length} was not noticed");
            assert!(reads <= 2 && read <= 300);
        }
    }
}

#[test]
fn a_newer_version_is_refused_by_name() {
    let mut bytes = whole();
    put(
        &mut bytes,
        offset_of!(Header, version),
        &9_u32.to_le_bytes(),
    );
    let error = read(bytes.as_slice()).expect_err("it is newer");
    assert!(error.to_string().contains("version 9"), "{error}");
}

#[test]
fn counts_that_contradict_each_other_are_damage() {
    let mut bytes = whole();
    let side = PAGE_BYTES * 3 + size_of::<ChunkHead>() + size_of::<FileRecord>();
    put(
        &mut bytes,
        side + offset_of!(SideRecord, count),
        &500_u32.to_le_bytes(),
    );
    assert!(matches!(
        read_counts(&bytes),
        Err(TraceError::Damaged { .. })
    ));
}

#[test]
fn a_segment_of_no_known_call_is_damage() {
    let mut unknown = segment(5, Call::read);
    let number = CALLS.len() as u16;
    put(
        &mut unknown,
        offset_of!(SegmentRecord, call),
        &number.to_le_bytes(),
    );
    let room = vec![0; SEGMENTS_AT - size_of::<ChunkHead>()];
    let bytes = whole_of(VERSION, [room, unknown].concat());
    assert!(matches!(
        Columns::new(0).add(&*bytes),
        Err(TraceError::Damaged { .. })
    ));
}

#[test]
fn more_calls_than_there_can_be_are_damage() {
    let counts: Vec<u8> = [3, u64::MAX].map(u64::to_le_bytes).concat();
    for kind in [CHUNK_HISTOGRAM, CHUNK_THREAD] {
        let bytes = log(&[(kind, 0, counts.clone())], 0);
        assert!(matches!(
            read_counts(&bytes),
            Err(TraceError::Damaged { .. })
        ));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..9000)) {
        let _ = Columns::new(0).add(bytes.as_slice());
    }

    #[test]
    fn changed_logs_never_panic(
        changes in proptest::collection::vec((0_usize..6 * PAGE_BYTES, any::<u8>()), 1..20)
    ) {
        let mut bytes = whole();
        for (at, value) in changes {
            bytes[at] = value;
        }
        let _ = Columns::new(0).add(bytes.as_slice());
    }

    #[test]
    fn arbitrary_payloads_never_panic(
        kind in 1_u16..6,
        payload in proptest::collection::vec(any::<u8>(), 0..4000),
        words in proptest::collection::vec(any::<u32>(), 0..900),
    ) {
        let flat: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let tagged = [TAG_FILE.to_le_bytes().as_slice(), &flat].concat();
        let chunks = [(kind, 0, payload), (CHUNK_FILES, 1, tagged), (CHUNK_SEGMENTS, 9, flat)];
        let _ = Columns::new(0).add(log(&chunks, 1).as_slice());
    }
}
