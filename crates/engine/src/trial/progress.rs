//! One JSON line on standard output every quarter of a second: for the parent's live display.

use serde_json::json;

use crate::sys::process::offer_line;

const EVERY_NS: u64 = 250_000_000;

/// Says how far a phase is, not more often than every 250 ms.
#[derive(Debug, Default)]
pub struct Progress {
    next_ns: u64,
}

impl Progress {
    /// `share` is of the whole phase, 0 to 1.
    pub fn report(
        &mut self,
        phase: &str,
        elapsed_ns: u64,
        bytes: u64,
        operations: u64,
        share: f64,
    ) {
        if elapsed_ns < self.next_ns {
            return;
        }
        self.next_ns = elapsed_ns + EVERY_NS;
        let share = share.clamp(0.0, 1.0);
        offer_line(
            &json!({"event": "progress", "phase": phase, "elapsed_ns": elapsed_ns, "bytes": bytes,
                    "operations": operations, "share": share})
            .to_string(),
        );
    }
}
