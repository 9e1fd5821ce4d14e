//! Runs one replay: threads, deadline, signals, record, summary. A thread that the kernel does not give back is
//! named and left behind.

use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use leadline_record::{RecordError, Writer};
use serde_json::Value;

use super::files::OpenFiles;
use super::job::ReplayJob;
use super::script::{Class, Script};
use super::summary;
use super::thread::{self, Lap};
use crate::Interrupts;
use crate::context::lock;
use crate::error::EngineError;
use crate::opening::{create_record, follow_parent, record_error};
use crate::parts::{Parts, Pending, Upto};
use crate::pattern::Pattern;
use crate::progress::Progress;
use crate::sys::clock::{Clock, unix_ns};
use crate::watch::{Alarm, LOOK, Watch};

/// What the call that each thread is in gets to end after a stop.
const DRAIN_AFTER_DEADLINE: Duration = Duration::from_millis(1000);

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
    fn new(job: ReplayJob, script: Script) -> Self {
        let processes = script.threads.iter().map(|thread| thread.process as usize);
        let processes = processes.max().map_or(0, |last| last + 1);
        let clock = Clock::new();
        Self {
            job,
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

/// Runs `job`, writing its record to `record_path` as it goes; returns the summary. Its files are laid out.
///
/// Errors: a script or record that cannot be used, threads that cannot be started. Failures of the trial's own
/// calls are in the summary.
pub fn run(job: ReplayJob, record_path: &Path, signal: Interrupts) -> Result<Value, EngineError> {
    follow_parent(job.parent_pid)?;
    let script = Script::read(&job.script)?;
    let deadline = Instant::now() + Duration::from_nanos(job.deadline_ns);
    let shared = Arc::new(Shared::new(job, script));
    let record = |error| record_error(error, record_path);
    let watch = Watch::new(&shared.alarm, signal, deadline, DRAIN_AFTER_DEADLINE);
    let mut runner = Runner {
        shared: &shared,
        writer: create_record(record_path, &shared.clock, &shared.job)?,
        watch,
        pending: Pending::new(shared.job.interval_ns),
        sums: [(0, 0); 4],
        progress: Progress::default(),
    };
    let started_unix_ns = unix_ns();
    spawn(&shared)?;
    runner.work().map_err(record)?;
    runner.finish(started_unix_ns).map_err(record)
}

fn spawn(shared: &Arc<Shared>) -> Result<(), EngineError> {
    for number in 0..shared.hands.len() {
        let own = Arc::clone(shared);
        // The handle is dropped: a thread stuck in the kernel must not be joined.
        let spawned = std::thread::Builder::new()
            .name(format!("replay-{number}"))
            .spawn(move || thread::run(&own, number));
        if let Err(error) = spawned {
            shared.alarm.stop();
            return Err(EngineError::Other(format!(
                "cannot start thread {number} of {}: {error}",
                shared.hands.len()
            )));
        }
    }
    Ok(())
}

struct Runner<'a> {
    shared: &'a Shared,
    writer: Writer,
    watch: Watch<'a>,
    pending: Pending<Class>,
    /// Calls and bytes of each class in the record.
    sums: [(u64, u64); 4],
    progress: Progress,
}

impl Runner<'_> {
    fn work(&mut self) -> Result<(), RecordError> {
        loop {
            let ended = self.laps().iter().all(Option::is_some);
            self.collect(Upto::Over)?;
            if ended || self.watch.has_drained() {
                return Ok(());
            }
            self.report();
            self.watch.wait();
        }
    }

    fn laps(&self) -> Vec<Option<Lap>> {
        self.shared
            .hands
            .iter()
            .map(|hand| *lock(&hand.lap))
            .collect()
    }

    fn report(&mut self) {
        let sum = |count: fn(&Hand) -> &AtomicU64| -> u64 {
            let hands = self.shared.hands.iter();
            hands.map(|hand| count(hand).load(Ordering::Relaxed)).sum()
        };
        let (operations, bytes) = (sum(|hand| &hand.operations), sum(|hand| &hand.bytes));
        let share = operations as f64 / self.shared.script.calls.max(1) as f64;
        let now = self.shared.now_ns();
        self.progress.report("run", now, bytes, operations, share);
    }

    /// Takes what threads handed over, and writes the intervals that are over.
    fn collect(&mut self, upto: Upto) -> Result<(), RecordError> {
        let parts = self.shared.hands.iter().map(|hand| &hand.parts);
        for whole in self.pending.collect(parts, self.shared.now_ns(), upto) {
            let sum = &mut self.sums[whole.kind as usize];
            *sum = (sum.0 + whole.part.operations, sum.1 + whole.part.bytes);
            let name = whole.kind.name();
            self.writer.interval(&whole.interval(name))?;
        }
        Ok(())
    }

    fn finish(mut self, started_unix_ns: u64) -> Result<Value, RecordError> {
        let laps = self.laps();
        self.collect(Upto::End)?;
        let hands = &self.shared.hands;
        let stuck_threads = laps
            .iter()
            .zip(hands)
            .filter(|(lap, _)| lap.is_none())
            .map(|(_, hand)| hand.thread_id.load(Ordering::Relaxed))
            .collect();
        let ending = summary::Ending {
            shared: self.shared,
            state: self.watch.state(),
            started_unix_ns,
            laps,
            stuck_threads,
            sums: self.sums,
        };
        let summary = ending.summary();
        self.writer.summary(&summary)?;
        Ok(summary)
    }
}
