//! What every trial begins with: whoever asked for it still lives, and its record has a header.

use std::path::Path;

use leadline_record::{RecordError, Writer};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::EngineError;
use crate::sys::clock::{Clock, unix_ns};
use crate::sys::process::die_with_parent;

/// Binds this process's life to its parent's, where the job names one.
pub fn follow_parent(parent_pid: Option<i32>) -> Result<(), EngineError> {
    let Some(parent) = parent_pid else {
        return Ok(());
    };
    die_with_parent(parent).map_err(|_| {
        EngineError::Other(format!(
            "the program that asked for this trial (pid {parent}) is gone"
        ))
    })
}

/// Makes the record of a trial that runs `job`.
pub fn create_record(
    path: &Path,
    clock: &Clock,
    job: &impl Serialize,
) -> Result<Writer, EngineError> {
    let header = json!({
        "format": "leadline.record/1",
        "version": env!("CARGO_PKG_VERSION"),
        "clock": clock.name(),
        "created_unix_ns": unix_ns(),
        "job": serde_json::to_value(job).unwrap_or(Value::Null),
    });
    Writer::create(path, &header).map_err(|error| record_error(error, path))
}

/// What a record that cannot be written means for the trial.
pub fn record_error(error: RecordError, path: &Path) -> EngineError {
    match error {
        RecordError::Io(error) => EngineError::system(&error, "write the trial record", path),
        other => EngineError::Other(other.to_string()),
    }
}
