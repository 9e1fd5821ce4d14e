//! What every summary says, whatever the trial did.

use serde_json::{Value, json};

use crate::error::Failure;
use crate::sys::process::CpuTime;

/// How a trial ended.
#[derive(Debug)]
pub struct Ending {
    pub state: &'static str,
    pub error: Option<Failure>,
    pub started_unix_ns: u64,
    pub stuck_threads: Vec<i32>,
    pub clock: &'static str,
}

impl Ending {
    /// The notes about threads that were left behind.
    pub fn notes_on_stuck(&self) -> impl Iterator<Item = String> {
        let words = |thread: &i32| format!("thread {thread} did not come back from the kernel");
        self.stuck_threads.iter().map(words)
    }

    /// The whole summary: `own` is what is said of this kind of trial alone.
    pub fn summary(self, mut own: Value) -> Value {
        let common = json!({
            "state": self.state,
            "error": self.error,
            "started_unix_ns": self.started_unix_ns,
            "stuck_threads": self.stuck_threads,
            "clock": self.clock,
        });
        if let (Some(own), Value::Object(common)) = (own.as_object_mut(), common) {
            own.extend(common);
        }
        own
    }
}

/// One thread in a summary. Times are ns since the trial's start.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadRow {
    pub bytes: u64,
    pub operations: u64,
    pub done_ns: u64,
    pub cpu: CpuTime,
    /// Of the time `within_ns`, what the thread itself was at work.
    pub busy_ns: u64,
    pub within_ns: u64,
}

/// All threads, as a summary has them.
pub fn threads_json(rows: impl Iterator<Item = ThreadRow>) -> Value {
    let row = |(thread, row): (usize, ThreadRow)| {
        json!({
            "thread": thread,
            "bytes": row.bytes,
            "operations": row.operations,
            "done_ns": row.done_ns,
            "cpu_user_ns": row.cpu.user_ns,
            "cpu_system_ns": row.cpu.system_ns,
            "busy_share": (row.busy_ns as f64 / row.within_ns.max(1) as f64).min(1.0),
        })
    };
    rows.enumerate().map(row).collect()
}
