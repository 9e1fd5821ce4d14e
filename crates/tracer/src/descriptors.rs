//! From a descriptor to what is open behind it, shared by all threads, and to the thread's record of the file.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use leadline_record::trace::layout::{FileRecord, NOTE_OTHER, SideRecord};

use crate::process::{self, Process, lost};
use crate::thread::{CACHED, Thread};
use crate::{extent, paths, sys};

/// Descriptors that are followed; the kernel's default limit of a process.
pub const DESCRIPTORS_MAX: usize = 1 << 20;
/// Open files whose first descriptor is closed and open again, while another still refers to them.
const SPARE: usize = 1 << 16;

/// What both tables take.
pub fn bytes() -> usize {
    extent::of(DESCRIPTORS_MAX) * 8
        + (extent::of(DESCRIPTORS_MAX) + extent::of(SPARE)) * size_of::<Description>()
}

const UNKNOWN: u32 = 0;
const IS_FILE: u32 = 1;
const IS_OTHER: u32 = 2;

/// Its position is not ours alone to move, or not known: asked of the kernel after each call.
pub const ASK_POSITION: u32 = 1;

/// An open file, as the kernel has it: descriptors that were duplicated share it, and its position.
#[repr(C, align(64))]
pub struct Description {
    references: AtomicU32,
    serial: AtomicU32,
    kind: AtomicU32,
    pub flags: AtomicU32,
    pub alignment: AtomicU32,
    /// The file's number; 0 for none.
    file: AtomicU32,
    pub position: AtomicU64,
}

/// What a thread found behind a descriptor the last time, in one cache line. Zeros hold for what is not known.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub struct Cached {
    key: u64,
    /// Null for what is no file.
    pub record: *mut FileRecord,
    /// The record's; null where it has none yet.
    pub sides: [*mut SideRecord; 2],
    /// Bits of an offset that is not aligned to the file's blocks.
    pub misaligned: u64,
    pub description: *const Description,
    /// The kernel is to be asked for the position after each call.
    pub asks_position: bool,
}

/// An open file, and the calling thread's record of it.
#[derive(Clone, Copy)]
pub struct RecordedFile {
    pub description: &'static Description,
    pub record: *mut FileRecord,
}

fn entry(process: &'static Process, fd: usize) -> &'static AtomicU64 {
    let table: *const AtomicU64 = process.descriptors().cast();
    // SAFETY: callers keep `fd` within the table, and the arena is never unmapped.
    unsafe { &*table.wrapping_add(fd) }
}

fn description(process: &'static Process, place: usize) -> &'static Description {
    let table = process
        .descriptors()
        .wrapping_add(extent::of(DESCRIPTORS_MAX) * 8);
    let table: *const Description = table.cast();
    // SAFETY: callers keep `place` within the table; zeros are a valid description.
    unsafe { &*table.wrapping_add(place) }
}

fn checked(fd: i32) -> Option<usize> {
    usize::try_from(fd)
        .ok()
        .filter(|fd| *fd < extent::of(DESCRIPTORS_MAX))
}

/// What is behind `fd`, if it is a file; the thread's record of it.
#[inline(always)]
pub fn place(thread: &mut Thread, fd: i32) -> Option<RecordedFile> {
    match known(thread, fd) {
        Some(cached) if !cached.record.is_null() => Some(RecordedFile {
            // SAFETY: set where the record is, and descriptions are never unmapped.
            description: unsafe { &*cached.description },
            record: cached.record,
        }),
        _ => find(thread, fd),
    }
}

/// What the thread found behind `fd`, if that is still so; without a record it is nothing or no file.
#[inline(always)]
pub fn known(thread: &Thread, fd: i32) -> Option<&Cached> {
    let index = fd as u32 as usize;
    if index >= thread.descriptors_max as usize {
        return None;
    }
    // SAFETY: within the table, which is never unmapped.
    let key = unsafe { &*thread.descriptors.wrapping_add(index) }.load(Relaxed);
    let cached = &thread.cached[index % CACHED];
    (cached.key == key).then_some(cached)
}

/// A side of the record has just been begun.
pub fn keep_side(thread: &mut Thread, fd: i32, record: *mut FileRecord, direction: usize) {
    let cached = &mut thread.cached[fd as u32 as usize % CACHED];
    if cached.record == record && !record.is_null() {
        // SAFETY: records are never unmapped, and this one is the thread's.
        cached.sides[direction] = unsafe { side_of(record, direction) };
    }
}

/// A record's side, null where it has none yet.
#[inline(always)]
pub unsafe fn side_of(record: *const FileRecord, direction: usize) -> *mut SideRecord {
    // SAFETY: promised by the caller.
    core::ptr::with_exposed_provenance_mut(unsafe { (*record).sides[direction] } as usize)
}

#[inline(never)]
fn find(thread: &mut Thread, fd: i32) -> Option<RecordedFile> {
    // Programs write to pipes and sockets, too, and wait for these.
    if known(thread, fd).is_some_and(|cached| cached.key != 0 && cached.record.is_null()) {
        return None;
    }
    look_up(thread, fd)
}

#[cold]
#[inline(never)]
fn look_up(thread: &mut Thread, fd: i32) -> Option<RecordedFile> {
    let process = thread.process();
    let Some(index) = checked(fd) else {
        if fd >= 0 {
            thread.lost(lost::DESCRIPTORS);
        }
        return None;
    };
    let mut key = entry(process, index).load(Acquire);
    if key == 0 {
        key = adopt(thread, fd)?;
    }
    let description = description(process, (key as u32 - 1) as usize);
    let record = if is_file(description, fd) {
        record_of(thread, description)
    } else {
        process::flag(thread.header(), NOTE_OTHER);
        core::ptr::null_mut()
    };
    let side = |direction| {
        if record.is_null() {
            return core::ptr::null_mut();
        }
        // SAFETY: records are never unmapped, and this one is the thread's.
        unsafe { side_of(record, direction) }
    };
    // Block sizes are powers of two; an unknown one (0) aligns everything.
    let alignment = description.alignment.load(Relaxed);
    thread.cached[index % CACHED] = Cached {
        key,
        record,
        sides: [side(0), side(1)],
        misaligned: u64::from(alignment.saturating_sub(1)),
        description,
        asks_position: description.flags.load(Relaxed) & ASK_POSITION != 0,
    };
    (!record.is_null()).then_some(RecordedFile {
        description,
        record,
    })
}

fn record_of(thread: &mut Thread, description: &'static Description) -> *mut FileRecord {
    let record = paths::record_of(thread, description.file.load(Relaxed));
    // SAFETY: records are never unmapped.
    unsafe { (*record).alignment = description.alignment.load(Relaxed) };
    record
}

fn is_file(description: &Description, fd: i32) -> bool {
    if description.kind.load(Relaxed) == UNKNOWN {
        match sys::status(fd) {
            Some(status) => learn(description, &status),
            // What has a path is a file most likely, when the kernel may not be asked.
            None => return process::is_quiet() && description.file.load(Relaxed) != 0,
        }
    }
    description.kind.load(Relaxed) == IS_FILE
}

fn learn(description: &Description, status: &libc::stat) {
    let kind = match status.st_mode & libc::S_IFMT {
        libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK => IS_FILE,
        _ => IS_OTHER,
    };
    description
        .alignment
        .store(status.st_blksize as u32, Relaxed);
    description.kind.store(kind, Relaxed);
}

/// The program has asked the kernel what is behind a descriptor.
pub fn told(thread: &Thread, fd: i32, status: &libc::stat) {
    let process = thread.process();
    let key = checked(fd).map_or(0, |index| entry(process, index).load(Acquire));
    if key != 0 {
        let description = description(process, (key as u32 - 1) as usize);
        if description.kind.load(Relaxed) == UNKNOWN {
            learn(description, status);
        }
    }
}

/// A descriptor that was open before us, or was opened by a way that we do not see.
fn adopt(thread: &mut Thread, fd: i32) -> Option<u64> {
    let status = sys::status(fd)?;
    let mut file = 0;
    let regular = matches!(
        status.st_mode & libc::S_IFMT,
        libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK
    );
    if regular {
        let length = paths::of_descriptor(&mut thread.path, fd);
        file = paths::number_of_text(thread, length);
    }
    let key = insert(thread.process(), fd, file, ASK_POSITION)?;
    let description = description(thread.process(), (key as u32 - 1) as usize);
    learn(description, &status);
    description
        .position
        .store(sys::position(fd).unwrap_or(0), Relaxed);
    Some(key)
}

/// A file was opened.
pub fn opened(thread: &Thread, fd: i32, file: u32, flags: i32) {
    let ask = if flags & libc::O_APPEND != 0 {
        ASK_POSITION
    } else {
        0
    };
    if insert(thread.process(), fd, file, ask).is_none() {
        thread.lost(lost::DESCRIPTORS);
    }
}

fn insert(process: &'static Process, fd: i32, file: u32, flags: u32) -> Option<u64> {
    let index = checked(fd)?;
    release(process, entry(process, index).swap(0, AcqRel));
    let place = if claim(process, index) {
        index
    } else {
        let first = extent::of(DESCRIPTORS_MAX);
        (first..first + extent::of(SPARE)).find(|place| claim(process, *place))?
    };
    let found = description(process, place);
    let serial = found.serial.fetch_add(1, Relaxed) & 0x7fff_ffff;
    found.kind.store(UNKNOWN, Relaxed);
    found.flags.store(flags, Relaxed);
    found.alignment.store(0, Relaxed);
    found.file.store(file, Relaxed);
    found.position.store(0, Relaxed);
    let key = u64::from(serial) << 32 | (place as u64 + 1);
    entry(process, index).store(key, Release);
    Some(key)
}

fn claim(process: &'static Process, place: usize) -> bool {
    let references = &description(process, place).references;
    references.load(Relaxed) == 0 && references.compare_exchange(0, 1, AcqRel, Relaxed).is_ok()
}

fn release(process: &'static Process, key: u64) {
    if key != 0 {
        let place = (key as u32 - 1) as usize;
        description(process, place).references.fetch_sub(1, AcqRel);
    }
}

/// A descriptor was closed.
pub fn closed(process: &'static Process, fd: i32) {
    if let Some(index) = checked(fd) {
        release(process, entry(process, index).swap(0, AcqRel));
    }
}

/// All descriptors of a range were closed.
pub fn closed_range(process: &'static Process, first: u32, last: u32) {
    let last = (last as usize).min(extent::of(DESCRIPTORS_MAX) - 1);
    // SAFETY: one page of the table at a time; a table that was never touched stays so beyond the open limit.
    let open_max = open_max().min(last + 1);
    for index in first as usize..open_max {
        if entry(process, index).load(Relaxed) != 0 {
            release(process, entry(process, index).swap(0, AcqRel));
        }
    }
}

/// One past the highest descriptor that can be open: the kernel's table is no larger than the limit was.
fn open_max() -> usize {
    sys::limit(libc::RLIMIT_NOFILE).clamp(1024, extent::of(DESCRIPTORS_MAX))
}

/// A descriptor was duplicated.
pub fn duplicated(process: &'static Process, from: i32, to: i32) {
    let (Some(source), Some(target)) = (checked(from), checked(to)) else {
        return;
    };
    if source == target {
        return;
    }
    release(process, entry(process, target).swap(0, AcqRel));
    let key = entry(process, source).load(Acquire);
    if key != 0 {
        description(process, (key as u32 - 1) as usize)
            .references
            .fetch_add(1, AcqRel);
        entry(process, target).store(key, Release);
    }
}

/// The POSIX number of the file behind a descriptor, if it is known.
pub fn file_of(process: &'static Process, fd: i32) -> Option<u32> {
    let key = entry(process, checked(fd)?).load(Acquire);
    let place = (key as u32).checked_sub(1)?;
    let file = description(process, place as usize).file.load(Relaxed);
    (file != 0).then_some(file)
}
