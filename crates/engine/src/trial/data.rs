//! The trial of a job that reads and writes, in the runner's hands.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use leadline_record::{RecordError, Writer};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::collector::uses;
use super::collector::{Collector, Sums, Totals};
use super::context::{Context, Hand, ThreadEnd};
use super::meeting::Meeting;
use super::runner::{self, Crew, Ending, Progress, Runner, Terms, ThreadRow, Trial, threads_json};
use super::watch::Alarm;
use crate::Interrupts;
use crate::blocks::ledger::Ledger;
use crate::error::EngineError;
use crate::io::Direction;
use crate::job::Job;
use crate::sync::lock;
use crate::sys::clock::Clock;
use crate::sys::process::{CpuTime, process_cpu};

/// What operations in flight get to end after the deadline.
pub(crate) const DRAIN_AFTER_DEADLINE: Duration = Duration::from_millis(500);
/// What a thread gets to notice that it should give up.
const GIVE_UP: Duration = Duration::from_millis(500);

/// Runs `job`, writing its record to `record_path` as it goes; returns the summary.
///
/// Errors: a job that cannot be run, a record that cannot be written. Failures of the trial's own I/O are
/// in the summary.
pub fn run(
    job: Job,
    work: Work,
    record_path: &Path,
    meeting: Option<&Meeting>,
    signal: Interrupts,
) -> Result<Value, EngineError> {
    let terms = Terms::accept(job.parent_pid, job.deadline_ns, meeting)?;
    let ledger = ledger_of(&job)?;
    let context = Context::new(job, ledger);
    runner::run(DataCrew { context, work }, terms, record_path, signal)
}

/// What is known of the files of a job that is verified. A trial that does not come to its end leaves no ledger, as
/// nobody knows then what was written.
fn ledger_of(job: &Job) -> Result<Option<Ledger>, EngineError> {
    if !job.verify {
        return Ok(None);
    }
    let Some(path) = &job.ledger else {
        return match job.rw.reads() {
            true => Ok(Some(Ledger::laid_out(job))),
            false => Err(EngineError::Job(
                "verify: what a trial writes is read back after it, by a ledger; name a file for ledger, or use \
                 verify: false"
                    .to_owned(),
            )),
        };
    };
    if job.writes_fresh_files() {
        return Ok(Some(Ledger::empty(job)));
    }
    let ledger = Ledger::load(path, job)?;
    ledger.begin_trial();
    if job.rw.writes() {
        std::fs::remove_file(path)
            .map_err(|error| EngineError::system(&error, "remove the ledger", path))?;
    }
    Ok(Some(ledger))
}

/// What each thread does with the job's engine.
pub(crate) type Work = fn(&Context, u32);

struct DataCrew {
    context: Context,
    work: Work,
}

impl Crew for DataCrew {
    const DRAIN_AFTER_DEADLINE: Duration = DRAIN_AFTER_DEADLINE;

    fn job(&self) -> &impl Serialize {
        &self.context.job
    }
    fn clock(&self) -> &Clock {
        &self.context.clock
    }
    fn alarm(&self) -> &Alarm {
        &self.context.alarm
    }
    fn threads(&self) -> usize {
        self.context.hands.len()
    }
    fn threads_in_words(&self) -> String {
        format!("numjobs={}", self.context.job.numjobs)
    }
    fn work(&self, thread: usize) {
        (self.work)(&self.context, thread as u32);
    }
    fn dismiss(&self) {
        self.context.start();
    }
    fn trial(&self, writer: Writer) -> impl Trial {
        DataTrial::new(&self.context, writer)
    }
}

/// Also the greater part of a transfer's.
pub(crate) struct DataTrial<'a> {
    context: &'a Context,
    collector: Collector<'a>,
    origin_ns: u64,
    /// When the runner stopped waiting, ns since the trial's start.
    ended_ns: u64,
    cpu: CpuTime,
    notes: Vec<String>,
}

impl<'a> DataTrial<'a> {
    pub fn new(context: &'a Context, writer: Writer) -> Self {
        Self {
            context,
            collector: Collector::new(context, writer),
            origin_ns: 0,
            ended_ns: 0,
            cpu: CpuTime::default(),
            notes: Vec::new(),
        }
    }

    /// Starts all threads, which are ready.
    pub fn begin(&mut self, runner: &mut Runner) {
        runner.starts();
        self.cpu = process_cpu();
        self.origin_ns = self.context.start();
    }

    /// All threads have ended.
    pub fn count_cpu(&mut self) {
        self.cpu = process_cpu().since(self.cpu);
    }

    /// What a reader of the result should know.
    pub fn note(&mut self, words: String) {
        self.notes.push(words);
    }

    pub fn is_ready(&self) -> bool {
        self.context.hands.iter().all(|hand| lock(&hand.tray).ready)
    }

    fn now_ns(&self) -> u64 {
        self.context.clock.now_ns().saturating_sub(self.origin_ns)
    }

    fn sum(&self, counter: fn(&Hand) -> u64) -> u64 {
        self.context.hands.iter().map(counter).sum()
    }

    /// For the check, and for the next trial on these files.
    fn save_ledger(&self) {
        if let (Some(ledger), Some(path)) = (&self.context.ledger, &self.context.job.ledger)
            && let Err(error) = ledger.save(path)
        {
            runner::fail_engine(&self.context.alarm, &error.to_string());
        }
    }

    fn notes(&self, ends: &[Option<ThreadEnd>], ending: &Ending, done_ns: u64) -> Vec<String> {
        let mut notes = self.notes.clone();
        for hand in &self.context.hands {
            for note in std::mem::take(&mut lock(&hand.tray).notes) {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        notes.extend(ending.notes_on_stuck());
        let abandoned: u32 = ends.iter().flatten().map(|end| end.abandoned).sum();
        if abandoned > 0 {
            notes.push(format!(
                "{abandoned} operations were still in flight when the trial gave up"
            ));
        }
        let ramp_time_ns = self.context.job.ramp_time_ns;
        if ramp_time_ns > 0 && done_ns <= ramp_time_ns {
            notes.push("the job ended within its ramp time: nothing was measured".to_owned());
        }
        notes
    }
}

impl Trial for DataTrial<'_> {
    type End = ThreadEnd;

    fn work(&mut self, runner: &mut Runner) -> Result<(), RecordError> {
        runner.wait_until(self, Self::is_ready);
        self.begin(runner);
        let waited = runner.wait_for_ends(self);
        self.count_cpu();
        waited.map(drop)
    }

    fn ends(&self) -> Vec<Option<ThreadEnd>> {
        let hands = self.context.hands.iter();
        hands.map(|hand| lock(&hand.tray).end).collect()
    }

    fn collect(&mut self) -> Result<(), RecordError> {
        self.collector.collect(self.now_ns())
    }

    fn tell(&self, progress: &mut Progress) {
        let job = &self.context.job;
        let now_ns = self.now_ns();
        let bytes = self.sum(|hand| hand.bytes.load(Ordering::Relaxed));
        let operations = self.sum(|hand| hand.operations.load(Ordering::Relaxed));
        let by_size = if job.time_based {
            0.0
        } else {
            bytes as f64 / job.pass_bytes() as f64
        };
        let by_time = match job.runtime_ns {
            0 => 0.0,
            runtime => now_ns as f64 / (job.ramp_time_ns + runtime) as f64,
        };
        let phase = if now_ns < job.ramp_time_ns {
            "ramp"
        } else {
            "run"
        };
        progress.report(phase, now_ns, bytes, operations, by_size.max(by_time));
    }

    fn abandon(&self) -> Duration {
        self.context.abandon.store(true, Ordering::Relaxed);
        GIVE_UP
    }

    fn close(&mut self, _runner: &Runner) -> Result<(), RecordError> {
        self.ended_ns = self.now_ns();
        if let Some(failure) = lock(&self.context.first_wrong).take() {
            self.context.alarm.fail(failure);
        }
        self.save_ledger();
        Ok(())
    }

    fn finish(
        self,
        ends: &[Option<ThreadEnd>],
        ending: &Ending,
    ) -> Result<(Writer, Value), RecordError> {
        let done = ends.iter().flatten().map(|end| end.done_ns).max();
        let done_ns = if ending.stuck_threads.is_empty() {
            done.unwrap_or(0)
        } else {
            self.ended_ns
        };
        let notes = self.notes(ends, ending, done_ns);
        let measured_to_ns = measured_to_ns(&self.context.job, ending.state, done_ns);
        let (writer, totals, threads) = self.collector.finish(measured_to_ns)?;
        let summary = Summary {
            job: &self.context.job,
            ended_ns: self.ended_ns,
            last_done_ns: done_ns,
            measured_to_ns,
            totals,
            threads,
            ends,
            cpu: self.cpu,
            notes,
        };
        Ok((writer, summary.keys()))
    }
}

/// Where the measured time ends of a trial whose last operation was done at `done_ns`.
///
/// Of an open loop that ran its time it is that time: nothing was due after its last operation, and without the
/// wait for the next one its rate would be above the one that was asked for.
pub fn measured_to_ns(job: &Job, state: &str, done_ns: u64) -> u64 {
    if state == "complete" && job.time_based && job.is_open_loop() {
        return done_ns.max(job.ramp_time_ns + job.runtime_ns);
    }
    done_ns
}

/// What is said of a trial that reads and writes.
pub struct Summary<'a> {
    pub job: &'a Job,
    /// When the runner stopped waiting, ns since the trial's start.
    pub ended_ns: u64,
    /// When the last thread ended, as far as threads came back.
    pub last_done_ns: u64,
    pub measured_to_ns: u64,
    pub totals: Totals,
    pub threads: Vec<Totals>,
    /// `None` for a thread that never came back.
    pub ends: &'a [Option<ThreadEnd>],
    pub cpu: CpuTime,
    pub notes: Vec<String>,
}

impl Summary<'_> {
    /// What it says beyond every summary. Times are ns since the trial's start.
    pub fn keys(&self) -> Value {
        let ends = self.ends.iter().flatten();
        let bytes: u64 = self.totals.all.iter().map(|sums| sums.bytes).sum();
        json!({
            "ramp_ns": self.job.ramp_time_ns.min(self.measured_to_ns),
            "measured_ns": self.measured_to_ns.saturating_sub(self.job.ramp_time_ns),
            "first_done_ns": ends.map(|end| end.done_ns).min().unwrap_or(0),
            "last_done_ns": self.last_done_ns,
            "directions": self.directions(&self.totals.measured),
            "total": self.directions(&self.totals.all),
            "passes": bytes as f64 / self.job.pass_bytes() as f64,
            "threads": self.thread_rows(),
            "pacer": self.pacer(),
            "cpu_user_ns": self.cpu.user_ns,
            "cpu_system_ns": self.cpu.system_ns,
            "verified_blocks": self.totals.verified_blocks,
            "unwritten_blocks_read": self.totals.unwritten_blocks,
            "wrong_blocks": self.totals.wrong_blocks,
            "engine": self.job.engine.name(),
            "notes": self.notes,
        })
    }

    fn directions(&self, sums: &[Sums; 3]) -> Value {
        let mut rows = Map::new();
        for direction in Direction::ALL {
            if !uses(self.job, direction) {
                continue;
            }
            let Sums {
                bytes,
                operations,
                short,
            } = sums[direction as usize];
            let row = match direction {
                Direction::Sync => json!({"operations": operations}),
                _ => json!({"bytes": bytes, "operations": operations, "short": short}),
            };
            rows.insert(direction.name().to_owned(), row);
        }
        Value::Object(rows)
    }

    fn thread_rows(&self) -> Value {
        let sum = |totals: &Totals, field: fn(&Sums) -> u64| -> u64 {
            totals.measured[..2].iter().map(field).sum()
        };
        let row = |(totals, end): (&Totals, &Option<ThreadEnd>)| {
            let end = end.unwrap_or(ThreadEnd {
                done_ns: self.ended_ns,
                ..Default::default()
            });
            ThreadRow {
                bytes: sum(totals, |sums| sums.bytes),
                operations: sum(totals, |sums| sums.operations),
                done_ns: end.done_ns,
                cpu: end.cpu,
                busy_ns: end.cpu.user_ns + end.cpu.system_ns,
                within_ns: end.done_ns,
            }
        };
        threads_json(self.threads.iter().zip(self.ends).map(row))
    }

    fn pacer(&self) -> Value {
        if !self.job.is_open_loop() {
            return Value::Null;
        }
        let late = &self.totals.lateness;
        let operations = late.operations.max(1) as f64;
        json!({
            "late_ns_max": late.max_ns,
            "late_ns_mean": late.sum_ns as f64 / operations,
            "late_share": late.late as f64 / operations,
            "own_late_ns_max": late.own_max_ns,
            "own_late_ns_mean": late.own_sum_ns as f64 / operations,
            "waited_share": late.waited as f64 / operations,
        })
    }
}
