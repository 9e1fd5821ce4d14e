//! The process: its log, the memory beside it, and what a fork does to both.
//!
//! All memory that belongs to one process is in an arena that the kernel empties in a child, however the child
//! was made. The child meets zeros and begins a log of its own; the mapping of its parent's log is not inherited,
//! except for the header's page, where a child that cannot begin a log leaves word of it.

use core::mem::offset_of;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use leadline_record::trace::layout::{
    CLOCK_COUNTER, CLOCK_MONOTONIC, COMMAND_BYTES, END_EXIT, END_NONE, EXECUTABLE_BYTES, Header,
    MAGIC, NOTE_BYTES, NOTE_CUT, NOTE_STREAMS, PAGE_BYTES, VERSION,
};
use leadline_record::trace::{CALLS, CALLS_CHECKSUM};

use crate::environment::{self, Settings};
use crate::held::Held;
use crate::hooks::{requests, stream};
use crate::paths::Index;
use crate::sys::{self, raw};
use crate::thread::{self, Thread};
use crate::{clock, delay, descriptors, extent, held, symbols};

const MADV_WIPEONFORK: i32 = 18;
/// A log with less room for its records is not worth having.
const LEAST_BYTES: usize = 16 * PAGE_BYTES;

/// What is known once for the program, and stays true after a fork.
static ARENA: AtomicPtr<Process> = AtomicPtr::new(core::ptr::null_mut());
static STARTED: AtomicU32 = AtomicU32::new(0);
static HEADER: AtomicPtr<Header> = AtomicPtr::new(core::ptr::null_mut());

const NOT_YET: u32 = 0;
const BEGINNING: u32 = 1;
pub const READY: u32 = 2;
const FAILED: u32 = 3;

/// Kinds of loss: places in `Header::lost`.
pub mod lost {
    pub const FILES: usize = 0;
    pub const SEGMENTS: usize = 1;
    pub const NESTED: usize = 2;
    pub const DESCRIPTORS: usize = 3;
    pub const THREADS: usize = 4;
    pub const CHILDREN: usize = 5;
    pub const HISTOGRAMS: usize = 6;
    pub const CALLS: usize = 7;
}

/// The start of the arena. All zero at first and after a fork.
#[repr(C)]
pub struct Process {
    state: AtomicU32,
    /// The file system of the log is full: nothing more is tried.
    pub full: AtomicU32,
    pub header: AtomicPtr<Header>,
    pub pid: AtomicU32,
    pub threads_claimed: AtomicU32,
    pub files: AtomicU32,
    pub segments_wanted: AtomicU32,
    pub held: Held,
    pub index: Index,
}

// A page of its own, so that what follows is aligned.
const PROCESS_BYTES: usize = PAGE_BYTES;
const _: () = assert!(size_of::<Process>() <= PROCESS_BYTES);

impl Process {
    /// The thread states, after this.
    pub fn threads(&self) -> *mut Thread {
        self.part(PROCESS_BYTES).cast()
    }

    /// The tables of descriptors, after the threads.
    pub fn descriptors(&self) -> *mut u8 {
        self.part(PROCESS_BYTES + thread::bytes())
    }

    /// Asynchronous requests, after the descriptors.
    pub fn requests(&self) -> *mut u8 {
        self.part(PROCESS_BYTES + thread::bytes() + descriptors::bytes())
    }

    /// The tables of paths, at the end.
    pub fn tables(&self) -> *mut u8 {
        self.part(fixed_bytes())
    }

    fn part(&self, offset: usize) -> *mut u8 {
        let start = core::ptr::from_ref(self).cast_mut().cast::<u8>();
        start.wrapping_add(offset)
    }
}

fn fixed_bytes() -> usize {
    PROCESS_BYTES + thread::bytes() + descriptors::bytes() + requests::bytes()
}

/// The process's state once its log is there; begins it when asked for the first time.
pub fn ready() -> Option<&'static Process> {
    let process = arena()?;
    match process.state.load(Acquire) {
        READY => Some(process),
        NOT_YET => begin(process),
        _ => None,
    }
}

/// The state if its log is there already.
pub fn existing() -> Option<&'static Process> {
    // SAFETY: the arena is never unmapped, and zeros are a valid Process.
    let process = unsafe { ARENA.load(Acquire).as_ref() }?;
    (process.state.load(Acquire) == READY).then_some(process)
}

fn arena() -> Option<&'static Process> {
    start();
    // SAFETY: the arena is never unmapped, and zeros are a valid Process.
    unsafe { ARENA.load(Acquire).as_ref() }
}

/// The program has told the kernel which calls it will make: from now on none is made for recording.
static QUIET: AtomicU32 = AtomicU32::new(0);

pub fn is_quiet() -> bool {
    QUIET.load(Relaxed) != 0
}

pub fn be_quiet(quiet: bool) {
    QUIET.store(u32::from(quiet), Relaxed);
}

/// Streams of the C library are followed.
static IN_STREAMS: AtomicU32 = AtomicU32::new(0);

/// What happens once in a program: settings, real functions, memory. Called early, and again harmlessly.
pub fn start() {
    if STARTED.load(Acquire) != NOT_YET
        || STARTED
            .compare_exchange(NOT_YET, BEGINNING, AcqRel, Relaxed)
            .is_err()
    {
        return;
    }
    symbols::find_all();
    extent::decide();
    if let Some(settings) = environment::read().filter(|_| extent::is_enough()) {
        delay::begin();
        clock::set(settings.ticks_per_second);
        if clock::is_counter() {
            symbols::time_by_counter(true);
        }
        let bytes = fixed_bytes() + Index::bytes(settings.memory_bytes);
        let memory = sys::map_memory(bytes);
        if !memory.is_null() {
            sys::advise(memory, bytes, MADV_WIPEONFORK);
            ARENA.store(memory.cast(), Release);
            IN_STREAMS.store(u32::from(stream::inside::take_place()), Relaxed);
            // SAFETY: as in `existing`.
            if let Some(process) = unsafe { ARENA.load(Relaxed).as_ref() } {
                process.held.begin();
            }
        }
    }
    STARTED.store(READY, Release);
}

/// After a fork of a kernel that does not empty the arena: does the same by hand.
pub extern "C" fn after_fork_in_child() {
    // SAFETY: as in `existing`.
    let Some(process) = (unsafe { ARENA.load(Acquire).as_ref() }) else {
        return;
    };
    crate::thread::forget();
    if process.state.load(Relaxed) != NOT_YET {
        sys::advise(
            ARENA.load(Relaxed).cast(),
            fixed_bytes(),
            libc::MADV_DONTNEED,
        );
        process.index.empty();
    }
}

#[cold]
fn begin(process: &'static Process) -> Option<&'static Process> {
    process
        .state
        .compare_exchange(NOT_YET, BEGINNING, AcqRel, Relaxed)
        .ok()?;
    let begun = environment::read().is_some_and(|settings| open_log(process, &settings));
    if !begun {
        note_lost_child();
    }
    process
        .state
        .store(if begun { READY } else { FAILED }, Release);
    begun.then_some(process)
}

/// A child's first word to its parent's log, which it inherited one page of: it has none of its own.
fn note_lost_child() {
    let header = HEADER.load(Acquire);
    if !header.is_null() {
        count(header, lost::CHILDREN);
    }
}

/// Adds one to a kind of loss.
pub fn count(header: *mut Header, kind: usize) {
    let place = header.wrapping_byte_add(offset_of!(Header, lost) + 8 * kind);
    // SAFETY: the place is within the header's page, and only ever changed atomically.
    unsafe { AtomicU64::from_ptr(place.cast()) }.fetch_add(1, Relaxed);
}

/// Takes back one of a kind of loss.
pub fn uncount(header: *mut Header, kind: usize) {
    let place = header.wrapping_byte_add(offset_of!(Header, lost) + 8 * kind);
    // SAFETY: as in `count`.
    unsafe { AtomicU64::from_ptr(place.cast()) }.fetch_sub(1, Relaxed);
}

/// Sets a flag of the header.
pub fn flag(header: *mut Header, bit: u64) {
    // SAFETY: as in `count`.
    let flags = unsafe { AtomicU64::from_ptr(&raw mut (*header).flags) };
    if flags.load(Relaxed) & bit == 0 {
        flags.fetch_or(bit, Relaxed);
    }
}

fn open_log(process: &'static Process, settings: &Settings) -> bool {
    // Opening the log takes milliseconds on a slow disk: both clocks are read before it.
    let begun @ (_, unix_ns) = clock::pair();
    let pid = sys::process_id();
    // A child may begin on a signal handler's stack, which is small. No thread has a state yet.
    // SAFETY: the first thread's state is in the arena, and only this one thread begins.
    let room = unsafe { &mut (*process.threads()).path };
    if !log_path(room, settings.directory(), pid, unix_ns) {
        return false;
    }
    let fd = sys::open(room, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL);
    if fd < 0 {
        return false;
    }
    let (main_bytes, segments_bytes) = fitting(
        pages(settings.memory_bytes - Index::bytes(settings.memory_bytes) / 2),
        pages(settings.segments_bytes),
        sys::limit(libc::RLIMIT_FSIZE),
    );
    let whole = PAGE_BYTES + main_bytes + segments_bytes;
    let sized = main_bytes >= LEAST_BYTES && raw!(SYS_ftruncate, fd, whole) == 0;
    let memory = if sized {
        sys::map_file(fd, whole)
    } else {
        core::ptr::null_mut()
    };
    sys::close(fd);
    if memory.is_null() {
        return false;
    }
    // Nothing is read: without this the kernel reads ahead of the first page, which took 8 ms on ext4.
    sys::advise(memory, whole, libc::MADV_RANDOM);
    if !crate::chunks::populate(memory, PAGE_BYTES) {
        return false;
    }
    sys::advise(
        memory.wrapping_add(PAGE_BYTES),
        whole - PAGE_BYTES,
        libc::MADV_DONTFORK,
    );
    let header: *mut Header = memory.cast();
    // SAFETY: the page is mapped, writable and ours alone.
    unsafe {
        fill(
            &mut *header,
            pid,
            begun,
            main_bytes as u64,
            segments_bytes as u64,
        );
        (*header).kernel_start = kernel_start(room);
        seal(&mut *header);
    };
    process.header.store(header, Release);
    process.pid.store(pid, Relaxed);
    process.index.begin(process.tables(), settings.memory_bytes);
    process
        .segments_wanted
        .store(u32::from(segments_bytes > 0), Relaxed);
    HEADER.store(header, Release);
    true
}

/// Both parts of a log that a program with a limit on the size of its files (`ulimit -f`) may make: growing one
/// beyond it would end the program by SIGXFSZ.
fn fitting(main_bytes: usize, segments_bytes: usize, limit_bytes: usize) -> (usize, usize) {
    let room = pages(limit_bytes.saturating_sub(PAGE_BYTES));
    if main_bytes.saturating_add(segments_bytes) <= room {
        return (main_bytes, segments_bytes);
    }
    let share = if segments_bytes == 0 {
        room
    } else {
        pages(room / 2)
    };
    let main_bytes = main_bytes.min(share);
    (main_bytes, segments_bytes.min(room - main_bytes))
}

fn fill(
    header: &mut Header,
    pid: u32,
    (start_ticks, unix_ns): (u64, u64),
    main_bytes: u64,
    segments_bytes: u64,
) {
    let rate = clock::rate();
    header.magic = MAGIC;
    header.version = VERSION;
    header.clock = if rate == 0 {
        CLOCK_MONOTONIC
    } else {
        CLOCK_COUNTER
    };
    header.ticks_per_second = if rate == 0 { 1_000_000_000 } else { rate };
    header.start_ticks = start_ticks;
    header.start_unix_ns = unix_ns;
    header.calls = CALLS.len() as u64;
    header.calls_checksum = CALLS_CHECKSUM;
    header.pid = pid;
    header.parent_pid = sys::parent_id();
    header.main_offset = PAGE_BYTES as u64;
    header.main_bytes = main_bytes;
    header.segments_offset = PAGE_BYTES as u64 + main_bytes;
    header.segments_bytes = segments_bytes;
    header.executable_bytes = sys::read_link(b"/proc/self/exe\0", &mut header.executable) as u32;
    header.command_bytes = sys::read_file(b"/proc/self/cmdline\0", &mut header.command) as u32;
    let cut = header.executable_bytes as usize >= EXECUTABLE_BYTES
        || header.command_bytes as usize >= COMMAND_BYTES;
    header.flags |= if cut { NOTE_CUT } else { 0 };
    if IN_STREAMS.load(Relaxed) == 0 {
        header.flags |= NOTE_STREAMS;
    }
    read_by_us(header.command_bytes as usize);
    // The last argument's own zero byte separates nothing.
    header.command_bytes = header.command_bytes.saturating_sub(u32::from(!cut));
}

/// The checksum of what does not change any more.
fn seal(header: &mut Header) {
    let fixed = core::ptr::from_ref(header).cast::<u8>();
    // SAFETY: the bytes before the checksum are initialised and have no padding.
    let fixed = unsafe { core::slice::from_raw_parts(fixed, offset_of!(Header, checksum)) };
    header.checksum = crc32fast::hash(fixed);
}

/// Field 22 of /proc/self/stat, after the command in parentheses.
fn kernel_start(text: &mut [u8]) -> u64 {
    let length = sys::read_file(b"/proc/self/stat\0", text);
    read_by_us(length);
    let text = text.get(..length).unwrap_or(&[]);
    let rest = text.rsplit(|byte| *byte == b')').next().unwrap_or(&[]);
    let field = rest.split(|byte| *byte == b' ').nth(20).unwrap_or(&[]);
    environment::number(field).unwrap_or(0)
}

fn pages(bytes: usize) -> usize {
    bytes / PAGE_BYTES * PAGE_BYTES
}

/// `DIRECTORY/PID-NS.lltrace` and a zero byte; false when it is too long.
fn log_path(into: &mut [u8], directory: &[u8], pid: u32, unix_ns: u64) -> bool {
    let mut text = environment::Text::new(into);
    text.push(directory);
    text.push(b"/");
    text.push_number(u64::from(pid));
    text.push(b"-");
    text.push_number(unix_ns);
    text.push(b".lltrace\0");
    text.is_whole()
}

/// The process says how it ends; a later word replaces an earlier one.
pub fn mark_end(kind: u32, status: i32) {
    if crate::thread::is_vfork_child() {
        return;
    }
    let process = if kind == END_EXIT {
        ready()
    } else {
        existing()
    };
    let Some(process) = process else {
        return;
    };
    let header = process.header.load(Acquire);
    // SAFETY: the header stays mapped; plain words that only this process writes.
    unsafe {
        (&raw mut (*header).end_status).write_volatile(status);
        let end = if kind == END_NONE { 0 } else { clock::ticks() };
        (&raw mut (*header).end_ticks).write_volatile(end);
        (&raw mut (*header).end_kind).write_volatile(kind);
    }
    if kind != END_NONE {
        held::hold(process);
    }
}

/// The process does more after it has said how it ends: streams are written out last of all.
pub fn goes_on() {
    let Some(process) = existing() else {
        return;
    };
    let header = process.header.load(Acquire);
    // SAFETY: as in `mark_end`.
    unsafe {
        if (&raw const (*header).end_kind).read_volatile() == END_EXIT
            && !crate::thread::is_vfork_child()
        {
            (&raw mut (*header).end_ticks).write_volatile(clock::ticks());
        }
    }
}

/// The tracer itself has read so much, which the kernel counts as this process's.
pub fn read_by_us(bytes: usize) {
    if crate::thread::is_vfork_child() {
        return;
    }
    // SAFETY: as in `existing`.
    if let Some(process) = unsafe { ARENA.load(Acquire).as_ref() } {
        process.held.read_by_us(bytes as u64);
    }
}

/// Appends a line for the reader of the report, once.
pub fn note(words: &[u8], of: &[u8]) {
    let Some(process) = ready() else {
        return;
    };
    let header = process.header.load(Acquire);
    // SAFETY: the header stays mapped; one thread at a time is likely here, and a torn line harms nobody.
    let header = unsafe { &mut *header };
    let used = (header.note_bytes as usize).min(NOTE_BYTES);
    let mut line = [0_u8; 512];
    let mut text = environment::Text::new(&mut line);
    text.push(words);
    text.push(&of[..of.len().min(400)]);
    text.push(b"\n");
    let line = text.bytes();
    let known = header.note.get(..used).unwrap_or(&[]);
    if known.windows(line.len()).any(|window| window == line) {
        return;
    }
    match header.note.get_mut(used..used + line.len()) {
        Some(room) => {
            room.copy_from_slice(line);
            header.note_bytes = (used + line.len()) as u32;
        }
        None => header.flags |= NOTE_CUT,
    }
}
