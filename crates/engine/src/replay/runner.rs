//! The trial of a replay, in the runner's hands: what its threads share, and the summary.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use leadline_record::{RecordError, Writer};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::files::OpenFiles;
use super::script::{Class, Script};
use super::script::{Pace, ReplayJob};
use super::thread::{self, Lap};
use crate::error::EngineError;
use crate::pattern::Pattern;
use crate::sync::lock;
use crate::sys::clock::Clock;
use crate::sys::directory::OwnDirectory;
use crate::trial::parts::{Parts, Pending, Upto};
use crate::trial::runner::Progress;
use crate::trial::runner::{self, Crew, Runner, Terms, Trial};
use crate::trial::watch::{Alarm, LOOK};
use crate::trial::{Ending, ThreadRow, threads_json};
use crate::{Interrupts, volume};

/// Runs `job`, writing its record to `record_path` as it goes; returns the summary. Its files are laid out.
///
/// Errors: a script or record that cannot be used, threads that cannot be started. Failures of the trial's own
/// calls are in the summary.
pub fn run(job: ReplayJob, record_path: &Path, signal: Interrupts) -> Result<Value, EngineError> {
    let script = Script::read(&job.script)?;
    let terms = Terms::accept(job.parent_pid, job.deadline_ns, None)?;
    let place = volume::own_directory(&job.directory)?;
    runner::run(Shared::new(job, script, place), terms, record_path, signal)
}

impl Crew for Shared {
    const DRAIN_AFTER_DEADLINE: Duration = Duration::from_millis(1000);
    const THREADS_ARE_CALLED: &'static str = "replay";

    fn job(&self) -> &impl Serialize {
        &self.job
    }
    fn clock(&self) -> &Clock {
        &self.clock
    }
    fn alarm(&self) -> &Alarm {
        &self.alarm
    }
    fn threads(&self) -> usize {
        self.hands.len()
    }
    fn threads_in_words(&self) -> String {
        self.hands.len().to_string()
    }
    fn work(&self, thread: usize) {
        thread::run(self, thread);
    }
    /// Nobody: those that wait for the start look whether the trial goes on.
    fn dismiss(&self) {}
    fn trial(&self, writer: Writer) -> impl Trial {
        ReplayTrial {
            shared: self,
            writer,
            pending: Pending::new(self.job.interval_ns),
            sums: [(0, 0); 4],
        }
    }
}

struct ReplayTrial<'a> {
    shared: &'a Shared,
    writer: Writer,
    pending: Pending<Class>,
    /// Calls and bytes of each class in the record.
    sums: [(u64, u64); 4],
}

impl ReplayTrial<'_> {
    fn sum(&self, count: fn(&Hand) -> &AtomicU64) -> u64 {
        let hands = self.shared.hands.iter();
        hands.map(|hand| count(hand).load(Ordering::Relaxed)).sum()
    }

    /// Takes what threads handed over, and writes the intervals that are over.
    fn take(&mut self, upto: Upto) -> Result<(), RecordError> {
        let parts = self.shared.hands.iter().map(|hand| &hand.parts);
        for whole in self.pending.collect(parts, self.shared.now_ns(), upto) {
            let sum = &mut self.sums[whole.kind as usize];
            *sum = (sum.0 + whole.part.operations, sum.1 + whole.part.bytes);
            let name = whole.kind.name();
            self.writer.interval(&whole.interval(name))?;
        }
        Ok(())
    }
}

impl Trial for ReplayTrial<'_> {
    type End = Lap;

    fn work(&mut self, runner: &mut Runner) -> Result<(), RecordError> {
        runner.wait_for_ends(self).map(drop)
    }

    fn ends(&self) -> Vec<Option<Lap>> {
        let hands = self.shared.hands.iter();
        hands.map(|hand| *lock(&hand.lap)).collect()
    }

    fn collect(&mut self) -> Result<(), RecordError> {
        self.take(Upto::Over)
    }

    fn tell(&self, progress: &mut Progress) {
        let (operations, bytes) = (
            self.sum(|hand| &hand.operations),
            self.sum(|hand| &hand.bytes),
        );
        let share = operations as f64 / self.shared.script.calls.max(1) as f64;
        progress.report("run", self.shared.now_ns(), bytes, operations, share);
    }

    fn close(&mut self, _runner: &Runner) -> Result<(), RecordError> {
        self.take(Upto::End)
    }

    fn finish(self, laps: &[Option<Lap>], ending: &Ending) -> Result<(Writer, Value), RecordError> {
        let summary = Summary {
            shared: self.shared,
            laps,
            sums: self.sums,
        };
        Ok((self.writer, summary.keys(ending)))
    }
}

/// What is said of a replay.
pub struct Summary<'a> {
    pub shared: &'a Shared,
    pub laps: &'a [Option<Lap>],
    /// Calls and bytes of each class, as the record has them.
    pub sums: [(u64, u64); 4],
}

impl Summary<'_> {
    /// What it says beyond every summary. `measured_ns` is from the start to the last call's end.
    pub fn keys(&self, ending: &Ending) -> Value {
        let laps = || self.laps.iter().flatten();
        let sum = |part: fn(&Lap) -> u64| laps().map(part).sum::<u64>();
        let last_done_ns = if ending.stuck_threads.is_empty() {
            laps().map(|lap| lap.done_ns).max().unwrap_or(0)
        } else {
            self.shared.now_ns()
        };
        let directions = self.directions();
        json!({
            "ramp_ns": 0,
            "measured_ns": last_done_ns,
            "first_done_ns": laps().map(|lap| lap.done_ns).min().unwrap_or(0),
            "last_done_ns": last_done_ns,
            "directions": directions,
            "total": directions,
            "replay": {
                "calls": sum(|lap| lap.calls),
                "planned": self.shared.script.calls,
                "differed": sum(|lap| lap.differed),
                "short": sum(|lap| lap.short),
                "opened": sum(|lap| lap.opened),
            },
            "threads": self.thread_rows(),
            "pacer": self.pacer(),
            "cpu_user_ns": sum(|lap| lap.cpu.user_ns),
            "cpu_system_ns": sum(|lap| lap.cpu.system_ns),
            "verified_blocks": 0,
            "unwritten_blocks_read": 0,
            "engine": "replay",
            "notes": ending.notes_on_stuck().collect::<Vec<_>>(),
        })
    }

    /// A replay is late by its own fault only: it waits for nobody but itself.
    fn pacer(&self) -> Value {
        if self.shared.job.pace == Pace::Fast {
            return Value::Null;
        }
        let laps = || self.laps.iter().flatten();
        let calls: u64 = laps().map(|lap| lap.calls).sum();
        let late: u64 = laps().map(|lap| lap.late_sum_ns).sum();
        let mean = late as f64 / calls.max(1) as f64;
        json!({
            "late_ns_max": laps().map(|lap| lap.late_max_ns).max().unwrap_or(0),
            "late_ns_mean": mean,
            "own_late_ns_mean": mean,
        })
    }

    fn directions(&self) -> Value {
        let row = |class: Class| {
            let (operations, bytes) = self.sums[class as usize];
            let laps = self.laps.iter().flatten();
            let io_ns: u64 = laps.map(|lap| lap.io_ns[class as usize]).sum();
            let value =
                json!({"operations": operations, "bytes": bytes, "short": 0, "io_ns": io_ns});
            (class.name().to_owned(), value)
        };
        let used = Class::ALL
            .into_iter()
            .filter(|class| self.sums[*class as usize].0 > 0);
        Value::Object(used.map(row).collect::<Map<_, _>>())
    }

    fn thread_rows(&self) -> Value {
        let row = |lap: &Option<Lap>| {
            let lap = lap.unwrap_or_default();
            ThreadRow {
                bytes: lap.bytes,
                operations: lap.calls,
                done_ns: lap.done_ns,
                cpu: lap.cpu,
                busy_ns: lap.cpu.user_ns + lap.cpu.system_ns,
                within_ns: lap.done_ns,
            }
        };
        threads_json(self.laps.iter().map(row))
    }
}

/// One thread as others see it.
#[derive(Default)]
#[repr(align(128))]
pub struct Hand {
    pub parts: Mutex<Parts<Class>>,
    pub lap: Mutex<Option<Lap>>,
    pub operations: AtomicU64,
    pub bytes: AtomicU64,
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
