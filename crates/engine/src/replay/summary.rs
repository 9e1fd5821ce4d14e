//! The summary of a replay, in the keys of every trial's summary.

use serde_json::{Map, Value, json};

use super::job::Pace;
use super::runner::Shared;
use super::script::Class;
use super::thread::Lap;
use crate::watch::notes_on_stuck;

/// Everything known at the end of a trial.
pub struct Ending<'a> {
    pub shared: &'a Shared,
    pub state: &'static str,
    pub started_unix_ns: u64,
    pub laps: Vec<Option<Lap>>,
    pub stuck_threads: Vec<i32>,
    /// Calls and bytes of each class, as the record has them.
    pub sums: [(u64, u64); 4],
}

impl Ending<'_> {
    /// The summary as JSON. `measured_ns` is from the start to the last call's end.
    pub fn summary(&self) -> Value {
        let laps = || self.laps.iter().flatten();
        let sum = |part: fn(&Lap) -> u64| laps().map(part).sum::<u64>();
        let last_done_ns = if self.stuck_threads.is_empty() {
            laps().map(|lap| lap.done_ns).max().unwrap_or(0)
        } else {
            self.shared.now_ns()
        };
        let directions = self.directions();
        json!({
            "state": self.state,
            "error": self.shared.alarm.failure(),
            "started_unix_ns": self.started_unix_ns,
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
            "stuck_threads": self.stuck_threads,
            "pacer": self.pacer(),
            "cpu_user_ns": sum(|lap| lap.cpu.user_ns),
            "cpu_system_ns": sum(|lap| lap.cpu.system_ns),
            "verified_blocks": 0,
            "unwritten_blocks_read": 0,
            "engine": "replay",
            "clock": self.shared.clock.name(),
            "notes": notes_on_stuck(&self.stuck_threads).collect::<Vec<_>>(),
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

    fn thread_rows(&self) -> Vec<Value> {
        let row = |(number, lap): (usize, &Option<Lap>)| {
            let lap = lap.unwrap_or_default();
            json!({
                "thread": number,
                "bytes": lap.bytes,
                "operations": lap.calls,
                "done_ns": lap.done_ns,
                "cpu_user_ns": lap.cpu.user_ns,
                "cpu_system_ns": lap.cpu.system_ns,
                "busy_share": (lap.cpu.user_ns as f64 / lap.done_ns.max(1) as f64).min(1.0),
            })
        };
        self.laps.iter().enumerate().map(row).collect()
    }
}
