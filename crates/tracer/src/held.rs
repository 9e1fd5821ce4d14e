//! What the kernel has counted as read and written by this process, held against what was recorded: whatever went past
//! every function of ours is in the difference.
//!
//! Both are looked at where the process says how it ends, so that what it does afterwards is in neither. The kernel's
//! count of a process holds that of children that it has waited for, too: then it is asked thread by thread.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use leadline_record::trace::layout::NOTE_ASYNCHRONOUS;

use crate::environment::{Text, number};
use crate::process::{self, Process};
use crate::sys::{self, raw};
use crate::thread;

/// A process of more threads than that is not asked about: each takes some microseconds.
const TASKS_MAX: usize = 1024;
const OWN: &[u8] = b"/proc/thread-self/io\0";
const ALL: &[u8] = b"/proc/self/io\0";

/// What the kernel had counted before anything could be recorded: the loader's reads. A child of a fork begins with
/// zeros, as the kernel's count does.
#[repr(C)]
pub struct Held {
    before: [AtomicU64; 2],
    /// The same of what ran in this process before, and of children that it had waited for; and these's page faults.
    before_all: [AtomicU64; 2],
    faults_before: AtomicU64,
    /// Of threads that have ended.
    ended: [AtomicU64; 2],
    /// What the tracer has read for itself.
    own: AtomicU64,
    /// The same for the last looks of threads that have ended.
    own_at_ends: AtomicU64,
    /// The kernel does not say.
    unknown: AtomicU64,
}

impl Held {
    /// Looks for the first time.
    pub fn begin(&self) {
        let (Some(mine), Some(all)) = (counted(OWN), counted(ALL)) else {
            self.unknown.store(1, Relaxed);
            return;
        };
        self.faults_before.store(faults_of_children(), Relaxed);
        add(&self.before, mine.bytes);
        add(&self.before_all, all.bytes);
        // What the first look has read is in the second.
        add(&self.before_all, [0_u64.wrapping_sub(mine.length), 0]);
        self.read_by_us(mine.length + all.length);
    }

    pub fn read_by_us(&self, bytes: u64) {
        self.own.fetch_add(bytes, Relaxed);
    }

    /// What the kernel has counted since the beginning, and what of it was the tracer's.
    fn now(&self) -> Option<([u64; 2], u64)> {
        if faults_of_children() != self.faults_before.load(Relaxed) {
            return self.by_thread();
        }
        let own = self.own.load(Relaxed) + self.own_at_ends.load(Relaxed);
        let all = counted(ALL)?;
        self.read_by_us(all.length);
        Some((since(all.bytes, &self.before_all), own))
    }

    fn by_thread(&self) -> Option<([u64; 2], u64)> {
        let own = self.own.load(Relaxed);
        // First, before its count holds what is read for the others.
        let mine = counted(OWN)?;
        let mut sums = mine.bytes;
        let mut length = mine.length;
        let myself = sys::thread_id();
        let mut fits = true;
        each_task(|task| {
            let mut path = [0_u8; 64];
            let mut text = Text::new(&mut path);
            text.push(b"/proc/self/task/");
            text.push(task);
            text.push(b"/io\0");
            if number(task) != Some(u64::from(myself)) {
                // One that has just ended has said so itself.
                if let Some(found) = counted(&path) {
                    length += found.length;
                    for (sum, bytes) in sums.iter_mut().zip(found.bytes) {
                        *sum += bytes;
                    }
                }
            }
        })
        .unwrap_or_else(|| fits = false);
        self.read_by_us(length);
        for (place, sum) in sums.iter_mut().enumerate() {
            *sum += self.ended[place].load(Relaxed);
        }
        fits.then_some((since(sums, &self.before), own))
    }
}

fn since(now: [u64; 2], before: &[AtomicU64; 2]) -> [u64; 2] {
    core::array::from_fn(|side| now[side].saturating_sub(before[side].load(Relaxed)))
}

/// Every child that was waited for has had some: where there are none more, nothing of a child is in any sum.
fn faults_of_children() -> u64 {
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    raw!(SYS_getrusage, libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
    // SAFETY: all-zero bytes are valid, and the kernel has filled it in.
    let usage = unsafe { usage.assume_init() };
    (usage.ru_minflt as u64).wrapping_add(usage.ru_majflt as u64)
}

fn add(to: &[AtomicU64; 2], bytes: [u64; 2]) {
    for (sum, bytes) in to.iter().zip(bytes) {
        sum.fetch_add(bytes, Relaxed);
    }
}

/// The calling thread ends: the kernel will count it among the process's children.
pub fn thread_ends() {
    if let (Some(process), Some(found)) = (process::existing(), counted(OWN)) {
        add(&process.held.ended, found.bytes);
        process.held.own_at_ends.fetch_add(found.length, Relaxed);
    }
}

/// Writes both into the log. Not of asynchronous requests, which the kernel, or threads of the C library, make.
pub fn hold(process: &'static Process) {
    let header = process.header.load(Acquire);
    // SAFETY: the header stays mapped; plain words that only this process writes.
    let flags = unsafe { (&raw const (*header).flags).read_volatile() };
    if process.held.unknown.load(Relaxed) != 0 || flags & NOTE_ASYNCHRONOUS != 0 {
        return;
    }
    let Some((kernel, own)) = process.held.now() else {
        return;
    };
    let recorded = thread::moved(process);
    // SAFETY: as above.
    unsafe {
        (&raw mut (*header).kernel_bytes).write_volatile(kernel);
        (&raw mut (*header).recorded_bytes).write_volatile([recorded[0] + own, recorded[1]]);
        (&raw mut (*header).is_held).write_volatile(1);
    }
}

/// `rchar` and `wchar` of a file of the kernel: bytes that the calls of one thread have read and written, whatever the
/// descriptor. And what it took to read them, which is not yet among them.
struct Counted {
    bytes: [u64; 2],
    length: u64,
}

fn counted(path: &[u8]) -> Option<Counted> {
    let mut text = [0_u8; 256];
    let length = sys::read_file(path, &mut text);
    let mut lines = text.get(..length)?.split(|byte| *byte == b'\n');
    let read = number(lines.next()?.strip_prefix(b"rchar: ")?)?;
    let written = number(lines.next()?.strip_prefix(b"wchar: ")?)?;
    Some(Counted {
        bytes: [read, written],
        length: length as u64,
    })
}

/// The names of all threads; None when there are too many.
fn each_task(mut each: impl FnMut(&[u8])) -> Option<()> {
    // Of struct linux_dirent64: where its own length and the name are.
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let fd = sys::open(b"/proc/self/task\0", libc::O_RDONLY | libc::O_DIRECTORY);
    if fd < 0 {
        return None;
    }
    let mut seen = 0;
    let mut entries = [0_u8; 1024];
    loop {
        let got = raw!(SYS_getdents64, fd, entries.as_mut_ptr(), entries.len());
        let mut rest = entries
            .get(..usize::try_from(got).unwrap_or(0))
            .unwrap_or(&[]);
        if rest.is_empty() {
            break;
        }
        while let Some(low) = rest.get(LENGTH).copied().filter(|length| *length > 0) {
            let high = rest.get(LENGTH + 1).copied().unwrap_or(0);
            let length = usize::from(u16::from_le_bytes([low, high]));
            let name = rest.get(NAME..length).unwrap_or(&[]);
            let name = name.split(|byte| *byte == 0).next().unwrap_or(&[]);
            if number(name).is_some() {
                each(name);
                seen += 1;
            }
            rest = rest.get(length..).unwrap_or(&[]);
        }
        if seen > TASKS_MAX {
            break;
        }
    }
    sys::close(fd);
    (seen <= TASKS_MAX).then_some(())
}
