//! What the threads of a metadata trial share: the step that is on, the flags, and what they hand over.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;

use super::job::{MetadataJob, Operation};
use super::steps::Step;
use crate::context::lock;
use crate::error::Failure;
use crate::histogram::{self, Counts};
use crate::pattern::Pattern;
use crate::sys::clock::Clock;
use crate::sys::process::CpuTime;

/// What one thread did of one operation in one interval.
pub struct Part {
    pub operations: u64,
    pub bytes: u64,
    /// Nanoseconds spent in operations.
    pub busy_ns: u64,
    pub latencies: Histogram<u64>,
}

impl Part {
    /// Nothing yet.
    pub fn new() -> Self {
        Self {
            operations: 0,
            bytes: 0,
            busy_ns: 0,
            latencies: histogram::empty(),
        }
    }

    /// Adds counters, and drains the counts.
    pub fn add(&mut self, operations: u64, bytes: u64, busy_ns: u64, counts: &mut Counts) {
        self.operations += operations;
        self.bytes += bytes;
        self.busy_ns += busy_ns;
        counts.drain_into(&mut self.latencies);
    }
}

/// How a thread fared in a step. Times are ns since the trial's start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lap {
    pub begun_ns: u64,
    pub ended_ns: u64,
    pub operations: u64,
    pub bytes: u64,
    pub cpu: CpuTime,
}

/// One thread as others see it.
#[derive(Default)]
#[repr(align(128))]
pub struct Hand {
    pub parts: Mutex<BTreeMap<(u32, Operation), Part>>,
    /// Its last step, by number, and how it went.
    pub lap: Mutex<Option<(u64, Lap)>>,
    pub operations: AtomicU64,
    pub thread_id: AtomicI32,
    /// True when it has let go of the storage.
    pub gone: AtomicBool,
}

/// All that the threads share.
pub struct Shared {
    pub job: MetadataJob,
    pub clock: Clock,
    pub pattern: Pattern,
    pub origin_ns: u64,
    pub stop: AtomicBool,
    pub hands: Vec<Hand>,
    failure: Mutex<Option<Failure>>,
    /// The number of the step that is on (from 1); `None` ends the threads.
    step: Mutex<(u64, Option<Step>)>,
    begun: Condvar,
    rung: Mutex<bool>,
    bell: Condvar,
}

impl Shared {
    pub fn new(job: MetadataJob) -> Self {
        let clock = Clock::new();
        let hands = (0..job.numjobs).map(|_| Hand::default()).collect();
        Self {
            job,
            clock,
            pattern: Pattern::new(true),
            origin_ns: clock.now_ns(),
            stop: AtomicBool::new(false),
            hands,
            failure: Mutex::new(None),
            step: Mutex::new((0, None)),
            begun: Condvar::new(),
            rung: Mutex::new(false),
            bell: Condvar::new(),
        }
    }

    /// Nanoseconds since the trial's start.
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns().saturating_sub(self.origin_ns)
    }

    #[inline(always)]
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the trial with `failure`; the first one counts.
    pub fn fail(&self, failure: Failure) {
        lock(&self.failure).get_or_insert(failure);
        self.stop.store(true, Ordering::Relaxed);
        self.ring();
    }

    pub fn failure(&self) -> Option<Failure> {
        lock(&self.failure).clone()
    }

    /// Begins step number `number` in all threads.
    pub fn begin(&self, number: u64, step: Option<Step>) {
        *lock(&self.step) = (number, step);
        self.begun.notify_all();
    }

    /// The step after number `last`, once it begins.
    pub fn wait_for_step(&self, last: u64) -> (u64, Option<Step>) {
        let mut step = lock(&self.step);
        while step.0 == last {
            step = self
                .begun
                .wait(step)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        *step
    }

    /// Wakes the runner.
    pub fn ring(&self) {
        *lock(&self.rung) = true;
        self.bell.notify_one();
    }

    /// Waits until someone rings, at most `timeout`.
    pub fn wait_for_bell(&self, timeout: Duration) {
        let rung = lock(&self.rung);
        let (mut rung, _) = self
            .bell
            .wait_timeout_while(rung, timeout, |rung| !*rung)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *rung = false;
    }
}
