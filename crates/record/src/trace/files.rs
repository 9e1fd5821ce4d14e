//! The sums of one file over the threads of a process.

use std::collections::HashMap;
use std::mem::offset_of;

use super::layout::{FileRecord, SIZE_BINS, SideRecord, TAG_FILE, TAG_READ, TAG_WRITE};
use super::reader::{Chunk, Process, TraceError, long, word};

/// Transfers of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SideSums {
    pub count: u64,
    pub consecutive: u64,
    pub sequential: u64,
    pub sizes: [u64; SIZE_BINS],
    pub bytes: u64,
    /// One past the highest byte.
    pub end_max: u64,
    pub ticks: u64,
    pub ticks_max: u64,
    pub start_first: u64,
    pub end_last: u64,
    pub copied: u64,
    pub rewritten: u64,
    /// Transfers of no byte.
    pub empty: u64,
    /// A log of version 1 or 2 does not count `empty`.
    pub empty_unknown: bool,
    /// Of how many threads' records this is the sum.
    pub records: u32,
}

/// Names of the plain counts of a record, in the order of `FileSums::counts`.
pub(super) const COUNTS: usize = 22;
const COUNT_OFFSETS: [usize; COUNTS] = [
    offset_of!(FileRecord, opens),
    offset_of!(FileRecord, filenos),
    offset_of!(FileRecord, dups),
    offset_of!(FileRecord, seeks),
    offset_of!(FileRecord, stats),
    offset_of!(FileRecord, mmaps),
    offset_of!(FileRecord, fsyncs),
    offset_of!(FileRecord, fdsyncs),
    offset_of!(FileRecord, rename_sources),
    offset_of!(FileRecord, rename_targets),
    offset_of!(FileRecord, switches),
    offset_of!(FileRecord, memory_not_aligned),
    offset_of!(FileRecord, file_not_aligned),
    offset_of!(FileRecord, unlinks),
    offset_of!(FileRecord, mkdirs),
    offset_of!(FileRecord, rmdirs),
    offset_of!(FileRecord, readdirs),
    offset_of!(FileRecord, links),
    offset_of!(FileRecord, truncates),
    offset_of!(FileRecord, allocates),
    offset_of!(FileRecord, advises),
    offset_of!(FileRecord, closes),
];

/// All that is known of one file in one process.
#[derive(Debug, Clone, Default)]
pub struct FileSums {
    pub counts: [u64; COUNTS],
    pub failed: u64,
    pub alignment: u32,
    pub mapped_bytes: u64,
    pub write_mmaps: u64,
    pub meta_ticks: u64,
    pub sync_ticks: u64,
    pub open_start: u64,
    pub open_end: u64,
    pub close_start: u64,
    pub close_end: u64,
    /// Reads, writes.
    pub sides: [SideSums; 2],
}

/// Adds a chunk's records; true when the last is incomplete.
pub(super) fn add(
    files: &mut HashMap<u32, FileSums>,
    chunk: &Chunk,
    process: &Process,
) -> Result<bool, TraceError> {
    let start_ticks = process.start_ticks;
    let mut rest = chunk.payload;
    let mut torn = false;
    while !rest.is_empty() {
        let tag = word(rest, 0);
        let file = word(rest, 4);
        let bytes = match tag {
            TAG_FILE => size_of::<FileRecord>(),
            TAG_READ | TAG_WRITE if process.version < 3 => offset_of!(SideRecord, empty),
            TAG_READ | TAG_WRITE => size_of::<SideRecord>(),
            0 => return Ok(true),
            _ => return Err(chunk.damaged("a file's record of no known kind")),
        };
        let Some(record) = rest.get(..bytes) else {
            return Ok(true);
        };
        let sums = files.entry(file).or_default();
        if tag == TAG_FILE {
            if !times_hold(record, &FILE_TIMES, start_ticks) {
                return Err(chunk.damaged("a time before the process began"));
            }
            sums.add_record(record);
        } else {
            if !times_hold(record, &SIDE_TIMES, start_ticks) {
                return Err(chunk.damaged("a time before the process began"));
            }
            let side = &mut sums.sides[usize::from(tag == TAG_WRITE)];
            torn |= side
                .add_record(record)
                .map_err(|reason| chunk.damaged(reason))?;
        }
        rest = &rest[bytes..];
    }
    Ok(torn)
}

const FILE_TIMES: [usize; 4] = [
    offset_of!(FileRecord, open_start),
    offset_of!(FileRecord, open_end),
    offset_of!(FileRecord, close_start),
    offset_of!(FileRecord, close_end),
];
const SIDE_TIMES: [usize; 2] = [
    offset_of!(SideRecord, start_first),
    offset_of!(SideRecord, end_last),
];

/// A moment is 0 (never) or not before the process; the call that began the log began a little earlier.
fn times_hold(record: &[u8], offsets: &[usize], start_ticks: u64) -> bool {
    let earliest = start_ticks - start_ticks / 16;
    offsets.iter().all(|offset| {
        let ticks = long(record, *offset);
        ticks == 0 || ticks >= earliest
    })
}

impl FileSums {
    /// Nothing was counted in it.
    pub fn is_empty(&self) -> bool {
        let ticks = self.meta_ticks + self.sync_ticks;
        ticks == 0 && self.counts == [0; COUNTS] && self.sides.iter().all(|side| side.count == 0)
    }

    fn add_record(&mut self, record: &[u8]) {
        for (sum, offset) in self.counts.iter_mut().zip(COUNT_OFFSETS) {
            *sum += u64::from(word(record, offset));
        }
        self.failed += u64::from(word(record, offset_of!(FileRecord, failed)));
        self.alignment = self
            .alignment
            .max(word(record, offset_of!(FileRecord, alignment)));
        let of = |offset| long(record, offset);
        add_to(
            &mut self.mapped_bytes,
            of(offset_of!(FileRecord, mapped_bytes)),
        );
        self.write_mmaps += u64::from(word(record, offset_of!(FileRecord, write_mmaps)));
        add_to(&mut self.meta_ticks, of(offset_of!(FileRecord, meta_ticks)));
        add_to(&mut self.sync_ticks, of(offset_of!(FileRecord, sync_ticks)));
        earliest(&mut self.open_start, of(offset_of!(FileRecord, open_start)));
        earliest(
            &mut self.close_start,
            of(offset_of!(FileRecord, close_start)),
        );
        self.open_end = self.open_end.max(of(offset_of!(FileRecord, open_end)));
        self.close_end = self.close_end.max(of(offset_of!(FileRecord, close_end)));
    }
}

impl SideSums {
    /// Adds one record; true when the process was killed while it wrote it.
    fn add_record(&mut self, record: &[u8]) -> Result<bool, &'static str> {
        let small = |offset| u64::from(word(record, offset));
        let count = small(offset_of!(SideRecord, count));
        let consecutive = small(offset_of!(SideRecord, consecutive));
        let sequential = small(offset_of!(SideRecord, sequential));
        let mut binned = 0;
        for (bin, sum) in self.sizes.iter_mut().enumerate() {
            let one = small(offset_of!(SideRecord, sizes) + 4 * bin);
            binned += one;
            *sum += one;
        }
        if binned.abs_diff(count) > 1 || consecutive > sequential + 1 || sequential > count + 1 {
            return Err("a file's counts contradict each other");
        }
        self.count += count;
        self.consecutive += consecutive;
        self.sequential += sequential;
        let of = |offset| long(record, offset);
        add_to(&mut self.bytes, of(offset_of!(SideRecord, bytes)));
        add_to(&mut self.ticks, of(offset_of!(SideRecord, ticks)));
        add_to(&mut self.copied, of(offset_of!(SideRecord, copied)));
        add_to(&mut self.rewritten, of(offset_of!(SideRecord, rewritten)));
        let empty = offset_of!(SideRecord, empty);
        if record.len() > empty {
            add_to(&mut self.empty, of(empty));
        } else {
            self.empty_unknown = true;
        }
        self.end_max = self.end_max.max(of(offset_of!(SideRecord, end_max)));
        self.ticks_max = self.ticks_max.max(of(offset_of!(SideRecord, ticks_max)));
        self.end_last = self.end_last.max(of(offset_of!(SideRecord, end_last)));
        earliest(
            &mut self.start_first,
            of(offset_of!(SideRecord, start_first)),
        );
        self.records += 1;
        Ok(binned != count)
    }

    /// Time in which at least one thread was in a call, as far as sums can tell: never more than the sum over
    /// the threads, nor than the time from the first start to the last end.
    pub fn ticks_apart(&self) -> u64 {
        if self.records > 1 {
            self.ticks
                .min(self.end_last.saturating_sub(self.start_first))
        } else {
            self.ticks
        }
    }
}

fn add_to(sum: &mut u64, value: u64) {
    *sum = sum.saturating_add(value);
}

fn earliest(sum: &mut u64, value: u64) {
    if value != 0 && (*sum == 0 || value < *sum) {
        *sum = value;
    }
}

/// Counters of a file: Darshan's names where Darshan has them. Sizes of one side are next to each other.
pub const COUNTERS: [&str; 60] = [
    "OPENS",
    "FILENOS",
    "DUPS",
    "SEEKS",
    "STATS",
    "MMAPS",
    "FSYNCS",
    "FDSYNCS",
    "RENAME_SOURCES",
    "RENAME_TARGETS",
    "RW_SWITCHES",
    "MEM_NOT_ALIGNED",
    "FILE_NOT_ALIGNED",
    "unlinks",
    "mkdirs",
    "rmdirs",
    "readdirs",
    "links",
    "truncates",
    "allocates",
    "advises",
    "closes",
    "failed",
    "FILE_ALIGNMENT",
    "mapped_bytes",
    "READS",
    "WRITES",
    "BYTES_READ",
    "BYTES_WRITTEN",
    "MAX_BYTE_READ",
    "MAX_BYTE_WRITTEN",
    "CONSEC_READS",
    "CONSEC_WRITES",
    "SEQ_READS",
    "SEQ_WRITES",
    "copied_out_bytes",
    "copied_in_bytes",
    "rewritten_bytes",
    "SIZE_READ_0_100",
    "SIZE_READ_100_1K",
    "SIZE_READ_1K_10K",
    "SIZE_READ_10K_100K",
    "SIZE_READ_100K_1M",
    "SIZE_READ_1M_4M",
    "SIZE_READ_4M_10M",
    "SIZE_READ_10M_100M",
    "SIZE_READ_100M_1G",
    "SIZE_READ_1G_PLUS",
    "SIZE_WRITE_0_100",
    "SIZE_WRITE_100_1K",
    "SIZE_WRITE_1K_10K",
    "SIZE_WRITE_10K_100K",
    "SIZE_WRITE_100K_1M",
    "SIZE_WRITE_1M_4M",
    "SIZE_WRITE_4M_10M",
    "SIZE_WRITE_10M_100M",
    "SIZE_WRITE_100M_1G",
    "SIZE_WRITE_1G_PLUS",
    "write_mmaps",
    "empty_reads",
];

/// Times of a file, in Darshan's names; a timestamp is one that says so.
pub const TIMES: [&str; 13] = [
    "F_OPEN_START_TIMESTAMP",
    "F_READ_START_TIMESTAMP",
    "F_WRITE_START_TIMESTAMP",
    "F_CLOSE_START_TIMESTAMP",
    "F_OPEN_END_TIMESTAMP",
    "F_READ_END_TIMESTAMP",
    "F_WRITE_END_TIMESTAMP",
    "F_CLOSE_END_TIMESTAMP",
    "F_READ_TIME",
    "F_WRITE_TIME",
    "F_META_TIME",
    "F_MAX_READ_TIME",
    "F_MAX_WRITE_TIME",
];
