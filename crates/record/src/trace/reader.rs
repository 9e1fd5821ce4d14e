//! Reads a log chunk by chunk, so that a sparse file of gigabytes takes no more memory than what it holds.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use super::calls::{self, CALLS, Kind};
use super::classes::{CLASS_SUMS, Class};
use super::files::FileSums;
use super::layout::{
    CALLS_MAX, CHUNK_FILES, CHUNK_HISTOGRAM, CHUNK_NAMES, CHUNK_THREAD, COMMAND_BYTES, ChunkHead,
    EXECUTABLE_BYTES, HISTOGRAM_BUCKETS, Header, LOST, MAGIC, MODULE_STDIO, NOTE_BYTES, NameHead,
    PAGE_BYTES, PATH_BYTES_MAX, ThreadRecord, VERSION, chunk_check,
};

/// A count above is damage: 2^48 calls of 100 ns take a year.
const COUNT_MAX: u64 = 1 << 48;

/// Where bytes come from: a file, or memory in tests.
pub trait Source {
    /// Fills as much of `into` as there is from `offset` on, and says how much.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize>;
}

impl Source for File {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match FileExt::read_at(self, &mut into[done..], offset + done as u64)? {
                0 => break,
                got => done += got,
            }
        }
        Ok(done)
    }
}

impl Source for [u8] {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.get(offset..))
            .unwrap_or(&[]);
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// What the header says of a process.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Of the log's layout.
    pub version: u32,
    pub pid: u32,
    pub parent_pid: u32,
    pub kernel_start: u64,
    pub clock: u32,
    pub ticks_per_second: u64,
    pub start_ticks: u64,
    pub start_unix_ns: u64,
    pub end_kind: u32,
    pub end_status: i32,
    pub end_ticks: u64,
    pub threads: u32,
    pub flags: u64,
    pub lost: [u64; LOST.len()],
    pub executable: Vec<u8>,
    pub command: Vec<u8>,
    pub note: Vec<u8>,
    /// Bytes read and written that the kernel counted beyond what was recorded, below 0 for fewer.
    pub unseen: Option<[i64; 2]>,
    /// As in the header.
    pub classes: [[u64; CLASS_SUMS]; Class::ALL.len()],
    pub main: Region,
    pub segments: Region,
}

/// A part of the file, and how much of it was handed out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Region {
    pub offset: u64,
    pub bytes: u64,
    pub used: u64,
}

impl Process {
    /// Ticks as ns.
    pub fn ns(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_second.max(1))) as u64
    }

    /// A moment in ns since 1970.
    pub fn unix_ns(&self, ticks: u64) -> i64 {
        let ns = if ticks >= self.start_ticks {
            i128::from(self.ns(ticks - self.start_ticks))
        } else {
            -i128::from(self.ns(self.start_ticks - ticks))
        };
        (i128::from(self.start_unix_ns) + ns) as i64
    }
}

/// A whole log but its segments.
#[derive(Debug, Default)]
pub struct Log {
    pub process: Process,
    /// What recording took after the ends of some calls, in ticks, and of how many.
    pub own: (u64, u64),
    /// Count by number of the call.
    pub calls: Vec<u64>,
    /// Counts by bucket, for each kind.
    pub histograms: [Vec<u64>; Kind::ALL.len()],
    /// Module and path by the file's number.
    pub names: HashMap<u32, (u16, Vec<u8>)>,
    /// By the file's number, in no order.
    pub files: HashMap<u32, FileSums>,
    /// A part is missing or was being written.
    pub truncated: bool,
}

/// Reads all but the segments; never panics, whatever the bytes.
pub fn read<S: Source + ?Sized>(source: &S) -> Result<Log, TraceError> {
    let process = header(source)?;
    let mut log = Log {
        calls: vec![0; CALLS.len()],
        histograms: std::array::from_fn(|_| vec![0; HISTOGRAM_BUCKETS]),
        ..Log::default()
    };
    let mut holes = false;
    let main = process.main;
    log.process = process;
    log.truncated = walk(source, main, &mut holes, |chunk| one_chunk(&mut log, chunk))?;
    // Pages that were reserved and not written are what a full disk leaves, and it is counted; else they are a gap.
    log.truncated |= holes && log.process.lost.iter().all(|count| *count == 0);
    Ok(log)
}

/// One chunk, checked.
pub(super) struct Chunk<'a> {
    pub kind: u16,
    pub thread: u32,
    pub extra: u64,
    pub offset: u64,
    pub payload: &'a [u8],
}

impl Chunk<'_> {
    pub fn damaged(&self, reason: &'static str) -> TraceError {
        TraceError::Damaged {
            offset: self.offset,
            reason,
        }
    }
}

/// Calls `each` for the chunks of a region; true when the file ends before it.
pub(super) fn walk<S: Source + ?Sized>(
    source: &S,
    region: Region,
    holes: &mut bool,
    mut each: impl FnMut(&Chunk) -> Result<bool, TraceError>,
) -> Result<bool, TraceError> {
    let mut buffer = Vec::new();
    let mut at = 0;
    let mut cut = false;
    let end = region.used.min(region.bytes);
    while at < end {
        let offset = region.offset + at;
        let mut head = [0_u8; size_of::<ChunkHead>()];
        if source.read_at(offset, &mut head)? < head.len() {
            return Ok(true);
        }
        let kind = half(&head, offset_of!(ChunkHead, kind));
        let pages = half(&head, offset_of!(ChunkHead, pages));
        let thread = word(&head, offset_of!(ChunkHead, thread));
        let used = word(&head, offset_of!(ChunkHead, used)) as usize;
        if kind == 0 {
            *holes = true;
            at += PAGE_BYTES as u64;
            continue;
        }
        let room = usize::from(pages) * PAGE_BYTES;
        let whole = word(&head, offset_of!(ChunkHead, check)) == chunk_check(kind, pages, thread);
        if !whole || used + head.len() > room || at + room as u64 > region.bytes {
            return Err(TraceError::Damaged {
                offset,
                reason: "a chunk's head does not hold together",
            });
        }
        buffer.resize(used, 0);
        let got = source.read_at(offset + head.len() as u64, &mut buffer)?;
        cut |= got < used;
        let extra = long(&head, offset_of!(ChunkHead, extra));
        let payload = &buffer[..got];
        cut |= each(&Chunk {
            kind,
            thread,
            extra,
            offset,
            payload,
        })?;
        at += room as u64;
    }
    Ok(cut)
}

fn one_chunk(log: &mut Log, chunk: &Chunk) -> Result<bool, TraceError> {
    match chunk.kind {
        CHUNK_THREAD => {
            let ticks = long(chunk.payload, offset_of!(ThreadRecord, own_ticks));
            let samples = long(chunk.payload, offset_of!(ThreadRecord, own_samples));
            log.own.0 = log.own.0.saturating_add(ticks);
            log.own.1 = log.own.1.saturating_add(samples);
            add_counts(&mut log.calls, chunk, CALLS_MAX)
        }
        CHUNK_HISTOGRAM => {
            let kind = usize::try_from(chunk.extra).unwrap_or(usize::MAX);
            let sums = log.histograms.get_mut(kind);
            let sums = sums.ok_or_else(|| chunk.damaged("a histogram of no known kind"))?;
            add_counts(sums, chunk, HISTOGRAM_BUCKETS)
        }
        CHUNK_NAMES => names(&mut log.names, chunk),
        CHUNK_FILES => super::files::add(&mut log.files, chunk, &log.process),
        _ => Err(chunk.damaged("a chunk of a kind that this version does not write")),
    }
}

/// Adds the counts that are there; true when some are missing.
fn add_counts(sums: &mut [u64], chunk: &Chunk, expected: usize) -> Result<bool, TraceError> {
    for (sum, bytes) in sums.iter_mut().zip(chunk.payload.as_chunks::<8>().0) {
        let count = u64::from_le_bytes(*bytes);
        if count > COUNT_MAX {
            return Err(chunk.damaged("more calls than a process can make"));
        }
        *sum = sum.saturating_add(count);
    }
    Ok(chunk.payload.len() < expected * 8)
}

fn names(names: &mut HashMap<u32, (u16, Vec<u8>)>, chunk: &Chunk) -> Result<bool, TraceError> {
    let mut rest = chunk.payload;
    while !rest.is_empty() {
        if rest.len() < size_of::<NameHead>() {
            return Ok(true);
        }
        let file = word(rest, offset_of!(NameHead, file));
        let module = half(rest, offset_of!(NameHead, module));
        let bytes = usize::from(half(rest, offset_of!(NameHead, bytes)));
        if bytes == 0 && file == 0 {
            // The head is written last: the process was killed while it wrote this name.
            return Ok(true);
        }
        if bytes > PATH_BYTES_MAX || module > MODULE_STDIO {
            return Err(chunk.damaged("a name is too long or of no known module"));
        }
        let Some(name) = rest.get(size_of::<NameHead>()..size_of::<NameHead>() + bytes) else {
            return Ok(true);
        };
        if names.insert(file, (module, name.to_vec())).is_some() {
            return Err(chunk.damaged("two names for one file"));
        }
        rest = rest
            .get((size_of::<NameHead>() + bytes).next_multiple_of(8)..)
            .unwrap_or(&[]);
    }
    Ok(false)
}

fn header<S: Source + ?Sized>(source: &S) -> Result<Process, TraceError> {
    let mut page = [0_u8; size_of::<Header>()];
    let version = read_header(source, &mut page)?;
    let text = |at: usize, length: usize, most: usize| {
        let length = (word(&page, length) as usize).min(most);
        page[at..at + length].to_vec()
    };
    let region = |offset: usize, bytes: usize, used: usize| Region {
        offset: long(&page, offset),
        bytes: long(&page, bytes),
        used: long(&page, used),
    };
    Ok(Process {
        version,
        pid: word(&page, offset_of!(Header, pid)),
        parent_pid: word(&page, offset_of!(Header, parent_pid)),
        kernel_start: long(&page, offset_of!(Header, kernel_start)),
        clock: word(&page, offset_of!(Header, clock)),
        ticks_per_second: long(&page, offset_of!(Header, ticks_per_second)),
        start_ticks: long(&page, offset_of!(Header, start_ticks)),
        start_unix_ns: long(&page, offset_of!(Header, start_unix_ns)),
        end_kind: word(&page, offset_of!(Header, end_kind)),
        end_status: word(&page, offset_of!(Header, end_status)) as i32,
        end_ticks: long(&page, offset_of!(Header, end_ticks)),
        threads: word(&page, offset_of!(Header, threads)),
        flags: long(&page, offset_of!(Header, flags)),
        lost: std::array::from_fn(|kind| long(&page, offset_of!(Header, lost) + 8 * kind)),
        executable: text(
            offset_of!(Header, executable),
            offset_of!(Header, executable_bytes),
            EXECUTABLE_BYTES,
        ),
        command: text(
            offset_of!(Header, command),
            offset_of!(Header, command_bytes),
            COMMAND_BYTES,
        ),
        note: text(
            offset_of!(Header, note),
            offset_of!(Header, note_bytes),
            NOTE_BYTES,
        ),
        unseen: unseen(&page),
        classes: std::array::from_fn(|class| {
            let at = offset_of!(Header, classes) + 8 * CLASS_SUMS * class;
            std::array::from_fn(|sum| long(&page, at + 8 * sum))
        }),
        main: region(
            offset_of!(Header, main_offset),
            offset_of!(Header, main_bytes),
            offset_of!(Header, main_used),
        ),
        segments: region(
            offset_of!(Header, segments_offset),
            offset_of!(Header, segments_bytes),
            offset_of!(Header, segments_used),
        ),
    })
}

fn unseen(page: &[u8]) -> Option<[i64; 2]> {
    let side = |of: usize, side: usize| long(page, of + 8 * side);
    let beyond = |place| {
        let (kernel, recorded) = (
            side(offset_of!(Header, kernel_bytes), place),
            side(offset_of!(Header, recorded_bytes), place),
        );
        kernel.wrapping_sub(recorded) as i64
    };
    (long(page, offset_of!(Header, is_held)) == 1).then(|| [beyond(0), beyond(1)])
}

/// Fills `page` with a header that is whole and of a known version, which it returns.
fn read_header<S: Source + ?Sized>(
    source: &S,
    page: &mut [u8; size_of::<Header>()],
) -> Result<u32, TraceError> {
    let got = source.read_at(0, page)?;
    if got < MAGIC.len() + 4 || page[..MAGIC.len()] != MAGIC {
        return Err(TraceError::NotALog);
    }
    let version = word(page, offset_of!(Header, version));
    if version == 0 || version > VERSION {
        return Err(TraceError::NewerVersion {
            found: version,
            known: VERSION,
        });
    }
    let damaged = |reason| TraceError::Damaged { offset: 0, reason };
    if got < page.len() {
        return Err(damaged("the file ends within its header"));
    }
    let fixed = &page[..offset_of!(Header, checksum)];
    if crc32fast::hash(fixed) != word(page, offset_of!(Header, checksum)) {
        return Err(damaged("the header's checksum does not match"));
    }
    if version >= 2 {
        same_calls(
            long(page, offset_of!(Header, calls)),
            long(page, offset_of!(Header, calls_checksum)),
        )?;
    }
    Ok(version)
}

/// The list is append only: one that was shorter gives each of its calls the number that it has now.
fn same_calls(count: u64, checksum: u64) -> Result<(), TraceError> {
    let same = usize::try_from(count)
        .is_ok_and(|count| count <= CALLS.len() && calls::checksum(count) == checksum);
    let (found, known) = (count, CALLS.len());
    same.then_some(())
        .ok_or(TraceError::OtherCalls { found, known })
}

/// The 16 bits at `at`, 0 beyond the end.
pub(super) fn half(bytes: &[u8], at: usize) -> u16 {
    let part = bytes.get(at..).and_then(<[u8]>::first_chunk);
    part.map_or(0, |part| u16::from_le_bytes(*part))
}

/// The 32 bits at `at`, 0 beyond the end.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    let part = bytes.get(at..).and_then(<[u8]>::first_chunk);
    part.map_or(0, |part| u32::from_le_bytes(*part))
}

/// The 64 bits at `at`, 0 beyond the end.
pub(super) fn long(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..).and_then(<[u8]>::first_chunk);
    part.map_or(0, |part| u64::from_le_bytes(*part))
}

/// Why a log could not be read.
#[derive(Debug)]
pub enum TraceError {
    /// The system refused.
    Io(std::io::Error),
    /// The first bytes are not those of a log.
    NotALog,
    /// Written by a later leadline.
    NewerVersion { found: u32, known: u32 },
    /// The writer's list of calls is no beginning of this one: its numbers would be other calls' names.
    OtherCalls { found: u64, known: usize },
    /// The bytes at this offset cannot be what the tracer wrote.
    Damaged { offset: u64, reason: &'static str },
}

impl fmt::Display for TraceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(out, "{error}"),
            Self::NotALog => write!(
                out,
                "this is no trace log of leadline (its first bytes differ)"
            ),
            Self::NewerVersion { found, known } => write!(
                out,
                "the trace log has version {found}; this leadline reads up to version {known}: use a newer leadline"
            ),
            Self::OtherCalls { found, known } => write!(
                out,
                "the trace log numbers its calls by another list ({found} calls; this leadline's has {known}), as the \
                 tracer's library and the extension are of different builds: install leadline anew and trace again, \
                 or read the log with the leadline that wrote it"
            ),
            Self::Damaged { offset, reason } => {
                write!(out, "the trace log is damaged at byte {offset}: {reason}")
            }
        }
    }
}

impl std::error::Error for TraceError {}

impl From<std::io::Error> for TraceError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}
