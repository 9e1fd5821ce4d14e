//! The logs of one trial as columns: what Python hands on to Arrow without touching single values.

use std::collections::HashMap;
use std::mem::offset_of;

use super::calls::CALLS;
use super::files::FileSums;
use super::files::{COUNTERS, TIMES};
use super::layout::{
    CALL_EXTENSION, CHUNK_SEGMENTS, ChunkHead, FILE_NONE, FILE_OTHERS, MODULE_POSIX,
    SEGMENT_NO_LENGTH, SEGMENT_NO_OFFSET, SEGMENT_WRITTEN, SEGMENTS_AT, SegmentRecord,
};
use super::reader::{Log, Process, Source, TraceError, half, long, read, walk, word};

/// Stands for null in a column of integers; times use NaN.
pub const NONE: i64 = i64::MIN;

/// Segments of all logs.
#[derive(Debug, Default)]
pub struct SegmentColumns {
    pub process: Vec<i32>,
    pub thread: Vec<i32>,
    /// -1 where there is none.
    pub file: Vec<i32>,
    pub call: Vec<i16>,
    pub offset: Vec<i64>,
    pub length: Vec<i64>,
    pub result: Vec<i64>,
    pub start_ns: Vec<i64>,
    pub duration_ns: Vec<i64>,
}

/// One process, without its files.
#[derive(Debug)]
pub struct ProcessEntry {
    pub process: Process,
    pub calls: Vec<(&'static str, u64)>,
    /// Ticks by bucket are ns here: (ns, count) of every bucket that is not empty, for each kind.
    pub latencies: [Vec<(u64, u64)>; 4],
    pub seconds: [f64; 4],
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// What recording the calls took beside them, estimated from some; None where none was looked at.
    pub own_ns: Option<u64>,
    pub truncated: bool,
    /// Files of which no name is left.
    pub nameless: u64,
}

/// All logs of a trial.
#[derive(Debug)]
pub struct Columns {
    started_unix_ns: i64,
    numbers: HashMap<Vec<u8>, i32>,
    pub processes: Vec<ProcessEntry>,
    pub process: Vec<i32>,
    pub file: Vec<i32>,
    pub module: Vec<u8>,
    /// The paths of files by number.
    pub paths: Vec<Vec<u8>>,
    pub counters: Vec<Vec<i64>>,
    pub times: Vec<Vec<f64>>,
    pub segments: SegmentColumns,
}

impl Columns {
    /// Nothing yet; times will count from `started_unix_ns`.
    pub fn new(started_unix_ns: i64) -> Self {
        Self {
            started_unix_ns,
            numbers: HashMap::new(),
            processes: Vec::new(),
            process: Vec::new(),
            file: Vec::new(),
            module: Vec::new(),
            paths: Vec::new(),
            counters: vec![Vec::new(); COUNTERS.len()],
            times: vec![Vec::new(); TIMES.len()],
            segments: SegmentColumns::default(),
        }
    }

    /// Adds one log. An error leaves what was there.
    pub fn add<S: Source + ?Sized>(&mut self, source: &S) -> Result<(), TraceError> {
        let log = read(source)?;
        let number = i32::try_from(self.processes.len()).unwrap_or(i32::MAX);
        let mut segments = Vec::new();
        let cut = read_segments(source, &log.process, |segment| segments.push(segment))?;
        let mut entry = entry(&log);
        entry.truncated |= cut || entry.nameless > 0;
        let mut found: Vec<u32> = log.files.keys().copied().collect();
        found.sort_unstable();
        found.retain(|file| *file != FILE_OTHERS || !log.files[file].is_empty());
        let mut of_trial = HashMap::new();
        for file in found {
            let of_file = self.number(&log, file);
            of_trial.insert(file, of_file);
            self.row(
                number,
                of_file,
                module(&log, file),
                &log.files[&file],
                &log.process,
            );
        }
        for segment in &segments {
            let file = segment.file.map(|file| {
                *of_trial
                    .entry(file)
                    .or_insert_with(|| self.number(&log, file))
            });
            self.segment(number, file, segment, &log.process);
        }
        self.processes.push(entry);
        Ok(())
    }

    /// The number in this trial of a log's file.
    fn number(&mut self, log: &Log, file: u32) -> i32 {
        let path = match log.names.get(&file) {
            Some((_, path)) => path.as_slice(),
            None if file == FILE_OTHERS => b"(others)",
            None => b"(a file whose name was not kept)",
        };
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let number = i32::try_from(self.paths.len()).unwrap_or(i32::MAX);
        self.numbers.insert(path.to_vec(), number);
        self.paths.push(path.to_vec());
        number
    }

    fn row(&mut self, process: i32, file: i32, module: u16, sums: &FileSums, of: &Process) {
        self.process.push(process);
        self.file.push(file);
        self.module.push(u8::try_from(module).unwrap_or(0));
        for (column, value) in self.counters.iter_mut().zip(counters(sums)) {
            column.push(value);
        }
        for (column, value) in self
            .times
            .iter_mut()
            .zip(times(sums, of, self.started_unix_ns))
        {
            column.push(value);
        }
    }

    fn segment(&mut self, process: i32, file: Option<i32>, segment: &Segment, of: &Process) {
        let value = |value: Option<u64>| value.map_or(NONE, |value| value as i64);
        let into = &mut self.segments;
        into.process.push(process);
        into.thread.push(segment.thread as i32);
        into.file.push(file.unwrap_or(-1));
        into.call.push(segment.call as i16);
        into.offset.push(value(segment.offset));
        into.length.push(value(segment.length));
        into.result.push(segment.result);
        into.start_ns
            .push(of.unix_ns(segment.start_ticks) - self.started_unix_ns);
        into.duration_ns.push(of.ns(segment.duration_ticks) as i64);
    }
}

fn module(log: &Log, file: u32) -> u16 {
    log.names
        .get(&file)
        .map_or(MODULE_POSIX, |(module, _)| *module)
}

fn counters(sums: &FileSums) -> Vec<i64> {
    let [reads, writes] = &sums.sides;
    let highest = |end: u64| if end == 0 { NONE } else { end as i64 - 1 };
    let mut row: Vec<i64> = sums.counts.iter().map(|count| *count as i64).collect();
    row.push(sums.failed as i64);
    row.push(if sums.alignment == 0 {
        NONE
    } else {
        i64::from(sums.alignment)
    });
    row.push(sums.mapped_bytes as i64);
    row.extend([reads.count, writes.count, reads.bytes, writes.bytes].map(|value| value as i64));
    row.extend([highest(reads.end_max), highest(writes.end_max)]);
    row.extend([reads.consecutive, writes.consecutive].map(|value| value as i64));
    row.extend([reads.sequential, writes.sequential].map(|value| value as i64));
    row.extend([reads.copied, writes.copied, writes.rewritten].map(|value| value as i64));
    row.extend(reads.sizes.iter().map(|count| *count as i64));
    row.extend(writes.sizes.iter().map(|count| *count as i64));
    row.push(sums.write_mmaps as i64);
    row.push(if reads.empty_unknown {
        NONE
    } else {
        reads.empty as i64
    });
    debug_assert_eq!(row.len(), COUNTERS.len());
    row
}

fn times(sums: &FileSums, of: &Process, started_unix_ns: i64) -> [f64; 13] {
    let [reads, writes] = &sums.sides;
    let moment = |ticks: u64| {
        if ticks == 0 {
            return f64::NAN;
        }
        (of.unix_ns(ticks) - started_unix_ns) as f64 / 1e9
    };
    let seconds = |ticks: u64| ticks as f64 / of.ticks_per_second.max(1) as f64;
    [
        moment(sums.open_start),
        moment(reads.start_first),
        moment(writes.start_first),
        moment(sums.close_start),
        moment(sums.open_end),
        moment(reads.end_last),
        moment(writes.end_last),
        moment(sums.close_end),
        seconds(reads.ticks_apart()),
        // Darshan counts syncs as time of writing.
        seconds(writes.ticks_apart() + sums.sync_ticks),
        seconds(sums.meta_ticks),
        seconds(reads.ticks_max),
        seconds(writes.ticks_max),
    ]
}

fn entry(log: &Log) -> ProcessEntry {
    let mut ticks = [0_u64; 4];
    let (mut bytes_read, mut bytes_written) = (0_u64, 0_u64);
    for sums in log.files.values() {
        let [reads, writes] = &sums.sides;
        let of_file = [reads.ticks, writes.ticks, sums.meta_ticks, sums.sync_ticks];
        for (sum, value) in ticks.iter_mut().zip(of_file) {
            *sum = sum.saturating_add(value);
        }
        bytes_read = bytes_read.saturating_add(reads.bytes);
        bytes_written = bytes_written.saturating_add(writes.bytes);
    }
    let nameless = log
        .files
        .keys()
        .filter(|file| **file != FILE_OTHERS && !log.names.contains_key(file))
        .count();
    ProcessEntry {
        calls: CALLS
            .iter()
            .zip(&log.calls)
            .filter(|(_, count)| **count > 0)
            .map(|((name, _, _), count)| (*name, *count))
            .collect(),
        latencies: std::array::from_fn(|kind| latencies(&log.histograms[kind], &log.process)),
        seconds: ticks.map(|ticks| ticks as f64 / log.process.ticks_per_second.max(1) as f64),
        bytes_read,
        bytes_written,
        own_ns: own_ns(log),
        truncated: log.truncated,
        nameless: nameless as u64,
        process: log.process.clone(),
    }
}

/// As if every call had taken as long as those that were looked at.
fn own_ns(log: &Log) -> Option<u64> {
    let (ticks, samples) = log.own;
    let calls: u64 = log
        .calls
        .iter()
        .fold(0, |sum, count| sum.saturating_add(*count));
    let all = u128::from(ticks) * u128::from(calls) / u128::from((samples > 0).then_some(samples)?);
    Some(log.process.ns(u64::try_from(all).unwrap_or(u64::MAX)))
}

/// The middle of each bucket in ns: at most 1.6 % from any latency that was counted in it.
fn latencies(counts: &[u64], process: &Process) -> Vec<(u64, u64)> {
    counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(bucket, count)| {
            let (low, width) = super::layout::bucket_range(bucket);
            (process.ns(low + width / 2), *count)
        })
        .collect()
}

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
