//! What the threads of a replay share: the calls, the open files, the start, and what they hand over.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use super::files::OpenFiles;
use super::job::ReplayJob;
use super::script::{Class, Script};
use super::thread::Lap;
use crate::pattern::Pattern;
use crate::sys::clock::Clock;
use crate::sys::directory::OwnDirectory;
use crate::trial::context::lock;
use crate::trial::parts::Parts;
use crate::trial::watch::{Alarm, LOOK};

/// One thread as others see it.
#[derive(Default)]
#[repr(align(128))]
pub struct Hand {
    pub parts: Mutex<Parts<Class>>,
    pub lap: Mutex<Option<Lap>>,
    pub operations: AtomicU64,
    pub bytes: AtomicU64,
    pub thread_id: AtomicI32,
}

/// All that the threads share.
pub struct Shared {
    pub job: ReplayJob,
    pub script: Script,
    /// Where the files are.
    pub place: OwnDirectory,
    pub clock: Clock,
    pub pattern: Pattern,
    pub hands: Vec<Hand>,
    /// By process.
    pub open: Vec<OpenFiles>,
    /// Rung when the runner has something to do.
    pub alarm: Alarm,
    origin_ns: AtomicU64,
    ready: Mutex<usize>,
    all_ready: Condvar,
}

impl Shared {
    pub fn new(job: ReplayJob, script: Script, place: OwnDirectory) -> Self {
        let processes = script.threads.iter().map(|thread| thread.process as usize);
        let processes = processes.max().map_or(0, |last| last + 1);
        let clock = Clock::new();
        Self {
            job,
            place,
            clock,
            pattern: Pattern::new(true),
            hands: script.threads.iter().map(|_| Hand::default()).collect(),
            open: (0..processes).map(|_| OpenFiles::default()).collect(),
            script,
            alarm: Alarm::default(),
            // Until the start it is always now.
            origin_ns: AtomicU64::new(u64::MAX),
            ready: Mutex::new(0),
            all_ready: Condvar::new(),
        }
    }

    /// Nanoseconds since the trial's start.
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        let origin_ns = self.origin_ns.load(Ordering::Relaxed);
        self.clock.now_ns().saturating_sub(origin_ns)
    }

    /// All threads begin when the last is ready: that moment is the trial's start.
    pub fn wait_for_start(&self) {
        let mut ready = lock(&self.ready);
        *ready += 1;
        if *ready == self.hands.len() {
            self.origin_ns.store(self.clock.now_ns(), Ordering::Relaxed);
            self.all_ready.notify_all();
        }
        while *ready < self.hands.len() && !self.alarm.is_stopping() {
            let waited = self.all_ready.wait_timeout(ready, LOOK);
            ready = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
