//! The trial of a replay, in the runner's hands.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leadline_record::{RecordError, Writer};
use serde::Serialize;
use serde_json::Value;

use super::job::ReplayJob;
use super::script::{Class, Script};
use super::shared::{Hand, Shared};
use super::summary::Summary;
use super::thread::{self, Lap};
use crate::Interrupts;
use crate::error::EngineError;
use crate::sys::clock::Clock;
use crate::trial::Ending;
use crate::trial::context::lock;
use crate::trial::parts::{Pending, Upto};
use crate::trial::progress::Progress;
use crate::trial::runner::{self, Crew, Runner, Terms, Trial};
use crate::trial::watch::Alarm;
use crate::volume;

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
    fn thread_id(&self, thread: usize) -> i32 {
        self.hands[thread].thread_id.load(Ordering::Relaxed)
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
