//! From a path to the number of its file, and to the thread's record of it.
//!
//! A path is what the program said, made absolute; `//` and `/./` are taken out, `..` and links are left alone.
//! Numbers are found in a hash table beside the log; the names themselves are in the log.

mod text;

use core::ffi::{CStr, c_char};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

use leadline_record::trace::layout::{
    CHUNK_NAMES, FILE_OTHERS, FileRecord, MODULE_POSIX, NameHead, PAGE_BYTES, PATH_BYTES_MAX,
};
use text::{absolute, hash_of};

use crate::process::{Process, lost};
use crate::thread::{PATH_ROOM, Thread};
use crate::{environment, machine, sys};

/// Grows with every change of the working directory.
static DIRECTORY_GENERATION: AtomicU32 = AtomicU32::new(1);

/// Bytes of memory for each file that has room in the table.
const MEMORY_BYTES_PER_FILE: usize = 512;
/// After so many calls a record could overflow before long.
pub const OPERATIONS_MAX: u32 = 1 << 31;

/// Files that are in the first table. It is small, so that programs of few files stay in the CPU's caches, and
/// a short one meets few pages that are new.
const NEAR_FILES: usize = 1 << 13;

/// The tables of paths of one process.
#[repr(C)]
pub struct Index {
    /// The first files, then all others.
    tables: [Table; 2],
    files: AtomicPtr<File>,
    files_max: AtomicUsize,
    bytes: AtomicUsize,
    next: AtomicU32,
}

/// A hash table of files' numbers; 0 is an empty slot.
#[repr(C)]
struct Table {
    slots: AtomicPtr<AtomicU32>,
    mask: AtomicUsize,
}

/// One file: where its name is, and the records that threads have of it.
#[repr(C)]
struct File {
    hash: AtomicU64,
    name: AtomicPtr<NameHead>,
    records: AtomicPtr<FileRecord>,
    /// It is in a table: of two threads that begin the same file, one leaves a number that is in none.
    in_table: AtomicU32,
}

impl Index {
    /// What the tables take beside the log.
    pub const fn bytes(memory_bytes: usize) -> usize {
        let files = Self::files_max(memory_bytes);
        let slots = Self::slots(NEAR_FILES) + Self::slots(files);
        slots * size_of::<AtomicU32>() + files * size_of::<File>()
    }

    const fn files_max(memory_bytes: usize) -> usize {
        memory_bytes / MEMORY_BYTES_PER_FILE
    }

    const fn slots(files: usize) -> usize {
        (files * 2).next_power_of_two()
    }

    /// Lays the tables into fresh memory.
    pub fn begin(&self, mut memory: *mut u8, memory_bytes: usize) {
        let files = Self::files_max(memory_bytes);
        let sizes = [Self::slots(NEAR_FILES), Self::slots(files)];
        for (table, slots) in self.tables.iter().zip(sizes) {
            table.slots.store(memory.cast(), Relaxed);
            table.mask.store(slots - 1, Relaxed);
            memory = memory.wrapping_add(slots * size_of::<AtomicU32>());
        }
        self.files.store(memory.cast(), Relaxed);
        self.files_max.store(files, Relaxed);
        self.bytes.store(Self::bytes(memory_bytes), Relaxed);
        self.next.store(FILE_OTHERS + 1, Release);
    }

    /// Empties the tables by hand, where the kernel did not at a fork.
    pub fn empty(&self) {
        let memory = self.tables[0].slots.load(Relaxed);
        if !memory.is_null() {
            sys::advise(memory.cast(), self.bytes.load(Relaxed), libc::MADV_DONTNEED);
        }
    }

    fn file(&self, number: u32) -> Option<&File> {
        let within = (number as usize) < self.files_max.load(Relaxed);
        // SAFETY: within the table; zeros are a valid file.
        within.then(|| unsafe { &*self.files.load(Relaxed).wrapping_add(number as usize) })
    }

    /// The number of a file that is in a table.
    fn find(&self, hash: u64, text: &[u8]) -> Option<u32> {
        let is_far = self.next.load(Relaxed) as usize > NEAR_FILES;
        let tables = self.tables.iter().take(1 + usize::from(is_far));
        tables
            .filter_map(|table| table.find(self, hash, text))
            .next()
    }
}

impl Table {
    fn slot(&self, place: usize) -> &AtomicU32 {
        let place = place & self.mask.load(Relaxed);
        // SAFETY: masked to the table's size; the arena is never unmapped.
        unsafe { &*self.slots.load(Relaxed).wrapping_add(place) }
    }

    fn find(&self, index: &Index, hash: u64, text: &[u8]) -> Option<u32> {
        let mut place = hash as usize;
        loop {
            let number = self.slot(place).load(Acquire);
            let file = index.file(number);
            if number == 0 {
                return None;
            }
            if file.is_some_and(|file| is_named(file, hash, text)) {
                return Some(number);
            }
            place = place.wrapping_add(1);
        }
    }

    /// Puts a number into the first empty slot of its hash, unless the file is there by now; the number that is.
    fn insert(&self, index: &Index, number: u32, hash: u64, text: &[u8]) -> u32 {
        let mut place = hash as usize;
        loop {
            let slot = self.slot(place);
            let Err(other) = slot.compare_exchange(0, number, AcqRel, Acquire) else {
                return number;
            };
            let file = index.file(other);
            if file.is_some_and(|file| is_named(file, hash, text)) {
                return other;
            }
            place = place.wrapping_add(1);
        }
    }
}

/// The working directory has changed.
pub fn directory_changed() {
    DIRECTORY_GENERATION.fetch_add(1, AcqRel);
}

/// The thread's record of a path, relative to a directory's descriptor.
///
/// # Safety
/// `path` is null or a string that the kernel has just read.
pub unsafe fn record(thread: &mut Thread, directory: i32, path: *const c_char) -> *mut FileRecord {
    if path.is_null() {
        return thread.others;
    }
    // SAFETY: promised by the caller.
    if let Some(record) = unsafe { known(thread, directory, path) } {
        return record;
    }
    // SAFETY: promised by the caller.
    let text = unsafe { CStr::from_ptr(path) }.to_bytes();
    let record = find(thread, directory, text);
    keep(thread, directory, path.addr(), text, record);
    record
}

#[inline(never)]
fn find(thread: &mut Thread, directory: i32, text: &[u8]) -> *mut FileRecord {
    let file = number(thread, directory, text);
    record_of(thread, file)
}

/// The number of the file at a path.
pub fn number(thread: &mut Thread, directory: i32, text: &[u8]) -> u32 {
    let length = absolute(thread, directory, text);
    number_of_text(thread, length)
}

/// The record that the thread has, or begins, of a file.
pub fn record_of(thread: &mut Thread, file: u32) -> *mut FileRecord {
    if file == FILE_OTHERS {
        return thread.others;
    }
    let Some(known) = thread.process().index.file(file) else {
        return thread.others;
    };
    let mut record = known.records.load(Acquire);
    while !record.is_null() {
        // SAFETY: records are never unmapped; these words do not change after the record is in the list.
        let (of, next) = unsafe { ((*record).thread, (*record).next) };
        if of == thread.number && !is_used_up(record) {
            return record;
        }
        record = core::ptr::with_exposed_provenance_mut(next as usize);
    }
    let record = thread.new_file(file);
    if record.is_null() {
        thread.lost(lost::FILES);
        return thread.others;
    }
    let mut head = known.records.load(Acquire);
    loop {
        // SAFETY: the record is this thread's.
        unsafe { (*record).next = head.expose_provenance() as u64 };
        match known
            .records
            .compare_exchange_weak(head, record, AcqRel, Acquire)
        {
            Ok(_) => return record,
            Err(other) => head = other,
        }
    }
}

/// Its counts could overflow before long: another one is begun.
#[inline(always)]
pub fn is_used_up(record: *const FileRecord) -> bool {
    // SAFETY: records are never unmapped.
    unsafe { (*record).operations >= OPERATIONS_MAX }
}

/// Forgets what was found, so that a used-up record is replaced.
#[cold]
pub fn forget_found(thread: &mut Thread) {
    forget(thread);
    // SAFETY: zeros are valid, empty entries.
    unsafe { (&raw mut thread.cached).write_bytes(0, 1) };
}

/// The path of a file; None of what found no room.
pub fn name_of(process: &'static Process, file: u32) -> Option<&'static [u8]> {
    let name = process.index.file(file)?.name.load(Acquire);
    // SAFETY: names are written before they can be found here, and are never unmapped.
    (!name.is_null()).then(|| unsafe { text_of(name) })
}

unsafe fn text_of<'a>(name: *const NameHead) -> &'a [u8] {
    // SAFETY: promised by the caller.
    unsafe {
        let bytes = usize::from((*name).bytes);
        core::slice::from_raw_parts(name.wrapping_add(1).cast::<u8>(), bytes)
    }
}

/// The number of the file whose path is the first `length` bytes of the thread's `path`.
pub fn number_of_text(thread: &mut Thread, length: usize) -> u32 {
    let index = &thread.process().index;
    let text = thread.path.get(..length).unwrap_or(&[]);
    let hash = hash_of(text);
    // Programs go over their files more than once in one order, and call more than once on one file.
    for guess in [thread.last_file, thread.last_file + 1] {
        let file = index.file(guess);
        if file.is_some_and(|file| file.in_table.load(Acquire) != 0 && is_named(file, hash, text)) {
            thread.last_file = guess;
            return guess;
        }
    }
    let found = index.find(hash, text);
    thread.last_file = found.unwrap_or_else(|| insert(thread, length, hash));
    thread.last_file
}

fn is_named(file: &File, hash: u64, text: &[u8]) -> bool {
    if file.hash.load(Relaxed) != hash {
        return false;
    }
    // Wanted next, and as far away as the name.
    let records = file.records.load(Relaxed);
    machine::prefetch(records.cast());
    let name = file.name.load(Acquire);
    // SAFETY: a number is in the table only after its name is written.
    !name.is_null() && unsafe { text_of(name) == text }
}

/// Two threads that begin a file each at the very moment when the first table is full may give it two numbers: its
/// calls are then in two rows of one name.
#[cold]
fn insert(thread: &mut Thread, length: usize, hash: u64) -> u32 {
    let process = thread.process();
    let index = &process.index;
    let number = index.next.fetch_add(1, AcqRel);
    let Some(file) = index.file(number) else {
        index.next.fetch_sub(1, AcqRel);
        thread.lost(lost::FILES);
        return FILE_OTHERS;
    };
    let Some(name) = write_name(thread, number, length) else {
        thread.lost(lost::FILES);
        return FILE_OTHERS;
    };
    file.hash.store(hash, Relaxed);
    file.name.store(name, Release);
    let text = thread.path.get(..length).unwrap_or(&[]);
    let table = &index.tables[usize::from(number as usize >= NEAR_FILES)];
    let kept = table.insert(index, number, hash, text);
    if kept == number {
        file.in_table.store(1, Release);
    }
    kept
}

fn write_name(thread: &mut Thread, file: u32, length: usize) -> Option<*mut NameHead> {
    let bytes = (size_of::<NameHead>() + length).next_multiple_of(8) as u32;
    let process = thread.process();
    let name: *mut NameHead = thread
        .names
        .reserve(process, bytes, CHUNK_NAMES, thread.number)
        .cast();
    if name.is_null() {
        return None;
    }
    // SAFETY: reserved room of this size; the text is in the thread's own memory.
    unsafe {
        let text = name.wrapping_add(1).cast::<u8>();
        text.copy_from_nonoverlapping(thread.path.as_ptr(), length);
        *name = NameHead {
            file,
            module: MODULE_POSIX,
            bytes: length as u16,
        };
    }
    thread.names.commit(bytes);
    Some(name)
}

/// The path behind a descriptor, as the kernel knows it; how many bytes.
pub fn of_descriptor(into: &mut [u8; PATH_ROOM], fd: i32) -> usize {
    let mut link = [0_u8; 32];
    let mut text = environment::Text::new(&mut link);
    text.push(b"/proc/self/fd/");
    text.push_number(fd as u64);
    text.push(b"\0");
    let room = into.get_mut(..PATH_BYTES_MAX).unwrap_or(&mut []);
    sys::read_link(&link, room)
}

const PATHS: usize = 16;
const TEXT_BYTES: usize = 128;
/// What is compared at once.
const STEP: usize = 32;

/// The paths of one thread. Zeros are empty ones: no working directory has the generation 0.
#[repr(C)]
pub struct Recent([Path; PATHS]);

/// A path as the program wrote it.
#[repr(C, align(64))]
struct Path {
    address: usize,
    directory: i32,
    generation: u32,
    record: *mut FileRecord,
    /// Of each step, the bytes that belong to the text, its zero byte included, as bits.
    wanted: [u32; TEXT_BYTES / STEP],
    text: Text,
}

/// In cache lines of its own, whatever comes before it.
#[repr(C, align(64))]
struct Text([u8; TEXT_BYTES]);

fn place(address: usize) -> usize {
    ((address as u32).wrapping_mul(0x9e37_79b1) >> 28) as usize % PATHS
}

/// The thread's record of the path at an address, if it is one of these; never for null.
///
/// # Safety
/// `path` is null or a string that the kernel has just read.
#[inline(always)]
pub unsafe fn known(
    thread: &Thread,
    directory: i32,
    path: *const c_char,
) -> Option<*mut FileRecord> {
    let kept = &thread.paths.0[place(path.addr())];
    if kept.address != path.addr()
        || kept.directory != directory
        || kept.generation != DIRECTORY_GENERATION.load(Relaxed)
    {
        return None;
    }
    for (step, wanted) in kept.wanted.iter().enumerate() {
        if *wanted == 0 {
            break;
        }
        // SAFETY: what is in the page of the string's start may be read; `keep` takes no string that leaves it.
        if unsafe { equal(path.cast::<u8>(), &kept.text, step * STEP) } & wanted != *wanted {
            return None;
        }
    }
    Some(kept.record)
}

/// Which of the bytes from `at` on are equal, as bits.
#[inline(always)]
unsafe fn equal(path: *const u8, text: &Text, at: usize) -> u32 {
    const HALF: usize = machine::STEP;
    const { assert!(2 * HALF == STEP) };
    let bits = |offset: usize| {
        let (theirs, ours) = (
            path.wrapping_add(offset),
            text.0.as_ptr().wrapping_add(offset),
        );
        // SAFETY: promised by the caller; the offset is within the text.
        unsafe { machine::equal_bytes(theirs, ours) }
    };
    bits(at) | bits(at + HALF) << HALF
}

/// Keeps a path that was just looked up, unless it may be another file's the next time.
pub fn keep(
    thread: &mut Thread,
    directory: i32,
    address: usize,
    text: &[u8],
    record: *mut FileRecord,
) {
    // A directory's descriptor may be another directory's the next time.
    let lasts = directory == libc::AT_FDCWD || text.first() == Some(&b'/');
    let steps = text.len() / STEP + 1;
    let in_page = address % PAGE_BYTES + steps * STEP <= PAGE_BYTES;
    if !lasts || !in_page || text.is_empty() || text.len() >= TEXT_BYTES {
        return;
    }
    let generation = DIRECTORY_GENERATION.load(Relaxed);
    let kept = &mut thread.paths.0[place(address)];
    kept.text.0[..text.len()].copy_from_slice(text);
    kept.text.0[text.len()] = 0;
    for (step, wanted) in kept.wanted.iter_mut().enumerate() {
        let bytes = (text.len() + 1).saturating_sub(step * STEP).min(STEP);
        *wanted = ((1_u64 << bytes) - 1) as u32;
    }
    (kept.address, kept.directory) = (address, directory);
    (kept.generation, kept.record) = (generation, record);
}

/// Forgets them all.
pub fn forget(thread: &mut Thread) {
    for kept in &mut thread.paths.0 {
        kept.generation = 0;
    }
}
