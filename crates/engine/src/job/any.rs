//! A job of any kind, told apart by its format: read, checked, laid out and run in one place each.

use super::{FORMAT, Job};
use crate::error::EngineError;
use crate::metadata::{self, MetadataJob};
use crate::replay::{self, ReplayJob};
use crate::transfer::{self, TransferJob};

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
