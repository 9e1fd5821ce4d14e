//! A job in fio's vocabulary, every default explicit. Knows nothing of how I/O is done.
//!
//! `geometry` says where its operations may go, `rules` refuses contradictions.

pub mod geometry;
mod rules;
#[cfg(test)]
pub mod tests;

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::distribution::Distribution;
use crate::error::EngineError;
use crate::schemes::{EngineName, Location};
use crate::sizes::Split;

use geometry::Shared;
pub use rules::{FILES_MAX, require, require_common, require_location, require_times};

/// The format of the JSON that `Job::parse` reads.
pub const FORMAT: &str = "leadline.job/1";

/// Direction and order of a job's I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadWrite {
    Read,
    Write,
    Randread,
    Randwrite,
    Rw,
    Randrw,
}

impl ReadWrite {
    pub fn is_random(self) -> bool {
        matches!(self, Self::Randread | Self::Randwrite | Self::Randrw)
    }
    pub fn reads(self) -> bool {
        !matches!(self, Self::Write | Self::Randwrite)
    }
    pub fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::Randread)
    }
    pub fn is_mixed(self) -> bool {
        matches!(self, Self::Rw | Self::Randrw)
    }
}

/// When operations of an open loop are meant to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    Constant,
    Poisson,
}

/// What reads back what a verified trial wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadBack {
    /// The way by which it was written.
    #[default]
    Same,
    /// Other ways to the same directory too.
    Other,
}

/// The program that makes the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Generator {
    #[default]
    Leadline,
    Fio,
}

/// One trial's job. Sizes in bytes, times in ns; `size` is per numjob, rates are totals over all numjobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub format: String,
    pub trial: String,
    pub directory: PathBuf,
    pub prefix: String,
    pub rw: ReadWrite,
    pub rwmixread: u32,
    pub bs: u64,
    pub size: u64,
    pub nrfiles: u32,
    pub numjobs: u32,
    pub iodepth: u32,
    pub engine: EngineName,
    pub direct: bool,
    pub overwrite: bool,
    /// A sync after every so many writes of a thread; 0: none.
    pub fsync: u32,
    pub end_fsync: bool,
    pub time_based: bool,
    pub runtime_ns: u64,
    pub ramp_time_ns: u64,
    #[serde(deserialize_with = "present")]
    pub rate_bytes_per_s: Option<u64>,
    #[serde(deserialize_with = "present")]
    pub rate_iops: Option<f64>,
    pub arrival: Arrival,
    pub verify: bool,
    pub incompressible: bool,
    /// A thread of the kernel submits (SQPOLL); with io_uring only.
    pub sqthread_poll: bool,
    pub seed: u64,
    pub generation: u32,
    pub interval_ns: u64,
    pub deadline_ns: u64,
    #[serde(deserialize_with = "present")]
    pub parent_pid: Option<i32>,
    /// Bounds `layout` and `check`; may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout_rate_bytes_per_s: Option<u64>,
    // The keys below are younger than the format. Left out they mean what there was before them, so that a plan
    // of an older version still runs.
    /// Shares of several sizes; `bs` is then the smallest, and all are its multiples.
    #[serde(default)]
    pub bssplit: Option<Split>,
    /// A sync of the data alone after every so many writes of a thread; 0: none.
    #[serde(default)]
    pub fdatasync: u32,
    /// At most so many operations are handed over together; 0: all that are due.
    #[serde(default)]
    pub iodepth_batch: u32,
    /// A pause after every `thinktime_blocks` operations of a thread, once they have ended; 0: none.
    #[serde(default)]
    pub thinktime_ns: u64,
    #[serde(default = "one")]
    pub thinktime_blocks: u32,
    /// What lies before it in each file is never touched.
    #[serde(default)]
    pub offset: u64,
    /// Added to `offset` once for each thread before this one.
    #[serde(default)]
    pub offset_increment: u64,
    #[serde(default)]
    pub random_distribution: Distribution,
    #[serde(default)]
    pub buffer_compress_percentage: u32,
    #[serde(default)]
    pub dedupe_percentage: u32,
    #[serde(default)]
    pub shared: Shared,
    /// Bytes that each thread moves where no clock ends the job, going round in its files; 0: once through them.
    #[serde(default)]
    pub io_size: u64,
    /// Of a random job's operations in percent; the others follow the one before them.
    #[serde(default = "all")]
    pub percentage_random: u32,
    /// Random operations of several sizes share one map, as fio's do: what meets a touched block ends there.
    #[serde(default)]
    pub one_map: bool,
    /// Drop cached pages of its files whenever a thread begins its bytes anew, as fio does by default.
    #[serde(default)]
    pub invalidate: bool,
    /// Who makes the load; kept with the job, and the affair of whoever runs it.
    #[serde(default)]
    pub generator: Generator,
    /// What else reads back; kept with the job, and the affair of whoever asks for the check.
    #[serde(default)]
    pub read_back: ReadBack,
    /// The file that holds what was written to this job's files, from one trial to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<PathBuf>,
    /// A descriptor of this process whose file or block device is used as it is: nothing is made by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<i32>,
    /// Where `directory` is, when no mount holds it: a URL.
    #[serde(default, deserialize_with = "located")]
    pub location: Option<Location>,
}

/// A URL, read and checked; absent where there is none.
pub(crate) fn located<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Location>, D::Error> {
    let url: Option<String> = Option::deserialize(from)?;
    url.map(|url| Location::parse(&url).map_err(serde::de::Error::custom))
        .transpose()
}

fn one() -> u32 {
    1
}

fn all() -> u32 {
    100
}

/// An optional value whose key must be written: `null` is a decision, absence a mistake.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

/// A job of any kind, as its keys say, not validated yet.
pub(crate) fn read<J: DeserializeOwned>(json: &str) -> Result<J, EngineError> {
    serde_json::from_str(json)
        .map_err(|error| EngineError::Job(format!("the job is not valid: {error}")))
}

impl Job {
    /// Reads and validates. Every error names the key and what would be right.
    pub fn parse(json: &str) -> Result<Self, EngineError> {
        let job: Self = read(json)?;
        job.validate()?;
        Ok(job)
    }

    /// True for an open loop: operations start by the clock, not by completions.
    pub fn is_open_loop(&self) -> bool {
        self.rate_bytes_per_s.is_some() || self.rate_iops.is_some()
    }

    /// Operations per second of each thread in open loop.
    pub fn thread_rate(&self) -> Option<f64> {
        let total = self.rate_iops.or(self
            .rate_bytes_per_s
            .map(|rate| rate as f64 / self.mean_block()));
        total.map(|rate| rate / f64::from(self.numjobs))
    }

    /// Bytes of a mean operation.
    fn mean_block(&self) -> f64 {
        let read_share = match (self.rw.is_mixed(), self.rw.reads()) {
            (true, _) => f64::from(self.rwmixread) / 100.0,
            (false, reads) => f64::from(u8::from(reads)),
        };
        let split = self.bssplit.as_ref();
        split.map_or(self.bs as f64, |split| split.mean_bytes(read_share))
    }

    /// Sequential writes start with empty files, unless they overwrite.
    pub fn writes_fresh_files(&self) -> bool {
        self.rw == ReadWrite::Write && !self.overwrite
    }
}
