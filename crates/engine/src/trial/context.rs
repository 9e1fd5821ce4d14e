//! What the threads of a trial share: the start, the flags, and the hand-over of intervals to the collector.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use super::collector::{IntervalSet, Schedule};
use super::watch::Alarm;
use crate::blocks::ledger::Ledger;
use crate::error::Failure;
use crate::job::Job;
use crate::pattern::Pattern;
use crate::sync::lock;
use crate::sys::clock::Clock;
use crate::sys::process::CpuTime;

/// How a thread ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadEnd {
    /// When its last operation ended, ns since the trial's start.
    pub done_ns: u64,
    pub cpu: CpuTime,
    /// Operations that the kernel still had when the thread gave up.
    pub abandoned: u32,
}

/// The hand-over of one thread: two sets go round between it and the collector.
#[derive(Debug, Default)]
pub struct Tray {
    pub ready: bool,
    pub notes: Vec<String>,
    pub full: Option<Box<IntervalSet>>,
    pub empty: Option<Box<IntervalSet>>,
    /// All intervals below this one were handed over.
    pub passed: u32,
    pub end: Option<ThreadEnd>,
}

/// One thread as others see it. Aligned so that no two threads write to one cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Hand {
    pub tray: Mutex<Tray>,
    /// Told when the collector has taken a set.
    pub taken: Condvar,
    /// So far, for progress only.
    pub bytes: AtomicU64,
    pub operations: AtomicU64,
}

/// All that the threads share.
#[derive(Debug)]
pub struct Context {
    pub job: Job,
    pub clock: Clock,
    pub pattern: Pattern,
    /// What was written, where it is verified.
    pub ledger: Option<Ledger>,
    /// The first block that was not what was written there.
    pub first_wrong: Mutex<Option<Failure>>,
    pub schedule: Schedule,
    /// Rung when the collector has something to do.
    pub alarm: Alarm,
    /// Do not even wait for what is in flight.
    pub abandon: AtomicBool,
    pub hands: Vec<Hand>,
    origin: Mutex<Option<u64>>,
    started: Condvar,
}

impl Context {
    pub fn new(job: Job, ledger: Option<Ledger>) -> Self {
        let schedule = Schedule::new(&job);
        let pattern = Pattern::of(&job);
        let hands = (0..job.numjobs).map(|_| Hand::default()).collect();
        Self {
            job,
            clock: Clock::new(),
            pattern,
            ledger,
            first_wrong: Mutex::new(None),
            schedule,
            hands,
            alarm: Alarm::default(),
            abandon: AtomicBool::new(false),
            origin: Mutex::new(None),
            started: Condvar::new(),
        }
    }

    pub fn is_abandoned(&self) -> bool {
        self.abandon.load(Ordering::Relaxed)
    }

    /// Starts all threads at once; returns the start on the trial's clock.
    pub fn start(&self) -> u64 {
        let now = self.clock.now_ns();
        *lock(&self.origin) = Some(now);
        self.started.notify_all();
        now
    }

    /// Blocks until `start`.
    pub fn wait_for_start(&self) -> u64 {
        let mut origin = lock(&self.origin);
        loop {
            if let Some(origin) = *origin {
                return origin;
            }
            origin = self
                .started
                .wait(origin)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Hand {
    /// Waits until the collector has taken what lies here. Not in the measured interval.
    pub fn wait_until_taken(&self) {
        let mut tray = lock(&self.tray);
        while tray.empty.is_none() {
            tray = self
                .taken
                .wait(tray)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}
