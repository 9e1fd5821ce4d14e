//! The summary of a replay, in the keys of every trial's summary.

use serde_json::{Map, Value, json};

use super::job::Pace;
use super::script::Class;
use super::shared::Shared;
use super::thread::Lap;
use crate::trial::{Ending, ThreadRow, threads_json};

/// What is said of a replay.
pub struct Summary<'a> {
    pub shared: &'a Shared,
    pub laps: &'a [Option<Lap>],
    /// Calls and bytes of each class, as the record has them.
    pub sums: [(u64, u64); 4],
}

impl Summary<'_> {
    /// What it says beyond every summary. `measured_ns` is from the start to the last call's end.
    pub fn keys(&self, ending: &Ending) -> Value {
        let laps = || self.laps.iter().flatten();
        let sum = |part: fn(&Lap) -> u64| laps().map(part).sum::<u64>();
        let last_done_ns = if ending.stuck_threads.is_empty() {
            laps().map(|lap| lap.done_ns).max().unwrap_or(0)
        } else {
            self.shared.now_ns()
        };
        let directions = self.directions();
        json!({
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
            "pacer": self.pacer(),
            "cpu_user_ns": sum(|lap| lap.cpu.user_ns),
            "cpu_system_ns": sum(|lap| lap.cpu.system_ns),
            "verified_blocks": 0,
            "unwritten_blocks_read": 0,
            "engine": "replay",
            "notes": ending.notes_on_stuck().collect::<Vec<_>>(),
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

    fn thread_rows(&self) -> Value {
        let row = |lap: &Option<Lap>| {
            let lap = lap.unwrap_or_default();
            ThreadRow {
                bytes: lap.bytes,
                operations: lap.calls,
                done_ns: lap.done_ns,
                cpu: lap.cpu,
                busy_ns: lap.cpu.user_ns + lap.cpu.system_ns,
                within_ns: lap.done_ns,
            }
        };
        threads_json(self.laps.iter().map(row))
    }
}
