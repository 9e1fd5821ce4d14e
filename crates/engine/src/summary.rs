//! The summary of a trial: what `run_trial` returns and what completes its record.

use serde_json::{Map, Value, json};

use crate::collector::{Sums, Totals};
use crate::context::{Context, ThreadEnd};
use crate::interval::uses;
use crate::io::Direction;
use crate::sys::process::CpuTime;

/// Everything known at the end of a trial.
pub struct Ending<'a> {
    pub context: &'a Context,
    pub state: &'static str,
    pub started_unix_ns: u64,
    /// When the runner stopped waiting, ns since the trial's start.
    pub ended_ns: u64,
    pub totals: Totals,
    pub threads: Vec<Totals>,
    /// `None` for a thread that never came back.
    pub ends: Vec<Option<ThreadEnd>>,
    pub stuck_threads: Vec<i32>,
    pub cpu: CpuTime,
    pub notes: Vec<String>,
}

impl Ending<'_> {
    /// The summary as JSON. Times are ns since the trial's start.
    pub fn summary(&self) -> Value {
        let job = &self.context.job;
        let ends: Vec<ThreadEnd> = self.ends.iter().flatten().copied().collect();
        let first_done_ns = ends.iter().map(|end| end.done_ns).min().unwrap_or(0);
        let last_done_ns = if self.stuck_threads.is_empty() {
            ends.iter().map(|end| end.done_ns).max().unwrap_or(0)
        } else {
            self.ended_ns
        };
        let whole_bytes = job.pass_bytes();
        let bytes: u64 = self.totals.all.iter().map(|sums| sums.bytes).sum();
        json!({
            "state": self.state,
            "error": self.context.alarm.failure(),
            "started_unix_ns": self.started_unix_ns,
            "ramp_ns": job.ramp_time_ns.min(last_done_ns),
            "measured_ns": last_done_ns.saturating_sub(job.ramp_time_ns),
            "first_done_ns": first_done_ns,
            "last_done_ns": last_done_ns,
            "directions": self.directions(&self.totals.measured),
            "total": self.directions(&self.totals.all),
            "passes": bytes as f64 / whole_bytes as f64,
            "threads": self.thread_rows(),
            "stuck_threads": self.stuck_threads,
            "pacer": self.pacer(),
            "cpu_user_ns": self.cpu.user_ns,
            "cpu_system_ns": self.cpu.system_ns,
            "verified_blocks": self.totals.verified_blocks,
            "unwritten_blocks_read": self.totals.unwritten_blocks,
            "engine": job.engine.name(),
            "clock": self.context.clock.name(),
            "notes": self.notes,
        })
    }

    fn directions(&self, sums: &[Sums; 3]) -> Value {
        let mut rows = Map::new();
        for direction in Direction::ALL {
            if !uses(&self.context.job, direction) {
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

    fn thread_rows(&self) -> Vec<Value> {
        let sum = |totals: &Totals, field: fn(&Sums) -> u64| -> u64 {
            totals.measured[..2].iter().map(field).sum()
        };
        self.threads
            .iter()
            .zip(&self.ends)
            .enumerate()
            .map(|(thread, (totals, end))| {
                let end = end.unwrap_or(ThreadEnd {
                    done_ns: self.ended_ns,
                    ..Default::default()
                });
                let busy_ns = end.cpu.user_ns + end.cpu.system_ns;
                json!({
                    "thread": thread,
                    "bytes": sum(totals, |sums| sums.bytes),
                    "operations": sum(totals, |sums| sums.operations),
                    "done_ns": end.done_ns,
                    "cpu_user_ns": end.cpu.user_ns,
                    "cpu_system_ns": end.cpu.system_ns,
                    "busy_share": (busy_ns as f64 / end.done_ns.max(1) as f64).min(1.0),
                })
            })
            .collect()
    }

    fn pacer(&self) -> Value {
        if !self.context.job.is_open_loop() {
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
