//! How a trace log lies in its file: the structures that the tracer fills in place and the reader decodes.
//!
//! ```text
//! page 0       Header
//! main         chunks of whole pages: threads, histograms, names, files
//! segments     chunks of whole pages: one record a call
//! ```
//!
//! Everything is little-endian, and every time is in ticks of the header's clock. The file is sparse: what was
//! never used takes no space. A process that is killed leaves what it had recorded until then.

use super::classes::{CLASS_SUMS, Class};

/// The first bytes of a trace log; the line ends and the DOS end-of-file show a file that was converted.
pub const MAGIC: [u8; 8] = *b"LLTRC\r\n\x1a";
/// The version that this crate lays out; it reads every version up to this one. Since 2 the header names the list
/// of calls, and segments are aligned and tell themselves whether they were written. Since 3 transfers of no byte are
/// counted.
pub const VERSION: u32 = 3;
/// Chunks start at, and consist of, pages.
pub const PAGE_BYTES: usize = 4096;
/// Bins of access sizes, as in Darshan.
pub const SIZE_BINS: usize = 10;
/// Room for counts of calls in a thread's chunk.
pub const CALLS_MAX: usize = 448;
/// Latencies from here on have no bucket.
pub const HISTOGRAM_TICKS: u64 = 1 << 44;
/// Buckets of one latency histogram: exact below 64 ticks, then 32 to an octave.
pub const HISTOGRAM_BUCKETS: usize = bucket_of(HISTOGRAM_TICKS - 1) + 1;
/// Longest path that is kept whole.
pub const PATH_BYTES_MAX: usize = 4096;

/// Kinds of loss, in the order of `Header::lost`, in the words of tables.
pub const LOST: [&str; 8] = [
    "files",       // no room for a file: its counts are in the process's sums only
    "segments",    // no room for a segment
    "nested",      // a call from a signal handler that interrupted the tracer
    "descriptors", // a descriptor beyond the table
    "threads",     // more threads at once than there is room for
    "children",    // a child that could not write a log
    "histograms",  // no room for a latency histogram, or a latency beyond it
    "calls",       // no room for a thread's counts, or a call before the log was there
];

/// Flags of `Header::flags`, as bits, with the words of notes.
pub const NOTES: [(u64, &str); 7] = [
    (1, "io_uring"),
    (2, "mmap"),
    (4, "changed root"),
    (8, "calls on pipes, sockets and devices are not counted"),
    (16, "text was cut"),
    (32, "asynchronous I/O"),
    (64, "streams of the C library were not followed"),
];
pub const NOTE_IO_URING: u64 = 1;
pub const NOTE_MMAP: u64 = 2;
pub const NOTE_CHROOT: u64 = 4;
pub const NOTE_OTHER: u64 = 8;
pub const NOTE_CUT: u64 = 16;
pub const NOTE_ASYNCHRONOUS: u64 = 32;
pub const NOTE_STREAMS: u64 = 64;

/// How a process ended, as far as it could say so itself.
pub const END_NONE: u32 = 0;
pub const END_EXIT: u32 = 1;
pub const END_EXEC: u32 = 2;

/// The clock is CLOCK_MONOTONIC in ns, or the CPU's time-stamp counter.
pub const CLOCK_MONOTONIC: u32 = 0;
pub const CLOCK_COUNTER: u32 = 1;

pub const EXECUTABLE_BYTES: usize = 1024;
pub const COMMAND_BYTES: usize = 1536;
pub const NOTE_BYTES: usize = 1024;

/// Page 0. What is before `checksum` never changes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Header {
    pub magic: [u8; 8],
    pub version: u32,
    pub clock: u32,
    pub ticks_per_second: u64,
    pub start_ticks: u64,
    pub start_unix_ns: u64,
    pub pid: u32,
    pub parent_pid: u32,
    /// Of /proc/PID/stat, so that a process that still runs is told from a later one of its number.
    pub kernel_start: u64,
    pub main_offset: u64,
    pub main_bytes: u64,
    pub segments_offset: u64,
    pub segments_bytes: u64,
    /// CRC-32 of the bytes before it.
    pub checksum: u32,
    pub end_kind: u32,
    pub end_status: i32,
    pub threads: u32,
    pub end_ticks: u64,
    pub main_used: u64,
    pub segments_used: u64,
    pub flags: u64,
    pub lost: [u64; LOST.len()],
    pub executable_bytes: u32,
    pub command_bytes: u32,
    pub note_bytes: u32,
    pub others: u32,
    pub executable: [u8; EXECUTABLE_BYTES],
    pub command: [u8; COMMAND_BYTES],
    /// Lines of text.
    pub note: [u8; NOTE_BYTES],
    /// How long the writer's list of calls was, and its checksum; since version 2.
    pub calls: u64,
    pub calls_checksum: u64,
    /// Bytes read and written, whatever the descriptor, as the kernel counts them and as they were recorded, where
    /// `is_held` is 1; of one moment, where the process said how it ends. Zeros in older logs.
    pub kernel_bytes: [u64; 2],
    pub recorded_bytes: [u64; 2],
    pub is_held: u64,
    /// Calls of each class on followed files, their ticks, and the ns that they were made to wait; zeros where none are
    /// followed, and in older logs.
    pub classes: [[u64; CLASS_SUMS]; Class::ALL.len()],
}

pub const CHUNK_THREAD: u16 = 1;
pub const CHUNK_HISTOGRAM: u16 = 2;
pub const CHUNK_NAMES: u16 = 3;
pub const CHUNK_FILES: u16 = 4;
pub const CHUNK_SEGMENTS: u16 = 5;

/// The start of every chunk. A page whose kind is 0 was reserved and never used.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ChunkHead {
    pub kind: u16,
    pub pages: u16,
    /// Which thread's; in a chunk of segments the kernel's number of the thread.
    pub thread: u32,
    /// Bytes used after this head.
    pub used: u32,
    pub check: u32,
    /// The kind of latency, in a chunk of a histogram; the first segment's clock base in one of segments.
    pub extra: u64,
}

/// What `ChunkHead::check` must be.
pub const fn chunk_check(kind: u16, pages: u16, thread: u32) -> u32 {
    0x4c4c_4348 ^ (kind as u32) ^ ((pages as u32) << 16) ^ thread.wrapping_mul(0x9e37_79b1)
}

/// The payload of a thread's chunk.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ThreadRecord {
    pub calls: [u64; CALLS_MAX],
    /// What recording took after a call's end, of some calls, and of how many. Absent in older logs.
    pub own_ticks: u64,
    pub own_samples: u64,
}

/// Entries of a chunk of files begin with one of these.
pub const TAG_FILE: u32 = 0x4c46_0001;
pub const TAG_READ: u32 = 0x4c46_0002;
pub const TAG_WRITE: u32 = 0x4c46_0003;

/// The file that stands for all that found no room.
pub const FILE_OTHERS: u32 = 0;

/// A name: this head, then the bytes of the path, padded to 8.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NameHead {
    pub file: u32,
    pub module: u16,
    pub bytes: u16,
}

pub const MODULE_POSIX: u16 = 0;
pub const MODULE_STDIO: u16 = 1;

/// What one thread did to one file, reads and writes apart.
///
/// Counts are 32 bits wide: after 2^31 calls a thread begins another record, and readers add them up. What every
/// transfer, seek and stat changes is together, for the cache lines that a call may find the kernel has taken.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FileRecord {
    pub tag: u32,
    pub file: u32,
    /// Calls of any kind since the record began: when to begin another.
    pub operations: u32,
    pub failed: u32,
    pub seeks: u32,
    pub stats: u32,
    pub memory_not_aligned: u32,
    pub file_not_aligned: u32,
    pub alignment: u32,
    /// 0 nothing yet, 1 read, 2 write: the last transfer's direction.
    pub last_direction: u32,
    pub switches: u32,
    pub thread: u32,
    pub meta_ticks: u64,
    /// The tracer's own: this record's sides.
    pub sides: [u64; 2],
    pub opens: u32,
    pub filenos: u32,
    pub dups: u32,
    pub mmaps: u32,
    pub fsyncs: u32,
    pub fdsyncs: u32,
    pub rename_sources: u32,
    pub rename_targets: u32,
    pub unlinks: u32,
    pub mkdirs: u32,
    pub rmdirs: u32,
    pub readdirs: u32,
    pub links: u32,
    pub truncates: u32,
    pub allocates: u32,
    pub advises: u32,
    pub closes: u32,
    /// Mappings through which what is written reaches the file.
    pub write_mmaps: u32,
    /// Of data: mappings of programs and libraries are not among them.
    pub mapped_bytes: u64,
    pub sync_ticks: u64,
    pub open_start: u64,
    pub open_end: u64,
    pub close_start: u64,
    pub close_end: u64,
    /// The tracer's own: the next thread's record of this file.
    pub next: u64,
}

/// One direction of transfers of one thread on one file.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SideRecord {
    pub tag: u32,
    pub file: u32,
    pub count: u32,
    pub consecutive: u32,
    pub sequential: u32,
    pub sizes: [u32; SIZE_BINS],
    pub thread: u32,
    pub bytes: u64,
    /// One past the highest byte.
    pub end_max: u64,
    /// One past the last byte of the last transfer.
    pub last_end: u64,
    pub ticks: u64,
    pub ticks_max: u64,
    pub start_first: u64,
    pub end_last: u64,
    pub copied: u64,
    pub rewritten: u64,
    /// Transfers of no byte; since version 3, and last: before, a record ended here.
    pub empty: u64,
}

pub const SEGMENT_EXTENDED: u16 = 1;
/// Has no offset / no length.
pub const SEGMENT_NO_OFFSET: u16 = 2;
pub const SEGMENT_NO_LENGTH: u16 = 4;
/// Of every record that was written, since version 2: before, the chunk's `used` said how many there are.
pub const SEGMENT_WRITTEN: u16 = 8;
/// Where the first segment of a chunk is since version 2, so that none is in two cache lines; before, after the head.
pub const SEGMENTS_AT: usize = size_of::<SegmentRecord>();
/// `SegmentRecord::call` of a record that carries what does not fit into the next one.
pub const CALL_EXTENSION: u16 = 0xffff;
/// `SegmentRecord::file` where a call has no file.
pub const FILE_NONE: u32 = u32::MAX;

/// One call. Starts count from the one before (the chunk's `extra` for its first).
///
/// An extension precedes a record that does not fit: `offset` is then the start in ticks, `start` and
/// `duration` are the upper halves of length and duration, `result` that of the result.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SegmentRecord {
    pub start: u32,
    pub duration: u32,
    pub file: u32,
    pub call: u16,
    pub flags: u16,
    pub offset: u64,
    pub length: u32,
    pub result: u32,
}

const _: () = {
    assert!(size_of::<Header>() <= PAGE_BYTES);
    assert!(size_of::<ChunkHead>() == 24);
    assert!(size_of::<ThreadRecord>() + size_of::<ChunkHead>() <= PAGE_BYTES);
    assert!(size_of::<SegmentRecord>() == 32);
    assert!(size_of::<FileRecord>() & 7 == 0 && size_of::<SideRecord>() & 7 == 0);
};

/// The bucket that a latency of `ticks` is counted in.
#[inline(always)]
pub const fn bucket_of(ticks: u64) -> usize {
    let shift = 58 - (ticks | 63).leading_zeros();
    ((shift as usize) << 5) + (ticks >> shift) as usize
}

/// The lowest latency of a bucket, and how many it holds.
pub const fn bucket_range(bucket: usize) -> (u64, u64) {
    if bucket < 64 {
        return (bucket as u64, 1);
    }
    let shift = bucket / 32 - 1;
    (((bucket - shift * 32) as u64) << shift, 1 << shift)
}

/// Darshan's upper bounds of its bins, inclusive; the last bin has none.
const SIZE_BOUNDS: [u64; SIZE_BINS - 1] = [
    100,
    1 << 10,
    10 << 10,
    100 << 10,
    1 << 20,
    4 << 20,
    10 << 20,
    100 << 20,
    1 << 30,
];

/// No call moves as much: more than the kernel moves at once, or than memory can be mapped.
pub const SIZE_MAX: u64 = 1 << BIN_SHIFT;
const BIN_SHIFT: u32 = 47;

/// By the number of bits of a size, what is to be added to it so that its bin is in the bits from `BIN_SHIFT` on.
///
/// Sizes of as many bits have the bin of the smallest one, or the next beyond the one bound that may be among them.
const BINS_BY_BITS: [u64; BIN_SHIFT as usize + 1] = {
    let mut table = [((SIZE_BINS - 1) as u64) << BIN_SHIFT; BIN_SHIFT as usize + 1];
    let mut bits = 0;
    while bits < table.len() {
        let lowest = if bits == 0 { 0 } else { 1 << (bits - 1) };
        let mut bin = 0;
        while bin < SIZE_BOUNDS.len() && lowest > SIZE_BOUNDS[bin] {
            bin += 1;
        }
        if bin < SIZE_BOUNDS.len() {
            table[bits] = ((bin as u64 + 1) << BIN_SHIFT) - 1 - SIZE_BOUNDS[bin];
        }
        bits += 1;
    }
    table
};

/// Darshan's bin of an access of `bytes`, below `SIZE_MAX`; of more, the last.
#[inline(always)]
pub const fn size_bin(bytes: u64) -> usize {
    if bytes >= SIZE_MAX {
        return SIZE_BINS - 1;
    }
    // 0 is in the bin of 1, so that the number of bits is never 0.
    let bits = u64::BITS - (bytes | 1).leading_zeros();
    ((BINS_BY_BITS[bits as usize] + bytes) >> BIN_SHIFT) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_dense_and_at_most_a_thirty_second_wide() {
        for bucket in 0..HISTOGRAM_BUCKETS {
            let (low, width) = bucket_range(bucket);
            assert_eq!(bucket_of(low), bucket);
            assert_eq!(bucket_of(low + width - 1), bucket);
            assert!(width == 1 || width * 32 <= low);
        }
        assert_eq!(HISTOGRAM_BUCKETS, 1280);
    }

    #[test]
    fn a_size_of_a_bound_is_below_it_as_in_darshan() {
        assert_eq!((size_bin(0), size_bin(100), size_bin(101)), (0, 0, 1));
        for (bin, bound) in SIZE_BOUNDS.into_iter().enumerate() {
            assert_eq!((size_bin(bound), size_bin(bound + 1)), (bin, bin + 1));
        }
        assert_eq!(
            (
                size_bin(SIZE_MAX - 1),
                size_bin(SIZE_MAX),
                size_bin(u64::MAX)
            ),
            (9, 9, 9)
        );
    }
}
