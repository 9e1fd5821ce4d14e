//! Runs one replay: threads, deadline, signals, record, summary. A thread that the kernel does not give back is
//! named and left behind.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use leadline_record::{Histograms, Interval, RecordError, Writer};
use serde_json::{Value, json};

use super::files::OpenFiles;
use super::job::ReplayJob;
use super::script::{Class, Script};
use super::summary;
use super::thread::{self, Lap};
use crate::Interrupts;
use crate::context::lock;
use crate::error::{EngineError, Failure};
use crate::histogram;
use crate::metadata::Part;
use crate::pattern::Pattern;
use crate::progress::Progress;
use crate::sys::clock::{Clock, unix_ns};
use crate::sys::process::die_with_parent;

/// How often signals, the deadline and what threads handed over are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// What the call that each thread is in gets to end after a stop.
const DRAIN_AFTER_DEADLINE: Duration = Duration::from_millis(1000);
const DRAIN_AFTER_SIGNAL: Duration = Duration::from_secs(5);
/// A thread that hands over later than this has its part written as a supplement.
const PATIENCE_NS: u64 = 1_000_000_000;

/// One thread as others see it.
#[derive(Default)]
#[repr(align(128))]
pub struct Hand {
    pub parts: Mutex<BTreeMap<(u32, Class), Part>>,
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
    stop: AtomicBool,
    origin_ns: AtomicU64,
    failure: Mutex<Option<Failure>>,
    ready: Mutex<usize>,
    all_ready: Condvar,
    rung: Mutex<bool>,
    bell: Condvar,
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
            stop: AtomicBool::new(false),
            // Until the start it is always now.
            origin_ns: AtomicU64::new(u64::MAX),
            failure: Mutex::new(None),
            ready: Mutex::new(0),
            all_ready: Condvar::new(),
            rung: Mutex::new(false),
            bell: Condvar::new(),
        }
    }

    /// Nanoseconds since the trial's start.
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        let origin_ns = self.origin_ns.load(Ordering::Relaxed);
        self.clock.now_ns().saturating_sub(origin_ns)
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

    /// All threads begin when the last is ready: that moment is the trial's start.
    pub fn wait_for_start(&self) {
        let mut ready = lock(&self.ready);
        *ready += 1;
        if *ready == self.hands.len() {
            self.origin_ns.store(self.clock.now_ns(), Ordering::Relaxed);
            self.all_ready.notify_all();
        }
        while *ready < self.hands.len() && !self.is_stopping() {
            let waited = self.all_ready.wait_timeout(ready, LOOK);
            ready = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Wakes the runner.
    pub fn ring(&self) {
        *lock(&self.rung) = true;
        self.bell.notify_one();
    }

    fn wait_for_bell(&self, timeout: Duration) {
        let (mut rung, _) = self
            .bell
            .wait_timeout_while(lock(&self.rung), timeout, |rung| !*rung)
            .unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }
}

/// Runs `job`, writing its record to `record_path` as it goes; returns the summary. Its files are laid out.
///
/// Errors: a script or record that cannot be used, threads that cannot be started. Failures of the trial's own
/// calls are in the summary.
pub fn run(job: ReplayJob, record_path: &Path, signal: Interrupts) -> Result<Value, EngineError> {
    if let Some(parent) = job.parent_pid {
        die_with_parent(parent).map_err(|_| {
            EngineError::Other(format!(
                "the program that asked for this trial (pid {parent}) is gone"
            ))
        })?;
    }
    let script = Script::read(&job.script)?;
    let deadline = Instant::now() + Duration::from_nanos(job.deadline_ns);
    let shared = Arc::new(Shared::new(job, script));
    let header = json!({
        "format": "leadline.record/1",
        "version": env!("CARGO_PKG_VERSION"),
        "clock": shared.clock.name(),
        "created_unix_ns": unix_ns(),
        "job": serde_json::to_value(&shared.job).unwrap_or(Value::Null),
    });
    let record = |error: RecordError| match error {
        RecordError::Io(error) => {
            EngineError::system(&error, "write the trial record", record_path)
        }
        other => EngineError::Other(other.to_string()),
    };
    let mut runner = Runner {
        shared: &shared,
        writer: Writer::create(record_path, &header).map_err(record)?,
        signal,
        deadline,
        stop: None,
        written: 0,
        pending: BTreeMap::new(),
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
            shared.stop.store(true, Ordering::Relaxed);
            return Err(EngineError::Other(format!(
                "cannot start thread {number} of {}: {error}",
                shared.hands.len()
            )));
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Signal,
    Deadline,
    Failure,
}

/// What is summed over threads of one class in one interval, and the bytes of each thread.
type Row = BTreeMap<Class, (Part, Vec<u64>)>;

struct Runner<'a> {
    shared: &'a Shared,
    writer: Writer,
    signal: Interrupts<'a>,
    deadline: Instant,
    stop: Option<(Cause, Instant)>,
    /// Intervals below this one were written.
    written: u32,
    pending: BTreeMap<u32, Row>,
    /// Calls and bytes of each class in the record.
    sums: [(u64, u64); 4],
    progress: Progress,
}

impl Runner<'_> {
    fn work(&mut self) -> Result<(), RecordError> {
        loop {
            let ended = self.laps().iter().all(Option::is_some);
            self.collect(false)?;
            if ended || self.has_given_up() {
                return Ok(());
            }
            self.report();
            self.shared.wait_for_bell(LOOK);
            self.look();
        }
    }

    fn laps(&self) -> Vec<Option<Lap>> {
        self.shared
            .hands
            .iter()
            .map(|hand| *lock(&hand.lap))
            .collect()
    }

    fn look(&mut self) {
        let cause = if self.shared.failure().is_some() {
            Cause::Failure
        } else if (self.signal)().is_some() {
            Cause::Signal
        } else if Instant::now() >= self.deadline {
            Cause::Deadline
        } else {
            return;
        };
        self.shared.stop.store(true, Ordering::Relaxed);
        self.stop.get_or_insert((cause, Instant::now()));
    }

    fn has_given_up(&self) -> bool {
        self.stop.is_some_and(|(cause, at)| {
            at.elapsed()
                >= match cause {
                    Cause::Deadline => DRAIN_AFTER_DEADLINE,
                    Cause::Signal | Cause::Failure => DRAIN_AFTER_SIGNAL,
                }
        })
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
    fn collect(&mut self, all: bool) -> Result<(), RecordError> {
        let interval_ns = self.shared.job.interval_ns;
        let patience_ns = PATIENCE_NS.max(interval_ns);
        let over_ns = self.shared.now_ns().saturating_sub(patience_ns);
        let limit = if all {
            u32::MAX
        } else {
            (over_ns / interval_ns) as u32
        };
        if limit <= self.written {
            return Ok(());
        }
        let threads = self.shared.hands.len();
        for (number, hand) in self.shared.hands.iter().enumerate() {
            for ((index, class), part) in std::mem::take(&mut *lock(&hand.parts)) {
                let row = self.pending.entry(index).or_default();
                let new = || (Part::new(), vec![0; threads]);
                let (sum, bytes) = row.entry(class).or_insert_with(new);
                sum.operations += part.operations;
                sum.bytes += part.bytes;
                sum.busy_ns += part.busy_ns;
                // Bounds are the same for all, so this cannot fail.
                let _ = sum.latencies.add(&part.latencies);
                bytes[number] += part.bytes;
            }
        }
        let later = self.pending.split_off(&limit);
        let ready = std::mem::replace(&mut self.pending, later);
        let last = ready.last_key_value().map(|(index, _)| *index);
        let end_ns = self.shared.now_ns();
        for (index, row) in ready {
            let cut = (all && Some(index) == last).then_some(end_ns);
            for (class, (part, bytes)) in row {
                self.write(index, class, &part, bytes, cut)?;
            }
        }
        if !all {
            self.written = limit;
        }
        Ok(())
    }

    fn write(
        &mut self,
        index: u32,
        class: Class,
        part: &Part,
        threads: Vec<u64>,
        end_ns: Option<u64>,
    ) -> Result<(), RecordError> {
        let interval_ns = self.shared.job.interval_ns;
        let start_ns = u64::from(index) * interval_ns;
        let whole = start_ns + interval_ns;
        let end_ns = end_ns.map_or(whole, |end| end.clamp(start_ns + 1, whole));
        let total = histogram::encode(&part.latencies);
        let sum = &mut self.sums[class as usize];
        *sum = (sum.0 + part.operations, sum.1 + part.bytes);
        self.writer.interval(&Interval {
            index,
            start_ns,
            end_ns,
            measured: true,
            direction: class.name().to_owned(),
            bytes: part.bytes,
            operations: part.operations,
            short: 0,
            in_flight_mean: part.busy_ns as f64 / (end_ns - start_ns) as f64,
            late_ns_max: 0,
            late_ns_sum: 0,
            threads,
            histograms: Histograms {
                submission: histogram::encode(&histogram::empty()),
                completion: total.clone(),
                total,
                intended: None,
            },
        })
    }

    fn finish(mut self, started_unix_ns: u64) -> Result<Value, RecordError> {
        let laps = self.laps();
        self.collect(true)?;
        let hands = &self.shared.hands;
        let stuck_threads = laps
            .iter()
            .zip(hands)
            .filter(|(lap, _)| lap.is_none())
            .map(|(_, hand)| hand.thread_id.load(Ordering::Relaxed))
            .collect();
        let state = match (self.stop, self.shared.failure()) {
            (_, Some(_)) => "error",
            (None | Some((Cause::Failure, _)), None) => "complete",
            (Some((Cause::Signal, _)), None) => "interrupted",
            (Some((Cause::Deadline, _)), None) => "deadline",
        };
        let ending = summary::Ending {
            shared: self.shared,
            state,
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
