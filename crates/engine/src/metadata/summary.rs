//! The summary of a metadata trial, in the keys of every trial's summary; an operation takes a direction's place.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::job::Operation;
use super::shared::{Lap, Shared};
use crate::sys::process::CpuTime;
use crate::watch::notes_on_stuck;

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

/// Everything known at the end of a trial.
pub struct Ending<'a> {
    pub shared: &'a Shared,
    pub state: &'static str,
    pub started_unix_ns: u64,
    pub ended_ns: u64,
    pub phases: BTreeMap<Operation, Phase>,
    pub threads: Vec<ThreadSum>,
    pub stuck_threads: Vec<i32>,
    pub passes: u64,
}

impl Ending<'_> {
    /// The summary as JSON. `measured_ns` is the phases' time, without what is done between them.
    pub fn summary(&self) -> Value {
        let directions = self.directions();
        let cpu = |part: fn(&CpuTime) -> u64| -> u64 {
            self.threads.iter().map(|thread| part(&thread.cpu)).sum()
        };
        let last_done_ns = if self.stuck_threads.is_empty() {
            self.threads.iter().map(|t| t.done_ns).max().unwrap_or(0)
        } else {
            self.ended_ns
        };
        json!({
            "state": self.state,
            "error": self.shared.alarm.failure(),
            "started_unix_ns": self.started_unix_ns,
            "ramp_ns": 0,
            "measured_ns": self.phases.values().map(|phase| phase.elapsed_ns).sum::<u64>(),
            "first_done_ns": self.threads.iter().map(|t| t.done_ns).min().unwrap_or(0),
            "last_done_ns": last_done_ns,
            "directions": directions,
            "total": directions,
            "passes": self.passes,
            "threads": self.thread_rows(),
            "stuck_threads": self.stuck_threads,
            "pacer": Value::Null,
            "cpu_user_ns": cpu(|cpu| cpu.user_ns),
            "cpu_system_ns": cpu(|cpu| cpu.system_ns),
            "verified_blocks": 0,
            "unwritten_blocks_read": 0,
            "engine": "metadata",
            "clock": self.shared.clock.name(),
            "notes": notes_on_stuck(&self.stuck_threads).collect::<Vec<_>>(),
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
        let operations = self.shared.job.operations.iter();
        Value::Object(operations.map(row).collect::<Map<_, _>>())
    }

    /// Here `busy_share` is the generator's own: the kernel's share is the file system's work.
    fn thread_rows(&self) -> Vec<Value> {
        let row = |(number, thread): (usize, &ThreadSum)| {
            json!({
                "thread": number,
                "bytes": thread.bytes,
                "operations": thread.operations,
                "done_ns": thread.done_ns,
                "cpu_user_ns": thread.cpu.user_ns,
                "cpu_system_ns": thread.cpu.system_ns,
                "busy_share": (thread.cpu.user_ns as f64 / thread.active_ns.max(1) as f64).min(1.0),
            })
        };
        self.threads.iter().enumerate().map(row).collect()
    }
}
