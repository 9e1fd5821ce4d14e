//! What the threads of a transfer share beside what those of every trial do.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use serde::Serialize;

use super::acks::Ring;
use super::job::TransferJob;
use crate::trial::context::Context;

/// One stream as the summary has it. Times are ns since the trial's start; `None`: it did not come to that.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StreamRow {
    pub stream: u32,
    pub direction: &'static str,
    /// Acknowledged, from the start on.
    pub bytes: u64,
    pub requests: u64,
    pub first_submitted_ns: Option<u64>,
    pub last_submitted_ns: Option<u64>,
    pub last_acked_ns: Option<u64>,
    /// When the end of the sync after the last acknowledgement was met.
    pub synced_ns: Option<u64>,
    /// `None` of a thread that never came back.
    pub ended_ns: Option<u64>,
    /// In hexadecimal, of `checksum_bytes` from the file's beginning, of the last whole pass where there was one.
    pub checksum: Option<String>,
    pub checksum_bytes: u64,
    /// Spent on reading sources, on making data, and on checksums, between requests.
    pub source_wait_ns: u64,
    pub fill_ns: u64,
    pub checksum_ns: u64,
}

/// All that the threads share.
pub struct Transfers {
    pub job: TransferJob,
    pub context: Context,
    pub rings: Vec<Ring>,
    pub rows: Vec<Mutex<StreamRow>>,
    /// Times that streams waited as their acknowledgements were not taken as fast as they came.
    pub acks_waited: AtomicU64,
}

impl Transfers {
    pub fn new(job: TransferJob) -> Self {
        let row = |stream| StreamRow {
            stream,
            direction: job.direction(stream).name(),
            ..StreamRow::default()
        };
        let (streams, context) = (job.streams, Context::new(job.as_data(), None));
        Self {
            context,
            rings: (0..streams).map(|_| Ring::new(streams)).collect(),
            rows: (0..streams).map(|stream| Mutex::new(row(stream))).collect(),
            job,
            acks_waited: AtomicU64::new(0),
        }
    }
}
