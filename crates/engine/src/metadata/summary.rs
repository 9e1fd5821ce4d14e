//! The summary of a metadata trial, in the keys of every trial's summary; an operation takes a direction's place.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::shared::Lap;
use crate::sys::process::CpuTime;
use crate::trial::{Ending, ThreadRow, threads_json};
use crate::volume::names::Operation;

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
