//! The shapes that the program in the kernel writes; `program/layout.h` says the same in C.

use aya::Pod;
use leadline_record::trace::{COUNTERS, TIMES};

pub const CALL_NUMBERS: usize = 512;
pub const OPCODES: usize = 64;
pub const ASKED_OPCODES: usize = 16;
pub const SLOTS: usize = 160;
pub const KINDS: usize = 4;
pub const HISTOGRAM_BUCKETS: usize = 256;
const HISTOGRAM_FIRST_BITS: u32 = 6;
const CACHED: usize = 16;

pub const EVENT_NAME: u32 = 1;
pub const EVENT_FORK: u32 = 2;
pub const EVENT_EXEC: u32 = 3;
pub const EVENT_EXIT: u32 = 4;
pub const EVENT_THREAD: u32 = 5;
pub const EVENT_ARGUMENTS: u32 = 6;
pub const EVENT_PATH: u32 = 7;
/// Room for a path as a program gave it.
pub const PATH_BYTES: usize = 240;

/// How a call is treated.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct CallEntry {
    pub slot: u8,
    pub kind: u8,
    pub shape: u8,
    pub counter: u8,
    pub path: u8,
    pub has_directory: u8,
    pub second: u8,
    pub zero: u8,
}

/// Calls of one kind by one thread.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub count: u64,
    pub errors: u64,
    pub bytes: u64,
    pub time_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Cached {
    file: u64,
    row: u32,
    epoch: u32,
    descriptor: u32,
    is_file: u32,
}

/// One thread between its start or exec and its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Thread {
    pub event: u32,
    pub image: u32,
    pub tgid: u32,
    pub tid: u32,
    start_ns: u64,
    concurrent: u32,
    uncached: u32,
    foreign: u32,
    closing_row: u32,
    closing_file: u32,
    pub is_held: u32,
    pub runtime_ns: u64,
    pub user_ns: u64,
    pub system_ns: u64,
    pub copied_in_bytes: u64,
    pub copied_out_bytes: u64,
    pub faults: u64,
    pub uncollected: u64,
    pub kernel_bytes: [u64; 2],
    pub seen_bytes: [u64; 2],
    last_path: [u64; 5],
    cache: [Cached; CACHED],
    pub calls: [Tally; SLOTS],
    pub histograms: [[u64; HISTOGRAM_BUCKETS]; KINDS],
}

/// One file in one process image.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Row {
    pub image: u32,
    pub device: u32,
    pub inode: u64,
    name_hash: u64,
    generation: u32,
    pub named: u32,
    sequence: [u64; 4],
    pub counters: [u64; COUNTERS.len()],
    pub times_ns: [u64; TIMES.len()],
}

/// A fork, an exec or the end of a process.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ProcessEvent {
    pub event: u32,
    pub image: u32,
    pub before: u32,
    pub pid: u32,
    pub time_ns: u64,
    pub status: i32,
    pub foreign: u32,
}

/// What comes before the text of a name or of arguments.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct TextEvent {
    pub event: u32,
    pub number: u32,
    pub bytes: u32,
    pub flag: u32,
}

/// One call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    pub image: u32,
    pub tid: u32,
    pub row: u32,
    pub slot: u32,
    pub offset: i64,
    pub length: i64,
    pub result: i64,
    pub start_ns: u64,
    pub duration_ns: u64,
}

/// A request of libaio whose result nobody collected yet.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    start_ns: u64,
    offset: i64,
    length: i64,
    opcode: u32,
    pub image: u32,
    row: u32,
    is_file: u32,
}

/// Its address, and the process.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AskedKey {
    address: u64,
    tgid: u32,
    zero: u32,
}

// SAFETY: all are plain integers in C's layout without padding, for which every pattern of bits is a value.
unsafe impl Pod for CallEntry {}
// SAFETY: as above.
unsafe impl Pod for Thread {}
// SAFETY: as above.
unsafe impl Pod for Row {}
// SAFETY: as above.
unsafe impl Pod for ProcessEvent {}
// SAFETY: as above.
unsafe impl Pod for TextEvent {}
// SAFETY: as above.
unsafe impl Pod for Segment {}
// SAFETY: as above.
unsafe impl Pod for Asked {}
// SAFETY: as above.
unsafe impl Pod for AskedKey {}

impl Thread {
    /// A thread that did nothing yet.
    pub fn waiting(image: u32, pid: u32) -> Box<Self> {
        // SAFETY: all fields are integers, for which zero is a value.
        let mut thread: Box<Self> = unsafe { Box::new(std::mem::zeroed()) };
        thread.image = image;
        thread.tgid = pid;
        thread.tid = pid;
        thread
    }

    /// A thread of a process that runs already. Others may use its files at the same time.
    pub fn running(image: u32, pid: u32, tid: u32) -> Box<Self> {
        let mut thread = Self::waiting(image, pid);
        thread.tid = tid;
        thread.concurrent = 1;
        thread
    }
}

/// The value at the beginning of `bytes`, or None when they are too few.
pub fn take<T: Pod>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: there are enough bytes, and T is plain data that may be read from any address.
    Some(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}

/// The middle of a bucket of latencies, in ns.
pub fn bucket_middle_ns(bucket: usize) -> u64 {
    if bucket == 0 {
        return 1 << (HISTOGRAM_FIRST_BITS - 1);
    }
    let (power, part) = (
        (bucket - 1) as u32 / 8 + HISTOGRAM_FIRST_BITS,
        (bucket - 1) as u64 % 8,
    );
    let width = 1_u64 << (power - 3);
    (1 << power) + part * width + width / 2
}
