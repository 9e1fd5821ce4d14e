//! A thread's state: its counters in the log, what it found last, and the guard against being entered twice.
//!
//! States are reused: a thread that ends leaves its state, with all counts, to a later one.

use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, compiler_fence};

use leadline_record::trace::layout::{
    CHUNK_FILES, CHUNK_HISTOGRAM, CHUNK_THREAD, ChunkHead, FILE_OTHERS, FileRecord,
    HISTOGRAM_BUCKETS, HISTOGRAM_TICKS, Header, PAGE_BYTES, SideRecord, TAG_FILE, TAG_READ,
    TAG_WRITE, ThreadRecord,
};
use leadline_record::trace::{Call, Kind};

use crate::chunks::{self, Cursor, Wanted};
use crate::delay;
use crate::descriptors::{Cached, DESCRIPTORS_MAX};
use crate::extent;
use crate::held;
use crate::machine::current_thread;
use crate::paths::Recent;
use crate::process::{self, Process, lost};
use crate::segments::SegmentCursor;
use crate::sys;

const FREE: u32 = 0;
const IDLE: u32 = 1;
const BUSY: u32 = 2;
/// Left behind by a thread that ended.
const LEFT: u32 = 3;

const THREADS_MAX: usize = 4096;
pub const CACHED: usize = 64;
pub const PATH_ROOM: usize = 8192;
pub const DIRECTORY_ROOM: usize = 4096;

/// What all states take.
pub fn bytes() -> usize {
    extent::of(THREADS_MAX) * size_of::<Thread>()
}

/// One thread's state. Zeros are a valid, free one. What every call needs is in its first lines.
#[repr(C, align(64))]
pub struct Thread {
    pub state: AtomicU32,
    pub number: u32,
    pub descriptors: *const AtomicU64,
    pub descriptors_max: u32,
    pub calls: *mut u64,
    pub segments: SegmentCursor,
    pub histograms: [Histogram; 4],
    /// Bytes read and written, of files and of all else, as the kernel counts them in /proc/PID/io.
    pub moved: [u64; 2],
    /// Spent inside streams: who calls a function that makes them move bytes takes it out of its own time.
    pub inside_ticks: u64,
    pub process: *const Process,
    pub others: *mut FileRecord,
    pub others_sides: [*mut SideRecord; 2],
    pub files: Cursor,
    pub names: Cursor,
    pub id: u32,
    pub cached: [Cached; CACHED],
    /// The file that a path was found to be the last time.
    pub last_file: u32,
    pub paths: Recent,
    pub path: [u8; PATH_ROOM],
    pub directory: [u8; DIRECTORY_ROOM],
    pub directory_bytes: u32,
    pub directory_generation: u32,
    /// The function that is called, plus one, until it makes the system call of its name: 0 for none.
    within: u32,
    /// How long the call that was recorded last is to wait, and of which class it is.
    pub owed_ns: u64,
    pub owed_class: usize,
}

/// Counts of latencies by bucket, and below which latency there is room: 0 until they are there.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Histogram {
    pub below_ticks: u64,
    pub counts: *mut u64,
}

unsafe extern "C" {
    static mut leadline_no_thread: [u8; 64];
    fn leadline_slot_thread() -> *mut *mut Thread;
}

/// What the child of a vfork gets in place of its parent's state, whose thread it runs in.
pub static VFORK_CHILD: AtomicU32 = AtomicU32::new(u32::MAX);

fn vfork_child() -> *mut Thread {
    VFORK_CHILD.as_ptr().cast()
}

/// What a thread has that has no state: its state's word, the only one that is read, is never IDLE.
fn no_thread() -> *mut Thread {
    (&raw mut leadline_no_thread).cast()
}

fn set_current(thread: *mut Thread) {
    // SAFETY: the address is the calling thread's own variable.
    unsafe { leadline_slot_thread().write(thread) };
}

/// After a fork: the state belongs to the parent.
pub fn forget() {
    set_current(no_thread());
}

/// Is this the child of a vfork, which borrows its parent's memory?
pub fn is_vfork_child() -> bool {
    current_thread() == vfork_child()
}

/// Exclusive use of the calling thread's state until it is dropped.
pub struct Entered {
    thread: NonNull<Thread>,
}

/// Enters the thread's state; None when there is nothing to record in, which is counted where it can be.
#[inline(always)]
pub fn enter() -> Option<Entered> {
    enter_idle().or_else(|| enter_first(current_thread()))
}

/// Enters the state that the thread has already, when it is not in use.
#[inline(always)]
pub fn enter_idle() -> Option<Entered> {
    let current = current_thread();
    // SAFETY: a state is never unmapped; in a child of a fork it is all zeros. The places of a thread without a
    // state, and of the child of a vfork, have this one word. While it is IDLE only its thread writes it.
    let (state, word) = unsafe {
        let state = &(*current).state;
        (state, state.as_ptr().read())
    };
    if word == IDLE {
        state.store(BUSY, Relaxed);
        compiler_fence(AcqRel);
        // SAFETY: the variable is never null.
        let thread = unsafe { NonNull::new_unchecked(current) };
        return Some(Entered { thread });
    }
    None
}

#[cold]
#[inline(never)]
fn enter_first(thread: *mut Thread) -> Option<Entered> {
    if thread == vfork_child() {
        return None;
    }
    // SAFETY: as in `enter`.
    if unsafe { &(*thread).state }.load(Relaxed) == BUSY {
        // A signal handler interrupted the recording of a call with one of its own.
        let process = process::existing()?;
        process::count(chunks::header(process), lost::NESTED);
        return None;
    }
    let process = process::ready()?;
    let thread = claim(process)?;
    set_current(thread);
    register_end(thread);
    // SAFETY: the state has just become this thread's.
    unsafe { (*thread).state.store(BUSY, Relaxed) };
    compiler_fence(AcqRel);
    Some(Entered {
        thread: NonNull::new(thread)?,
    })
}

/// The thread calls a function that is recorded itself, or is back from it.
pub fn within(call: Option<Call>) {
    if let Some(mut thread) = enter() {
        thread.within = call.map_or(0, |call| call.number() as u32 + 1);
    }
}

/// Is this system call the one that the function called makes? Once: a signal handler's next is its own.
pub fn is_within(call: Call) -> bool {
    let Some(mut thread) = enter_idle() else {
        return false;
    };
    let found = thread.within == call.number() as u32 + 1;
    if found {
        thread.within = 0;
    }
    found
}

impl core::ops::Deref for Entered {
    type Target = Thread;
    #[inline(always)]
    fn deref(&self) -> &Thread {
        // SAFETY: BUSY keeps all others away from it.
        unsafe { self.thread.as_ref() }
    }
}

impl core::ops::DerefMut for Entered {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Thread {
        // SAFETY: BUSY keeps all others away from it.
        unsafe { self.thread.as_mut() }
    }
}

impl Drop for Entered {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(AcqRel);
        // SAFETY: as in `deref`.
        unsafe { self.thread.as_ref().state.store(IDLE, Relaxed) };
    }
}

fn claim(process: &'static Process) -> Option<*mut Thread> {
    let header = chunks::header(process);
    let taken = (process.threads_claimed.load(Relaxed) as usize).min(extent::of(THREADS_MAX));
    for place in 0..taken {
        let thread = process.threads().wrapping_add(place);
        // SAFETY: within the arena, where zeros are a valid state.
        let state = unsafe { &(*thread).state };
        if state.load(Relaxed) == LEFT
            && state.compare_exchange(LEFT, BUSY, AcqRel, Relaxed).is_ok()
        {
            // SAFETY: it is ours now.
            unsafe { (*thread).id = sys::thread_id() };
            // SAFETY: the state is this thread's alone.
            unsafe { (*thread).segments.leave() };
            count_thread(header);
            return Some(thread);
        }
    }
    let place = process.threads_claimed.fetch_add(1, Relaxed) as usize;
    if place >= extent::of(THREADS_MAX) {
        process.threads_claimed.fetch_sub(1, Relaxed);
        process::count(header, lost::THREADS);
        return None;
    }
    let thread = process.threads().wrapping_add(place);
    // SAFETY: the place was handed out to this thread only.
    unsafe { (*thread).state.store(BUSY, Relaxed) };
    // SAFETY: the state is this thread's alone.
    if furnish(process, unsafe { &mut *thread }, place as u32) {
        count_thread(header);
        return Some(thread);
    }
    // SAFETY: as above. The place stays unused: there is no room in the log for another attempt either.
    unsafe { (*thread).state.store(FREE, Release) };
    process::count(header, lost::CALLS);
    None
}

/// Bytes that all threads have read and written until now.
pub fn moved(process: &'static Process) -> [u64; 2] {
    let taken = (process.threads_claimed.load(Relaxed) as usize).min(extent::of(THREADS_MAX));
    let mut sums = [0_u64; 2];
    for place in 0..taken {
        // SAFETY: within the arena, where zeros are valid; words that their threads may just be changing.
        let moved =
            unsafe { (&raw const (*process.threads().wrapping_add(place)).moved).read_volatile() };
        for (sum, moved) in sums.iter_mut().zip(moved) {
            *sum = sum.wrapping_add(moved);
        }
    }
    sums
}

fn count_thread(header: *mut Header) {
    // SAFETY: the header stays mapped, and this word is only ever changed atomically.
    unsafe { AtomicU32::from_ptr(&raw mut (*header).threads) }.fetch_add(1, Relaxed);
}

/// Counters and the record for what finds no room.
fn furnish(process: &'static Process, thread: &mut Thread, number: u32) -> bool {
    let wanted = Wanted {
        kind: CHUNK_THREAD,
        pages: 1,
        thread: number,
        extra: 0,
    };
    let chunk = chunks::take(process, false, wanted);
    if chunk.is_null() {
        return false;
    }
    thread.calls = chunk.wrapping_add(1).cast();
    thread.process = process;
    thread.descriptors = process.descriptors().cast();
    thread.descriptors_max = extent::of(DESCRIPTORS_MAX) as u32;
    thread.number = number;
    thread.id = sys::thread_id();
    thread.segments.wanted = process.segments_wanted.load(Relaxed) != 0;
    // SAFETY: the chunk's page is resident and ours.
    unsafe { (&raw mut (*chunk).used).write_volatile(size_of::<ThreadRecord>() as u32) };
    thread.others = thread.new_file(FILE_OTHERS);
    if thread.others.is_null() {
        return false;
    }
    for (place, tag) in [TAG_READ, TAG_WRITE].into_iter().enumerate() {
        let side = thread.new_side(FILE_OTHERS, tag);
        if side.is_null() {
            return false;
        }
        thread.others_sides[place] = side;
    }
    true
}

impl Thread {
    #[inline(always)]
    pub fn process(&self) -> &'static Process {
        // SAFETY: set by `furnish`, and the arena is never unmapped.
        unsafe { &*self.process }
    }

    pub fn header(&self) -> *mut Header {
        chunks::header(self.process())
    }

    #[cold]
    pub fn lost(&self, kind: usize) {
        process::count(self.header(), kind);
    }

    /// A new record of a file, null when there is no room.
    pub fn new_file(&mut self, file: u32) -> *mut FileRecord {
        let bytes = size_of::<FileRecord>() as u32;
        let process = self.process();
        let record: *mut FileRecord = self
            .files
            .reserve(process, bytes, CHUNK_FILES, self.number)
            .cast();
        if !record.is_null() {
            // SAFETY: reserved, zeroed room of this size.
            unsafe {
                (*record).tag = TAG_FILE;
                (*record).file = file;
                (*record).thread = self.number;
            }
            self.files.commit(bytes);
        }
        record
    }

    /// A new record of one direction, null when there is no room.
    pub fn new_side(&mut self, file: u32, tag: u32) -> *mut SideRecord {
        let bytes = size_of::<SideRecord>() as u32;
        let process = self.process();
        let record: *mut SideRecord = self
            .files
            .reserve(process, bytes, CHUNK_FILES, self.number)
            .cast();
        if !record.is_null() {
            // SAFETY: reserved, zeroed room of this size.
            unsafe {
                (*record).tag = tag;
                (*record).file = file;
                (*record).thread = self.number;
            }
            self.files.commit(bytes);
        }
        record
    }

    /// The counts of one kind's latencies, null when there is no room.
    #[cold]
    pub fn new_histogram(&mut self, kind: Kind) -> *mut u64 {
        let bytes = size_of::<ChunkHead>() + 8 * HISTOGRAM_BUCKETS;
        let wanted = Wanted {
            kind: CHUNK_HISTOGRAM,
            pages: bytes.div_ceil(PAGE_BYTES) as u16,
            thread: self.number,
            extra: kind as u64,
        };
        let chunk = chunks::take(self.process(), false, wanted);
        if chunk.is_null() {
            return core::ptr::null_mut();
        }
        // SAFETY: the chunk's pages are resident and ours.
        unsafe { (&raw mut (*chunk).used).write_volatile(8 * HISTOGRAM_BUCKETS as u32) };
        let counts = chunk.wrapping_add(1).cast();
        self.histograms[kind as usize] = Histogram {
            // Where calls are followed by class each goes the long way.
            below_ticks: if delay::is_following() {
                0
            } else {
                HISTOGRAM_TICKS
            },
            counts,
        };
        counts
    }
}

/// The key whose destructor tells that a thread ends; -1 where there is none.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Makes the key. One of the first keys of a program needs no memory to be set.
pub fn prepare_ends() {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is valid, and the destructor has the type that is asked for.
    if unsafe { libc::pthread_key_create(&mut key, Some(at_end)) } == 0 {
        KEY.store(key, Relaxed);
    }
}

fn register_end(thread: *mut Thread) {
    let key = KEY.load(Relaxed);
    if key < 32 {
        // SAFETY: the key exists, and keys below 32 are kept in the thread itself.
        unsafe { libc::pthread_setspecific(key, thread.cast()) };
    }
}

unsafe extern "C" fn at_end(thread: *mut c_void) {
    let thread: *mut Thread = thread.cast();
    if current_thread() == thread {
        held::thread_ends();
        set_current(no_thread());
        // SAFETY: a state is never unmapped, and it was this thread's until now.
        unsafe { (*thread).state.store(LEFT, Release) };
    }
}
