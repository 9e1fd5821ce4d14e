//! From a path to the number of its file, and to the thread's record of it.
//!
//! A path is what the program said, made absolute; `//` and `/./` are taken out, `..` and links are left alone.
//! Numbers are found in a hash table beside the log; the names themselves are in the log.

use core::ffi::{CStr, c_char};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

use leadline_record::trace::layout::{
    CHUNK_NAMES, FILE_OTHERS, FileRecord, NameHead, PATH_BYTES_MAX,
};

use crate::environment;
use crate::process::lost;
use crate::sys;
use crate::thread::{PATH_ROOM, Thread};

mod recent;
mod text;

pub use recent::{Recent, known};
use text::{absolute, hash_of};

/// Grows with every change of the working directory.
static DIRECTORY_GENERATION: AtomicU32 = AtomicU32::new(1);

/// Bytes of memory for each file that has room in the table.
const MEMORY_BYTES_PER_FILE: usize = 512;
/// After so many calls a record could overflow before long.
pub const OPERATIONS_MAX: u32 = 1 << 31;

/// The table of paths of one process.
#[repr(C)]
pub struct Index {
    slots: AtomicPtr<AtomicU32>,
    mask: AtomicUsize,
    files: AtomicPtr<File>,
    files_max: AtomicUsize,
    bytes: AtomicUsize,
    next: AtomicU32,
}

/// One file: where its name is, and the records that threads have of it.
#[repr(C)]
struct File {
    hash: AtomicU64,
    name: AtomicPtr<NameHead>,
    records: AtomicPtr<FileRecord>,
}

impl Index {
    /// What the table takes beside the log.
    pub const fn bytes(memory_bytes: usize) -> usize {
        let files = Self::files_max(memory_bytes);
        Self::slots(files) * size_of::<AtomicU32>() + files * size_of::<File>()
    }

    const fn files_max(memory_bytes: usize) -> usize {
        memory_bytes / MEMORY_BYTES_PER_FILE
    }

    const fn slots(files: usize) -> usize {
        (files * 2).next_power_of_two()
    }

    /// Lays the table into fresh memory.
    pub fn begin(&self, memory: *mut u8, memory_bytes: usize) {
        let files = Self::files_max(memory_bytes);
        let slots = Self::slots(files);
        self.slots.store(memory.cast(), Relaxed);
        self.mask.store(slots - 1, Relaxed);
        self.files.store(
            memory.wrapping_add(slots * size_of::<AtomicU32>()).cast(),
            Relaxed,
        );
        self.files_max.store(files, Relaxed);
        self.bytes.store(Self::bytes(memory_bytes), Relaxed);
        self.next.store(FILE_OTHERS + 1, Release);
    }

    /// Empties the table by hand, where the kernel did not at a fork.
    pub fn empty(&self) {
        let memory = self.slots.load(Relaxed);
        if !memory.is_null() {
            sys::advise(memory.cast(), self.bytes.load(Relaxed), libc::MADV_DONTNEED);
        }
    }

    fn slot(&self, place: usize) -> &AtomicU32 {
        // SAFETY: masked to the table's size; the arena is never unmapped.
        unsafe {
            &*self
                .slots
                .load(Relaxed)
                .wrapping_add(place & self.mask.load(Relaxed))
        }
    }

    fn file(&self, number: u32) -> Option<&File> {
        let within = (number as usize) < self.files_max.load(Relaxed);
        // SAFETY: within the table; zeros are a valid file.
        within.then(|| unsafe { &*self.files.load(Relaxed).wrapping_add(number as usize) })
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
    recent::keep(thread, directory, path.addr(), text, record);
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
    number_of_text(thread, length, leadline_record::trace::layout::MODULE_POSIX)
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
    recent::forget(thread);
    // SAFETY: zeros are valid, empty entries.
    unsafe { (&raw mut thread.cached).write_bytes(0, 1) };
}

/// The number that a file of one module has in another.
pub fn in_module(thread: &mut Thread, file: u32, module: u16) -> u32 {
    let Some(known) = thread.process().index.file(file) else {
        return FILE_OTHERS;
    };
    let name = known.name.load(Acquire);
    if name.is_null() {
        return FILE_OTHERS;
    }
    // SAFETY: a name's head is followed by its bytes, and neither changes.
    let text = unsafe { text_of(name) };
    let length = text.len();
    if let Some(room) = thread.path.get_mut(..length) {
        room.copy_from_slice(text);
    }
    number_of_text(thread, length, module)
}

unsafe fn text_of<'a>(name: *const NameHead) -> &'a [u8] {
    // SAFETY: promised by the caller.
    unsafe {
        let bytes = usize::from((*name).bytes);
        core::slice::from_raw_parts(name.wrapping_add(1).cast::<u8>(), bytes)
    }
}

/// The number of the file whose path is the first `length` bytes of the thread's `path`.
pub fn number_of_text(thread: &mut Thread, length: usize, module: u16) -> u32 {
    let index = &thread.process().index;
    let text = thread.path.get(..length).unwrap_or(&[]);
    let hash = hash_of(text, module);
    // Programs go over their files more than once in one order, and call more than once on one file.
    for guess in [thread.last_file, thread.last_file + 1] {
        if index
            .file(guess)
            .is_some_and(|file| is_named(file, hash, text, module))
        {
            thread.last_file = guess;
            return guess;
        }
    }
    let mut place = hash as usize;
    loop {
        let number = index.slot(place).load(Acquire);
        if number == 0 {
            break;
        }
        if index
            .file(number)
            .is_some_and(|file| is_named(file, hash, text, module))
        {
            thread.last_file = number;
            return number;
        }
        place = place.wrapping_add(1);
    }
    thread.last_file = insert(thread, length, module, hash, place);
    thread.last_file
}

fn is_named(file: &File, hash: u64, text: &[u8], module: u16) -> bool {
    if file.hash.load(Relaxed) != hash {
        return false;
    }
    let name = file.name.load(Acquire);
    // SAFETY: a number is in the table only after its name is written.
    !name.is_null() && unsafe { (*name).module == module && text_of(name) == text }
}

#[cold]
fn insert(thread: &mut Thread, length: usize, module: u16, hash: u64, mut place: usize) -> u32 {
    let process = thread.process();
    let index = &process.index;
    let next = index.next.fetch_add(1, AcqRel);
    let Some(file) = index.file(next) else {
        index.next.fetch_sub(1, AcqRel);
        thread.lost(lost::FILES);
        return FILE_OTHERS;
    };
    let Some(name) = write_name(thread, next, length, module) else {
        thread.lost(lost::FILES);
        return FILE_OTHERS;
    };
    file.hash.store(hash, Relaxed);
    file.name.store(name, Release);
    loop {
        match index.slot(place).compare_exchange(0, next, AcqRel, Acquire) {
            Ok(_) => return next,
            Err(other) => {
                let text = thread.path.get(..length).unwrap_or(&[]);
                let same = index.file(other);
                if same.is_some_and(|file| is_named(file, hash, text, module)) {
                    return other;
                }
                place = place.wrapping_add(1);
            }
        }
    }
}

fn write_name(thread: &mut Thread, file: u32, length: usize, module: u16) -> Option<*mut NameHead> {
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
            module,
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
