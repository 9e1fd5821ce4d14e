//! What happens around the measured loop, from the first thread's start to the summary.
//!
//! `runner` is the one runner of trials, whatever they do; `watch` knows what ends one before its end. The rest is
//! of jobs that read and write: `data` their trial, `layout` and `check` their files before and after, `source`,
//! `pacer` and `interval` what each thread goes by, `context` and `collector` the hand-over, `summary` the end.

pub mod check;
pub mod collector;
pub mod context;
pub(crate) mod data;
mod ending;
pub mod interval;
pub mod layout;
pub mod meeting;
mod opening;
pub mod pacer;
pub(crate) mod parts;
pub mod progress;
pub mod runner;

pub mod summary;
pub mod watch;

use std::path::Path;

use serde_json::Value;

use crate::error::EngineError;
use crate::job::AnyJob;
use crate::{Interrupts, metadata, replay, transfer};
use layout::LaidOut;
use meeting::Meeting;

pub use ending::{Ending, ThreadRow, threads_json};

/// Runs `job`, whatever it does, writing its record to `record_path` as it goes; returns the summary. It starts
/// with those that it meets, where it meets any; jobs of metadata and replays have yet to open their files then.
///
/// Errors: a job that cannot be run, a record that cannot be written. Failures of the trial's own calls are in
/// the summary.
pub fn run(
    job: AnyJob,
    record_path: &Path,
    meeting: Option<&Meeting>,
    signal: Interrupts,
) -> Result<Value, EngineError> {
    match job {
        AnyJob::Data(job) => data::run(*job, record_path, meeting, signal),
        AnyJob::Transfer(job) => transfer::run(*job, record_path, meeting, signal),
        // Their threads begin as soon as they are there.
        AnyJob::Metadata(job) => {
            come(meeting, signal)?;
            metadata::run(*job, record_path, signal)
        }
        AnyJob::Replay(job) => {
            come(meeting, signal)?;
            replay::run(*job, record_path, signal)
        }
    }
}

fn come(meeting: Option<&Meeting>, signal: Interrupts) -> Result<(), EngineError> {
    match meeting {
        Some(meeting) if !meeting.come(|| signal().is_some()) => Err(EngineError::Interrupted),
        _ => Ok(()),
    }
}

/// Writes every block of the files that `job` finds, syncs them, and drops them from the page cache.
pub fn lay_out(job: &AnyJob, signal: Interrupts) -> Result<LaidOut, EngineError> {
    match job {
        AnyJob::Data(job) => layout::lay_out(job, signal),
        AnyJob::Replay(job) => replay::lay_out(job, signal),
        AnyJob::Transfer(job) => transfer::lay_out(job, signal),
        AnyJob::Metadata(_) => Err(EngineError::Job(
            "format: a job of metadata makes its own files; lay out a job of data".to_owned(),
        )),
    }
}
