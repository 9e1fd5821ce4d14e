//! A causal profile's part in the program: calls on files below given directories are counted by class, and those of
//! one class wait.
//!
//! A call waits after it was made and recorded, so that its own time is the storage's, and with the thread's state let
//! go, so that signals are handled meanwhile as ever. What was really waited is measured: a sleep is always longer than
//! asked. Nothing is added to the way of a call that is not followed: see `Thread::new_histogram`.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use leadline_record::trace::layout::FileRecord;
use leadline_record::trace::{
    CLASS_CALLS, CLASS_TICKS, CLASS_WAITED_NS, Class, Kind, asked_delay, is_below,
};

use crate::environment::{self, BELOW, DELAY};
use crate::process::{self, Process};
use crate::recording::Made;
use crate::sys::{self, raw};
use crate::thread::{Thread, enter_idle};
use crate::{chunks, paths};

static FOLLOWING: AtomicBool = AtomicBool::new(false);
static WAITS_CLASS: AtomicUsize = AtomicUsize::new(usize::MAX);
static WAIT_NS: AtomicU64 = AtomicU64::new(0);

/// Reads what is asked for, once.
pub fn begin() {
    FOLLOWING.store(environment::variable(BELOW).is_some(), Relaxed);
    if let Some((class, wait_ns)) = environment::variable(DELAY).and_then(asked_delay) {
        WAITS_CLASS.store(class as usize, Relaxed);
        WAIT_NS.store(wait_ns, Relaxed);
    }
}

/// Are calls counted by class?
pub fn is_following() -> bool {
    FOLLOWING.load(Relaxed)
}

/// A call went the long way: counts it where its file is followed, and notes what it owes.
#[cold]
#[inline(never)]
pub fn met(thread: &mut Thread, (made, kind): (Made, Kind), end: u64, record: *const FileRecord) {
    if !is_following() || record.is_null() {
        return;
    }
    let process = thread.process();
    // SAFETY: records are never unmapped, and this one is the thread's.
    let file = unsafe { (*record).file };
    let places = environment::variable(BELOW).unwrap_or(&[]);
    if !paths::name_of(process, file).is_some_and(|path| is_below(path, places)) {
        return;
    }
    let class = Class::of(kind, made.result.max(0) as u64) as usize;
    add(process, (class, CLASS_CALLS), 1);
    add(process, (class, CLASS_TICKS), end.wrapping_sub(made.start));
    if class == WAITS_CLASS.load(Relaxed) {
        thread.owed_ns = WAIT_NS.load(Relaxed);
        thread.owed_class = class;
    }
}

/// At its end the call that was recorded waits: it is made before the thread's state is entered, so that it ends after.
pub struct Owed;

impl Drop for Owed {
    #[inline(always)]
    fn drop(&mut self) {
        if is_following() {
            pay();
        }
    }
}

#[cold]
#[inline(never)]
fn pay() {
    let Some(mut thread) = enter_idle() else {
        return;
    };
    let (class, owed_ns) = (thread.owed_class, thread.owed_ns);
    thread.owed_ns = 0;
    drop(thread);
    if owed_ns == 0 {
        return;
    }
    let waited_ns = wait(owed_ns);
    // A handler that came meanwhile may have forked: the child has no such process yet.
    if let Some(process) = process::existing() {
        add(process, (class, CLASS_WAITED_NS), waited_ns);
    }
}

/// Sleeps, whatever signals come; how long it was. Leaves errno alone. Once the program filters its system calls `raw!`
/// makes none, so that next to nothing is waited, which the sums tell.
fn wait(ns: u64) -> u64 {
    let start = sys::clock_ns(libc::CLOCK_MONOTONIC);
    let until = start + ns;
    let until = libc::timespec {
        tv_sec: (until / 1_000_000_000) as i64,
        tv_nsec: (until % 1_000_000_000) as i64,
    };
    let interrupted = -(libc::EINTR as isize);
    let (clock, way) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
    while raw!(SYS_clock_nanosleep, clock, way, &raw const until, 0) == interrupted {}
    sys::clock_ns(libc::CLOCK_MONOTONIC).saturating_sub(start)
}

/// Adds to a sum of a class, by whichever thread.
fn add(process: &'static Process, (class, sum): (usize, usize), amount: u64) {
    let header = chunks::header(process);
    // SAFETY: within the header's page, and only ever changed atomically.
    let place = unsafe { AtomicU64::from_ptr(&raw mut (*header).classes[class][sum]) };
    place.fetch_add(amount, Relaxed);
}
