//! Runs one trial: threads, start, deadline, signals, record, summary. A thread that the kernel does not give
//! back is named and left behind.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use leadline_record::RecordError;
use serde_json::Value;

use crate::Interrupts;
use crate::collector::Collector;
use crate::context::{Context, ThreadEnd, lock};
use crate::error::EngineError;
use crate::job::Job;
use crate::opening::{create_record, follow_parent, record_error};
use crate::progress::Progress;
use crate::summary::Ending;
use crate::sys::clock::unix_ns;
use crate::sys::process::{CpuTime, process_cpu};
use crate::watch::{Cause, Watch, notes_on_stuck};

/// What operations in flight get to end after a stop; then threads give up waiting for them.
const DRAIN_AFTER_DEADLINE: Duration = Duration::from_millis(500);
/// What a thread gets to notice that it should give up.
const GIVE_UP: Duration = Duration::from_millis(500);

/// Runs `job`, writing its record to `record_path` as it goes; returns the summary.
///
/// Errors: a job that cannot be run, a record that cannot be written. Failures of the trial's own I/O are
/// in the summary.
pub fn run(job: Job, record_path: &Path, signal: Interrupts) -> Result<Value, EngineError> {
    follow_parent(job.parent_pid)?;
    let begun = Instant::now();
    let context = Arc::new(Context::new(job));
    let record = |error| record_error(error, record_path);
    let writer = create_record(record_path, &context.clock, &context.job)?;
    let deadline = begun + Duration::from_nanos(context.job.deadline_ns);
    let mut runner = Runner {
        context: &context,
        collector: Collector::new(&context, writer),
        watch: Watch::new(&context.alarm, signal, deadline, DRAIN_AFTER_DEADLINE),
        abandoned: None,
        progress: Progress::default(),
    };
    spawn(&context)?;
    runner.wait_until_ready();
    let started_unix_ns = unix_ns();
    let cpu = process_cpu();
    let origin_ns = context.start();
    let waited = runner.wait_until_done(origin_ns);
    let cpu = process_cpu().since(cpu);
    waited.map_err(record)?;
    runner
        .finish(origin_ns, started_unix_ns, cpu)
        .map_err(record)
}

fn spawn(context: &Arc<Context>) -> Result<(), EngineError> {
    let body = context.job.engine.run;
    for thread in 0..context.job.numjobs {
        let shared = Arc::clone(context);
        // The handle is dropped: a thread stuck in the kernel must not be joined.
        let spawned = std::thread::Builder::new()
            .name(format!("load-{thread}"))
            .spawn(move || body(&shared, thread));
        if let Err(error) = spawned {
            context.alarm.stop();
            context.start();
            return Err(EngineError::Other(format!(
                "cannot start thread {thread} of numjobs={}: {error}",
                context.job.numjobs
            )));
        }
    }
    Ok(())
}

struct Runner<'a> {
    context: &'a Context,
    collector: Collector<'a>,
    watch: Watch<'a>,
    /// When threads were told to wait for nothing any more.
    abandoned: Option<Instant>,
    progress: Progress,
}

impl Runner<'_> {
    fn wait_until_ready(&mut self) {
        let ready = |context: &Context| context.hands.iter().all(|hand| lock(&hand.tray).ready);
        while !ready(self.context) && !self.has_given_up() {
            self.wait();
        }
    }

    fn wait_until_done(&mut self, origin_ns: u64) -> Result<(), RecordError> {
        loop {
            let done = self.ended().iter().all(Option::is_some);
            let now_ns = self.context.clock.now_ns().saturating_sub(origin_ns);
            let collected = self.collector.collect(now_ns);
            if collected.is_err() {
                self.watch.halt(Cause::Failure);
            }
            if done || self.has_given_up() {
                return collected;
            }
            self.report(now_ns);
            self.wait();
        }
    }

    fn ended(&self) -> Vec<Option<ThreadEnd>> {
        self.context
            .hands
            .iter()
            .map(|hand| lock(&hand.tray).end)
            .collect()
    }

    /// Waits for the bell, and looks; tells threads to give up that had their time.
    fn wait(&mut self) {
        self.watch.wait();
        if self.abandoned.is_none() && self.watch.has_drained() {
            self.context.abandon.store(true, Ordering::Relaxed);
            self.abandoned = Some(Instant::now());
        }
    }

    fn has_given_up(&self) -> bool {
        self.abandoned.is_some_and(|at| at.elapsed() >= GIVE_UP)
    }

    fn report(&mut self, now_ns: u64) {
        let job = &self.context.job;
        let sum = |counter: fn(&crate::context::Hand) -> u64| -> u64 {
            self.context.hands.iter().map(counter).sum()
        };
        let bytes = sum(|hand| hand.bytes.load(Ordering::Relaxed));
        let operations = sum(|hand| hand.operations.load(Ordering::Relaxed));
        let whole = job.pass_bytes();
        let by_size = if job.time_based {
            0.0
        } else {
            bytes as f64 / whole as f64
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
        self.progress
            .report(phase, now_ns, bytes, operations, by_size.max(by_time));
    }

    fn finish(
        self,
        origin_ns: u64,
        started_unix_ns: u64,
        cpu: CpuTime,
    ) -> Result<Value, RecordError> {
        let context = self.context;
        let ended_ns = context.clock.now_ns().saturating_sub(origin_ns);
        let ends = self.ended();
        let stuck_threads = context
            .hands
            .iter()
            .zip(&ends)
            .filter(|(_, end)| end.is_none())
            .map(|(hand, _)| hand.thread_id.load(Ordering::Relaxed))
            .collect::<Vec<_>>();
        let done_ns = ends
            .iter()
            .flatten()
            .map(|end| end.done_ns)
            .max()
            .unwrap_or(0);
        let done_ns = if stuck_threads.is_empty() {
            done_ns
        } else {
            ended_ns
        };
        let notes = notes(context, &stuck_threads, &ends, done_ns);
        let (mut writer, totals, threads) = self.collector.finish(done_ns)?;
        let summary = Ending {
            context,
            state: self.watch.state(),
            started_unix_ns,
            ended_ns,
            totals,
            threads,
            ends,
            stuck_threads,
            cpu,
            notes,
        }
        .summary();
        writer.summary(&summary)?;
        Ok(summary)
    }
}

fn notes(
    context: &Context,
    stuck: &[i32],
    ends: &[Option<ThreadEnd>],
    done_ns: u64,
) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for hand in &context.hands {
        for note in std::mem::take(&mut lock(&hand.tray).notes) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes.extend(notes_on_stuck(stuck));
    let abandoned: u32 = ends.iter().flatten().map(|end| end.abandoned).sum();
    if abandoned > 0 {
        notes.push(format!(
            "{abandoned} operations were still in flight when the trial gave up"
        ));
    }
    if context.job.ramp_time_ns > 0 && done_ns <= context.job.ramp_time_ns {
        notes.push("the job ended within its ramp time: nothing was measured".to_owned());
    }
    notes
}
