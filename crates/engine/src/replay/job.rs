//! A replay job, every default explicit, and the refusal of contradictions.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::job::require_common;

/// The format of the JSON that `ReplayJob::parse` reads.
pub const FORMAT: &str = "leadline.replay/1";

/// When the calls of a thread begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// As long after the thread's call before as in the trace, so that a slower target stretches the replay.
    Recorded,
    /// At once.
    Fast,
}

/// One trial's replay. What only reports use of a job (`calls`, `numjobs` and so on) is passed over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReplayJob {
    pub format: String,
    pub trial: String,
    pub directory: PathBuf,
    pub prefix: String,
    /// The calls: a file of the format in `script`.
    pub script: PathBuf,
    pub pace: Pace,
    /// Whether files are laid out past the caches of this host, which would answer the first reads.
    #[serde(default)]
    pub layout_direct: bool,
    pub seed: u64,
    pub generation: u32,
    pub interval_ns: u64,
    pub deadline_ns: u64,
    pub parent_pid: Option<i32>,
}

impl ReplayJob {
    /// Reads and validates. Every error names the key and what would be right.
    pub fn parse(json: &str) -> Result<Self, EngineError> {
        let job: Self = serde_json::from_str(json)
            .map_err(|error| EngineError::Job(format!("the job is not valid: {error}")))?;
        require_common(
            (&job.format, FORMAT),
            &job.prefix,
            &job.directory,
            job.interval_ns,
        )?;
        Ok(job)
    }
}
