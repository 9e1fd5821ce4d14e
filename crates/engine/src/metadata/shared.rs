//! What the threads of a metadata trial share: the step that is on, the flags, and what they hand over.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};
use std::sync::{Condvar, Mutex};

use super::job::MetadataJob;
use super::steps::Step;
use crate::pattern::Pattern;
use crate::sys::clock::Clock;
use crate::sys::process::CpuTime;
use crate::trial::context::lock;
use crate::trial::parts::Parts;
use crate::trial::watch::Alarm;
use crate::volume::names::Operation;

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
    pub parts: Mutex<Parts<Operation>>,
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
    /// Rung when the runner has something to do.
    pub alarm: Alarm,
    pub hands: Vec<Hand>,
    /// The number of the step that is on (from 1); `None` ends the threads.
    step: Mutex<(u64, Option<Step>)>,
    begun: Condvar,
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
            alarm: Alarm::default(),
            hands,
            step: Mutex::new((0, None)),
            begun: Condvar::new(),
        }
    }

    /// Nanoseconds since the trial's start.
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns().saturating_sub(self.origin_ns)
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
}
