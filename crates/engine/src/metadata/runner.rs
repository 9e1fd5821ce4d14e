//! The trial of a metadata job, in the runner's hands: step after step, each in all threads, what these share, and the
//! summary, in which an operation takes a direction's place.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use leadline_record::{RecordError, Writer};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::job::MetadataJob;
use super::steps::{self, CONNECT, MAKE_TREE, Step};
use super::thread;
use crate::Interrupts;
use crate::error::EngineError;
use crate::pattern::Pattern;
use crate::sync::lock;
use crate::sys::clock::Clock;
use crate::sys::process::CpuTime;
use crate::trial::parts::{Parts, Pending, Upto};
use crate::trial::runner::Progress;
use crate::trial::runner::{self, Crew, Runner, Terms, Trial};
use crate::trial::watch::{Alarm, DRAIN_AFTER_SIGNAL};
use crate::trial::{Ending, ThreadRow, threads_json};
use crate::volume::names::Operation;

/// Runs `job`, writing its record to `record_path` as it goes; returns the summary.
///
/// Errors: a record that cannot be written, threads that cannot be started. Failures of the trial's own
/// operations are in the summary.
pub fn run(job: MetadataJob, record_path: &Path, signal: Interrupts) -> Result<Value, EngineError> {
    let terms = Terms::accept(job.parent_pid, job.deadline_ns, None)?;
    runner::run(Shared::new(job), terms, record_path, signal)
}

impl Crew for Shared {
    const DRAIN_AFTER_DEADLINE: Duration = Duration::from_millis(1000);

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
        format!("numjobs={}", self.job.numjobs)
    }
    fn work(&self, thread: usize) {
        thread::run(self, thread as u32);
    }
    fn dismiss(&self) {
        self.begin(u64::MAX, None);
    }
    fn trial(&self, writer: Writer) -> impl Trial {
        MetadataTrial {
            shared: self,
            writer,
            number: 0,
            pending: Pending::new(self.job.interval_ns),
            phases: BTreeMap::new(),
            threads: vec![ThreadSum::default(); self.hands.len()],
            passes: 0,
        }
    }
}

struct MetadataTrial<'a> {
    shared: &'a Shared,
    writer: Writer,
    /// Of the step that is on.
    number: u64,
    pending: Pending<Operation>,
    phases: BTreeMap<Operation, Phase>,
    threads: Vec<ThreadSum>,
    passes: u64,
}

impl MetadataTrial<'_> {
    fn do_steps(&mut self, runner: &mut Runner) -> Result<(), RecordError> {
        let job = &self.shared.job;
        let steps = steps::of(job).unwrap_or_default();
        if job.location.is_some() {
            self.do_step(CONNECT, runner)?;
        }
        if !job.reads_laid_out_files() && !runner.watch.has_stopped() {
            self.do_step(MAKE_TREE, runner)?;
        }
        while !runner.watch.has_stopped() {
            for step in &steps {
                if !runner.watch.has_stopped() {
                    self.do_step(*step, runner)?;
                }
            }
            self.passes += u64::from(!runner.watch.has_stopped());
            if !job.time_based || self.measured_ns() >= job.runtime_ns {
                break;
            }
        }
        Ok(())
    }

    /// One step, in all threads; returns when all have ended it, or when those that have not are given up.
    fn do_step(&mut self, step: Step, runner: &mut Runner) -> Result<(), RecordError> {
        self.number += 1;
        self.shared.begin(self.number, Some(step));
        let laps = runner.wait_for_ends(self)?;
        runner.watch.look();
        if step.measured {
            self.add(step.operation, &laps);
        }
        Ok(())
    }

    /// Waits for connections to be closed: storage that a client merely leaves keeps what it held for minutes.
    fn wait_until_gone(&self, runner: &Runner) {
        let gone = |shared: &Shared| {
            let mut hands = shared.hands.iter();
            hands.all(|hand| hand.gone.load(Ordering::Relaxed))
        };
        let until = Instant::now() + DRAIN_AFTER_SIGNAL;
        while !gone(self.shared) && !runner.watch.has_drained() && Instant::now() < until {
            runner.watch.alarm.wait_for_bell();
        }
    }

    fn add(&mut self, operation: Operation, laps: &[Option<Lap>]) {
        let phase = self.phases.entry(operation).or_default();
        let worked = || laps.iter().flatten().filter(|lap| lap.operations > 0);
        let begun = worked().map(|lap| lap.begun_ns).min().unwrap_or(0);
        let ended = worked().map(|lap| lap.ended_ns).max().unwrap_or(0);
        phase.elapsed_ns += ended.saturating_sub(begun);
        phase.operations += worked().map(|lap| lap.operations).sum::<u64>();
        phase.bytes += worked().map(|lap| lap.bytes).sum::<u64>();
        phase.cpu_ns += worked()
            .map(|lap| lap.cpu.user_ns + lap.cpu.system_ns)
            .sum::<u64>();
        for (sum, lap) in self.threads.iter_mut().zip(laps) {
            if let Some(lap) = lap {
                sum.add(lap);
            }
        }
    }

    fn measured_ns(&self) -> u64 {
        self.phases.values().map(|phase| phase.elapsed_ns).sum()
    }

    /// Takes what threads handed over, and writes the intervals that are over, phases in their order.
    fn take(&mut self, upto: Upto) -> Result<(), RecordError> {
        let parts = self.shared.hands.iter().map(|hand| &hand.parts);
        let mut found = self.pending.collect(parts, self.shared.now_ns(), upto);
        let phases = &self.shared.job.operations;
        found.sort_by_key(|whole| {
            let place = phases.iter().position(|phase| *phase == whole.kind);
            (whole.index, place)
        });
        for whole in found {
            let name = whole.kind.name();
            self.writer.interval(&whole.interval(name))?;
        }
        Ok(())
    }
}

impl Trial for MetadataTrial<'_> {
    type End = Lap;

    fn work(&mut self, runner: &mut Runner) -> Result<(), RecordError> {
        let done = self.do_steps(runner);
        self.shared.begin(u64::MAX, None);
        done
    }

    /// How each thread fared in the step that is on.
    fn ends(&self) -> Vec<Option<Lap>> {
        let of = |lap: Option<(u64, Lap)>| lap.filter(|(step, _)| *step == self.number);
        let hands = self.shared.hands.iter();
        hands
            .map(|hand| of(*lock(&hand.lap)).map(|(_, lap)| lap))
            .collect()
    }

    fn collect(&mut self) -> Result<(), RecordError> {
        self.take(Upto::Over)
    }

    fn tell(&self, progress: &mut Progress) {
        let job = &self.shared.job;
        let hands = self.shared.hands.iter();
        let operations: u64 = hands.map(|h| h.operations.load(Ordering::Relaxed)).sum();
        let share = if job.time_based {
            self.measured_ns() as f64 / job.runtime_ns as f64
        } else {
            operations as f64 / job.pass_operations() as f64
        };
        progress.report("run", self.shared.now_ns(), 0, operations, share);
    }

    fn close(&mut self, runner: &Runner) -> Result<(), RecordError> {
        self.take(Upto::End)?;
        self.wait_until_gone(runner);
        Ok(())
    }

    fn finish(
        self,
        _laps: &[Option<Lap>],
        ending: &Ending,
    ) -> Result<(Writer, Value), RecordError> {
        let summary = Summary {
            operations: &self.shared.job.operations,
            ended_ns: self.shared.now_ns(),
            phases: self.phases,
            threads: self.threads,
            passes: self.passes,
        };
        let keys = summary.keys(ending);
        Ok((self.writer, keys))
    }
}

/// All passes of one operation. `elapsed_ns` is from the first thread's start to the last one's end, pass by pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct Phase {
    pub operations: u64,
    pub bytes: u64,
    pub elapsed_ns: u64,
    /// Processor time of the threads.
    pub cpu_ns: u64,
}

/// What one thread did in measured phases.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadSum {
    operations: u64,
    bytes: u64,
    active_ns: u64,
    done_ns: u64,
    cpu: CpuTime,
}

impl ThreadSum {
    pub fn add(&mut self, lap: &Lap) {
        self.operations += lap.operations;
        self.bytes += lap.bytes;
        self.active_ns += lap.ended_ns.saturating_sub(lap.begun_ns);
        self.done_ns = lap.ended_ns;
        self.cpu.user_ns += lap.cpu.user_ns;
        self.cpu.system_ns += lap.cpu.system_ns;
    }
}

/// What is said of a metadata trial.
pub struct Summary<'a> {
    pub operations: &'a [Operation],
    pub ended_ns: u64,
    pub phases: BTreeMap<Operation, Phase>,
    pub threads: Vec<ThreadSum>,
    pub passes: u64,
}

impl Summary<'_> {
    /// What it says beyond every summary. `measured_ns` is the phases' time, without what is done between them.
    pub fn keys(&self, ending: &Ending) -> Value {
        let directions = self.directions();
        let cpu = |part: fn(&CpuTime) -> u64| -> u64 {
            self.threads.iter().map(|thread| part(&thread.cpu)).sum()
        };
        let last_done_ns = if ending.stuck_threads.is_empty() {
            self.threads.iter().map(|t| t.done_ns).max().unwrap_or(0)
        } else {
            self.ended_ns
        };
        json!({
            "ramp_ns": 0,
            "measured_ns": self.phases.values().map(|phase| phase.elapsed_ns).sum::<u64>(),
            "first_done_ns": self.threads.iter().map(|t| t.done_ns).min().unwrap_or(0),
            "last_done_ns": last_done_ns,
            "directions": directions,
            "total": directions,
            "passes": self.passes,
            "threads": self.thread_rows(),
            "pacer": Value::Null,
            "cpu_user_ns": cpu(|cpu| cpu.user_ns),
            "cpu_system_ns": cpu(|cpu| cpu.system_ns),
            "verified_blocks": 0,
            "unwritten_blocks_read": 0,
            "engine": "metadata",
            "notes": ending.notes_on_stuck().collect::<Vec<_>>(),
        })
    }

    fn directions(&self) -> Value {
        let row = |operation: &Operation| {
            let phase = self.phases.get(operation).copied().unwrap_or_default();
            let value = json!({
                "operations": phase.operations, "bytes": phase.bytes, "elapsed_ns": phase.elapsed_ns,
                "cpu_ns": phase.cpu_ns,
            });
            (operation.name().to_owned(), value)
        };
        Value::Object(self.operations.iter().map(row).collect::<Map<_, _>>())
    }

    /// Here `busy_share` is the generator's own: the kernel's share is the file system's work.
    fn thread_rows(&self) -> Value {
        threads_json(self.threads.iter().map(|thread| ThreadRow {
            bytes: thread.bytes,
            operations: thread.operations,
            done_ns: thread.done_ns,
            cpu: thread.cpu,
            busy_ns: thread.cpu.user_ns,
            within_ns: thread.active_ns,
        }))
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
    pub parts: Mutex<Parts<Operation>>,
    /// Its last step, by number, and how it went.
    pub lap: Mutex<Option<(u64, Lap)>>,
    pub operations: AtomicU64,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::job::tests::example;
    use leadline_record::Interval;
    use serde_json::json;

    fn trial(changes: Value) -> (Value, Vec<Interval>, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let mut job = example();
        job["directory"] = json!(directory.path());
        for (key, value) in changes.as_object().unwrap() {
            job[key] = value.clone();
        }
        let job = MetadataJob::parse(&job.to_string()).unwrap();
        let record = tempfile::NamedTempFile::new().unwrap();
        let summary = run(job, record.path(), &|| None).unwrap();
        let left = walk(directory.path());
        (
            summary,
            leadline_record::read(record.path()).unwrap().intervals,
            left,
        )
    }

    /// All that is not a directory of a tree.
    fn walk(directory: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                found.extend(walk(&entry.path()));
            }
            if !name.starts_with('t') {
                found.push(name);
            }
        }
        found
    }

    const ALL: [&str; 8] = [
        "mkdir", "create", "open", "stat", "readdir", "rename", "unlink", "rmdir",
    ];

    #[test]
    fn every_operation_is_done_as_often_as_asked_and_nothing_is_left() {
        for (private, readdirs) in [(true, 3 * 7), (false, 7)] {
            let (summary, intervals, left) = trial(json!({
                "operations": ALL, "numjobs": 3, "branch": 2, "depth": 2, "private": private
            }));
            assert_eq!(summary["state"], "complete", "{}", summary["error"]);
            for operation in ALL {
                let expected = if operation == "readdir" {
                    readdirs
                } else {
                    300
                };
                assert_eq!(
                    summary["directions"][operation]["operations"], expected,
                    "{operation}"
                );
                let frames = intervals.iter().filter(|i| i.direction == operation);
                assert_eq!(frames.map(|i| i.operations).sum::<u64>(), expected);
            }
            assert_eq!(left, Vec::<String>::new());
        }
    }

    #[test]
    fn what_a_single_operation_needs_is_made_and_removed_unmeasured() {
        for operation in ["stat", "rename", "readdir", "rmdir"] {
            let (summary, _, left) = trial(json!({"operations": [operation]}));
            assert_eq!(summary["state"], "complete", "{}", summary["error"]);
            assert_eq!(summary["directions"].as_object().unwrap().len(), 1);
            assert_eq!(left, Vec::<String>::new());
        }
    }

    #[test]
    fn passes_are_whole_and_go_on_until_the_runtime_is_over() {
        let (summary, _, _) = trial(json!({"time_based": true, "runtime_ns": 30_000_000}));
        let passes = summary["passes"].as_u64().unwrap();
        assert!(passes > 0);
        assert_eq!(summary["directions"]["create"]["operations"], 100 * passes);
        assert!(summary["measured_ns"].as_u64().unwrap() >= 30_000_000);
    }

    #[test]
    fn files_have_the_bytes_that_were_asked_for() {
        let (summary, _, _) = trial(json!({"file_size": 3_000_000, "files": 2}));
        assert_eq!(summary["directions"]["create"]["bytes"], 6_000_000);
    }

    #[test]
    fn a_first_byte_is_read_from_every_file_and_a_missing_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        for file in 0..2 {
            std::fs::write(directory.path().join(format!("tree.0.{file}")), [7; 100]).unwrap();
        }
        let changes = |files: u32| {
            json!({"operations": ["first_byte"], "directory": directory.path(), "files": files,
                   "file_size": 100, "bs": 50})
        };
        let (summary, ..) = trial(changes(2));
        assert_eq!(summary["directions"]["first_byte"]["bytes"], 100);
        let (summary, ..) = trial(changes(3));
        assert_eq!(summary["state"], "error");
        assert_eq!(summary["error"]["operation"], "first_byte");
        assert!(
            summary["error"]["file"]
                .as_str()
                .unwrap()
                .ends_with("tree.0.2")
        );
    }
}
