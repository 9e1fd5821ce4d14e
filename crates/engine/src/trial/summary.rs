//! The summary of a trial that reads and writes: with what every summary says, it completes the record.

use serde_json::{Map, Value, json};

use super::collector::{Sums, Totals};
use super::context::ThreadEnd;
use super::ending::{ThreadRow, threads_json};
use super::interval::uses;
use crate::io::Direction;
use crate::job::Job;
use crate::sys::process::CpuTime;

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
