//! A job of any kind, told apart by its format: read, checked, laid out and run in one place each.

use std::path::Path;

use serde_json::Value;

use crate::error::EngineError;
use crate::job::{FORMAT, Job};
use crate::metadata::{self, MetadataJob};
use crate::replay::{self, ReplayJob};
use crate::transfer::{self, TransferJob};
use crate::trial::layout::LaidOut;
use crate::trial::meeting::Meeting;
use crate::trial::{data, layout};
use crate::{Interrupts, engines};

/// What a worker may be asked to do.
#[derive(Debug, Clone)]
pub enum AnyJob {
    Data(Box<Job>),
    Metadata(Box<MetadataJob>),
    Replay(Box<ReplayJob>),
    Transfer(Box<TransferJob>),
}

impl AnyJob {
    /// The formats that `parse` takes.
    pub const FORMATS: [&str; 4] = [FORMAT, metadata::FORMAT, replay::FORMAT, transfer::FORMAT];

    /// Reads and validates. Every error names the key and what would be right.
    pub fn parse(json: &str) -> Result<Self, EngineError> {
        let named = format_of(json).unwrap_or_default();
        let means = |format: &str| {
            let (name, _version) = format.split_once('/').unwrap_or((format, ""));
            named.split_once('/').is_some_and(|(word, _)| word == name)
        };
        if means(metadata::FORMAT) {
            MetadataJob::parse(json).map(|job| Self::Metadata(Box::new(job)))
        } else if means(replay::FORMAT) {
            ReplayJob::parse(json).map(|job| Self::Replay(Box::new(job)))
        } else if means(transfer::FORMAT) {
            TransferJob::parse(json).map(|job| Self::Transfer(Box::new(job)))
        } else {
            Job::parse(json).map(|job| Self::Data(Box::new(job)))
        }
    }

    /// Runs it, whatever it does, writing its record to `record_path` as it goes; returns the summary. It starts with
    /// those that it meets, where it meets any; jobs of metadata and replays have yet to open their files then.
    ///
    /// Errors: a job that cannot be run, a record that cannot be written. Failures of the trial's own calls are in
    /// the summary.
    pub fn run(
        self,
        record_path: &Path,
        meeting: Option<&Meeting>,
        signal: Interrupts,
    ) -> Result<Value, EngineError> {
        match self {
            Self::Data(job) => {
                let work = engines::loops(job.engine).data;
                data::run(*job, work, record_path, meeting, signal)
            }
            Self::Transfer(job) => {
                let work = engines::loops(job.engine).stream;
                transfer::run(*job, work, record_path, meeting, signal)
            }
            // Their threads begin as soon as they are there.
            Self::Metadata(job) => {
                come(meeting, signal)?;
                metadata::run(*job, record_path, signal)
            }
            Self::Replay(job) => {
                come(meeting, signal)?;
                replay::run(*job, record_path, signal)
            }
        }
    }

    /// Writes every block of the files that it finds, syncs them, and drops them from the page cache.
    pub fn lay_out(&self, signal: Interrupts) -> Result<LaidOut, EngineError> {
        match self {
            Self::Data(job) => layout::lay_out(job, signal),
            Self::Replay(job) => replay::lay_out(job, signal),
            Self::Transfer(job) => transfer::lay_out(job, signal),
            Self::Metadata(_) => Err(EngineError::Job(
                "format: a job of metadata makes its own files; lay out a job of data".to_owned(),
            )),
        }
    }
}

fn come(meeting: Option<&Meeting>, signal: Interrupts) -> Result<(), EngineError> {
    match meeting {
        Some(meeting) if !meeting.come(|| signal().is_some()) => Err(EngineError::Interrupted),
        _ => Ok(()),
    }
}

/// Without any other key: a job of a wrong format is refused by the kind that it means.
fn format_of(json: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        format: String,
    }
    serde_json::from_str::<Named>(json)
        .ok()
        .map(|named| named.format)
}
