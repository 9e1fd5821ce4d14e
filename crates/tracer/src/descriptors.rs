//! From a descriptor to what is open behind it, shared by all threads, and to the thread's record of the file.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use leadline_record::trace::layout::{FileRecord, MODULE_POSIX, MODULE_STDIO, NOTE_OTHER};

use crate::process::{self, Process, lost};
use crate::thread::{CACHED, Thread};
use crate::{paths, sys};

/// Descriptors that are followed; the kernel's default limit of a process.
pub const DESCRIPTORS_MAX: usize = 1 << 20;
/// Open files whose first descriptor is closed and open again, while another still refers to them.
const SPARE: usize = 1 << 16;
pub const DESCRIPTORS_BYTES: usize =
    DESCRIPTORS_MAX * 8 + (DESCRIPTORS_MAX + SPARE) * size_of::<Description>();

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
    /// The file's number by module; 0 where it has none yet.
    files: [AtomicU32; 2],
    pub position: AtomicU64,
    pub stream_position: AtomicU64,
}

/// What a thread found behind a descriptor the last time.
#[repr(C, align(32))]
pub struct Cached {
    /// All bits the other way round: zeros are what no descriptor has.
    key_inverted: u64,
    description: *const Description,
    record: *mut FileRecord,
}

/// An open file, and the calling thread's record of it.
#[derive(Clone, Copy)]
pub struct Place {
    pub description: &'static Description,
    pub record: *mut FileRecord,
}

fn entry(process: &'static Process, fd: usize) -> &'static AtomicU64 {
    let table: *const AtomicU64 = process.descriptors().cast();
    // SAFETY: callers keep `fd` below DESCRIPTORS_MAX, and the arena is never unmapped.
    unsafe { &*table.wrapping_add(fd) }
}

fn description(process: &'static Process, place: usize) -> &'static Description {
    let table = process.descriptors().wrapping_add(DESCRIPTORS_MAX * 8);
    let table: *const Description = table.cast();
    // SAFETY: callers keep `place` below DESCRIPTORS_MAX + SPARE; zeros are a valid description.
    unsafe { &*table.wrapping_add(place) }
}

/// The two modules of one descriptor do not take each other's place.
#[inline(always)]
fn cache_slot(index: usize, module: u16) -> usize {
    (index ^ (usize::from(module) * (CACHED / 2))) % CACHED
}

fn checked(fd: i32) -> Option<usize> {
    usize::try_from(fd).ok().filter(|fd| *fd < DESCRIPTORS_MAX)
}

/// What is behind `fd`, if it is a file; the thread's record of it.
#[inline(always)]
pub fn place(thread: &mut Thread, fd: i32, module: u16) -> Option<Place> {
    let index = fd as u32 as usize;
    if index < DESCRIPTORS_MAX {
        let key = entry(thread.process(), index).load(Relaxed) ^ (u64::from(module) << 63);
        let cached = &thread.cached[cache_slot(index, module)];
        if cached.key_inverted == !key {
            if cached.record.is_null() {
                return None;
            }
            // SAFETY: descriptions and records are never unmapped while the state is valid.
            let description = unsafe { &*cached.description };
            return Some(Place {
                description,
                record: cached.record,
            });
        }
    }
    find(thread, fd, module)
}

#[cold]
#[inline(never)]
fn find(thread: &mut Thread, fd: i32, module: u16) -> Option<Place> {
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
    let record = if is_file(thread, description, fd) {
        record_of(thread, description, module)
    } else {
        process::flag(thread.header(), NOTE_OTHER);
        core::ptr::null_mut()
    };
    thread.cached[cache_slot(index, module)] = Cached {
        key_inverted: !(key ^ (u64::from(module) << 63)),
        description,
        record,
    };
    (!record.is_null()).then_some(Place {
        description,
        record,
    })
}

fn record_of(
    thread: &mut Thread,
    description: &'static Description,
    module: u16,
) -> *mut FileRecord {
    let place = usize::from(module == MODULE_STDIO);
    let mut file = description.files[place].load(Relaxed);
    if file == 0 && module == MODULE_STDIO {
        file = paths::in_module(thread, description.files[0].load(Relaxed), MODULE_STDIO);
        description.files[place].store(file, Relaxed);
    }
    let record = paths::record_of(thread, file);
    // SAFETY: records are never unmapped.
    unsafe { (*record).alignment = description.alignment.load(Relaxed) };
    record
}

fn is_file(thread: &Thread, description: &Description, fd: i32) -> bool {
    if description.kind.load(Relaxed) == UNKNOWN {
        match sys::status(fd) {
            Some(status) => learn(description, &status),
            None => return false,
        }
    }
    let _ = thread;
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
        file = paths::number_of_text(thread, length, MODULE_POSIX);
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
        let spare = DESCRIPTORS_MAX..DESCRIPTORS_MAX + SPARE;
        spare.into_iter().find(|place| claim(process, *place))?
    };
    let found = description(process, place);
    let serial = found.serial.fetch_add(1, Relaxed) & 0x7fff_ffff;
    found.kind.store(UNKNOWN, Relaxed);
    found.flags.store(flags, Relaxed);
    found.alignment.store(0, Relaxed);
    found.files[0].store(file, Relaxed);
    found.files[1].store(0, Relaxed);
    found.position.store(0, Relaxed);
    found.stream_position.store(0, Relaxed);
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
    let last = (last as usize).min(DESCRIPTORS_MAX - 1);
    // SAFETY: one page of the table at a time; a table that was never touched stays so beyond the open limit.
    let open_max = open_max(process).min(last + 1);
    for index in first as usize..open_max {
        if entry(process, index).load(Relaxed) != 0 {
            release(process, entry(process, index).swap(0, AcqRel));
        }
    }
}

/// One past the highest descriptor that can be open: the kernel's table is no larger than the limit was.
fn open_max(_process: &'static Process) -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    sys::raw!(SYS_prlimit64, 0, libc::RLIMIT_NOFILE, 0, &raw mut limit);
    usize::try_from(limit.rlim_cur)
        .unwrap_or(DESCRIPTORS_MAX)
        .clamp(1024, DESCRIPTORS_MAX)
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
    let file = description(process, place as usize).files[0].load(Relaxed);
    (file != 0).then_some(file)
}
