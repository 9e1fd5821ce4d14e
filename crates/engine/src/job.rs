//! A job in fio's vocabulary, every default explicit, and the refusal of contradictions.
//! Knows nothing of how I/O is done.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

use crate::error::EngineError;
use crate::pattern::BLOCK_BYTES;

/// The format of the JSON that `Job::parse` reads.
pub const FORMAT: &str = "leadline.job/1";
const INTERVAL_NS: std::ops::RangeInclusive<u64> = 100_000_000..=10_000_000_000;
const BLOCK_SIZE_MAX_BYTES: u64 = 256 << 20;
const THREADS_MAX: u32 = 1024;
const DEPTH_MAX: u32 = 4096;
const FILES_MAX: u64 = 1 << 20;
const BUFFERS_MAX_BYTES: u64 = 64 << 30;

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

/// The I/O engine of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineName {
    IoUring,
    Psync,
    Mmap,
    Null,
}

impl EngineName {
    /// One call at a time, done when it returns.
    pub fn is_blocking(self) -> bool {
        matches!(self, Self::Psync | Self::Mmap)
    }

    /// The word for it in jobs and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Psync => "psync",
            Self::Mmap => "mmap",
            Self::Null => "null",
        }
    }
}

/// When operations of an open loop are meant to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    Constant,
    Poisson,
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
    /// Bounds `layout`; the only key that may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout_rate_bytes_per_s: Option<u64>,
}

/// An optional value whose key must be written: `null` is a decision, absence a mistake.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

impl Job {
    /// Reads and validates. Every error names the key and what would be right.
    pub fn parse(json: &str) -> Result<Self, EngineError> {
        let job: Self = serde_json::from_str(json)
            .map_err(|error| EngineError::Job(format!("the job is not valid: {error}")))?;
        job.validate()?;
        Ok(job)
    }

    /// Bytes of each file: `size` divided evenly over the files, in whole blocks.
    pub fn file_bytes(&self) -> u64 {
        self.blocks_per_file() * self.bs
    }

    /// Blocks of `bs` in each file.
    pub fn blocks_per_file(&self) -> u64 {
        self.size / u64::from(self.nrfiles) / self.bs
    }

    /// The name of a file of this job.
    pub fn file_path(&self, numjob: u32, file: u32) -> PathBuf {
        self.directory
            .join(format!("{}.{numjob}.{file}", self.prefix))
    }

    /// The number by which data patterns know a file.
    pub fn file_id(&self, numjob: u32, file: u32) -> u32 {
        numjob * self.nrfiles + file
    }

    /// True for an open loop: operations start by the clock, not by completions.
    pub fn is_open_loop(&self) -> bool {
        self.rate_bytes_per_s.is_some() || self.rate_iops.is_some()
    }

    /// Operations per second of each thread in open loop.
    pub fn thread_rate(&self) -> Option<f64> {
        let total = self.rate_iops.or(self
            .rate_bytes_per_s
            .map(|rate| rate as f64 / self.bs as f64));
        total.map(|rate| rate / f64::from(self.numjobs))
    }

    /// Sequential writes start with empty files, unless they overwrite.
    pub fn writes_fresh_files(&self) -> bool {
        self.rw == ReadWrite::Write && !self.overwrite
    }

    fn validate(&self) -> Result<(), EngineError> {
        self.validate_identity()?;
        self.validate_sizes()?;
        self.validate_rates()?;
        self.validate_times()?;
        self.validate_engine()?;
        self.validate_verify()
    }

    fn validate_identity(&self) -> Result<(), EngineError> {
        let prefix_ok = !self.prefix.is_empty() && !self.prefix.contains(['/', '\0']);
        require(self.format == FORMAT, || {
            format!("format: {:?} is not known; write {FORMAT:?}", self.format)
        })?;
        require(prefix_ok, || {
            format!("prefix: {:?} must be a file name without '/'", self.prefix)
        })?;
        require(self.directory.is_absolute(), || {
            format!(
                "directory: {} must be an absolute path",
                self.directory.display()
            )
        })
    }

    fn validate_sizes(&self) -> Result<(), EngineError> {
        require((1..=BLOCK_SIZE_MAX_BYTES).contains(&self.bs), || {
            format!(
                "bs: {} must be from 1 to {BLOCK_SIZE_MAX_BYTES} bytes",
                self.bs
            )
        })?;
        require((1..=THREADS_MAX).contains(&self.numjobs), || {
            format!("numjobs: {} must be from 1 to {THREADS_MAX}", self.numjobs)
        })?;
        require((1..=DEPTH_MAX).contains(&self.iodepth), || {
            format!("iodepth: {} must be from 1 to {DEPTH_MAX}", self.iodepth)
        })?;
        let files = u64::from(self.nrfiles) * u64::from(self.numjobs);
        require((1..=FILES_MAX).contains(&files), || {
            format!("nrfiles: nrfiles x numjobs is {files} and must be from 1 to {FILES_MAX}")
        })?;
        require(self.blocks_per_file() > 0, || {
            format!(
                "size: {} bytes over {} file(s) leaves less than one block of bs={}; raise size or lower bs",
                self.size, self.nrfiles, self.bs
            )
        })?;
        require(self.size <= i64::MAX as u64, || {
            format!("size: {} is beyond what a file can hold", self.size)
        })?;
        let slot_bytes = self.bs.next_multiple_of(4096);
        let buffers = slot_bytes * u64::from(self.iodepth) * u64::from(self.numjobs);
        require(buffers <= BUFFERS_MAX_BYTES, || {
            format!(
                "iodepth: bs x iodepth x numjobs needs {buffers} bytes of buffers, more than {BUFFERS_MAX_BYTES}; lower one of them"
            )
        })
    }

    fn validate_rates(&self) -> Result<(), EngineError> {
        require(self.rwmixread <= 100, || {
            format!(
                "rwmixread: {} must be from 0 to 100 percent",
                self.rwmixread
            )
        })?;
        require(
            self.rate_bytes_per_s.is_none() || self.rate_iops.is_none(),
            || "rate_iops: rate_bytes_per_s is set too; leave one of them null".to_owned(),
        )?;
        let sound = |rate: f64| rate.is_finite() && rate > 0.0 && rate <= 1e9;
        require(self.thread_rate().is_none_or(sound), || {
            "rate_iops: the rate must be above 0 and at most 1e9 operations per second; null for none"
                .to_owned()
        })?;
        require(self.layout_rate_bytes_per_s != Some(0), || {
            "layout_rate_bytes_per_s: must be above 0; null for no limit".to_owned()
        })
    }

    fn validate_times(&self) -> Result<(), EngineError> {
        require(INTERVAL_NS.contains(&self.interval_ns), || {
            format!(
                "interval_ns: {} must be from 100 ms ({}) to 10 s ({})",
                self.interval_ns,
                INTERVAL_NS.start(),
                INTERVAL_NS.end()
            )
        })?;
        require(!self.time_based || self.runtime_ns > 0, || {
            "runtime_ns: time_based needs a runtime above 0".to_owned()
        })?;
        require(
            self.deadline_ns > self.ramp_time_ns.saturating_add(self.runtime_ns),
            || {
                format!(
                    "deadline_ns: {} must be beyond ramp_time_ns + runtime_ns ({})",
                    self.deadline_ns,
                    self.ramp_time_ns.saturating_add(self.runtime_ns)
                )
            },
        )
    }

    fn validate_engine(&self) -> Result<(), EngineError> {
        require(!(self.engine.is_blocking() && self.iodepth > 1), || {
            format!(
                "iodepth: {} with an engine that does one call at a time (psync, mmap); \
                 use engine io_uring, or numjobs instead of iodepth",
                self.iodepth
            )
        })?;
        require(
            !self.sqthread_poll || self.engine == EngineName::IoUring,
            || {
                "sqthread_poll: only io_uring has a submission thread; use sqthread_poll: false"
                    .to_owned()
            },
        )?;
        require(!(self.engine == EngineName::Mmap && self.direct), || {
            "direct: mmap goes through the page cache; use direct: false, or engine psync or io_uring"
                .to_owned()
        })?;
        require(!self.direct || self.bs.is_multiple_of(512), || {
            format!(
                "bs: {} with direct I/O must be a multiple of 512 bytes; or use direct: false",
                self.bs
            )
        })?;
        require(
            self.rw.writes() || (self.fsync == 0 && !self.end_fsync),
            || {
                "fsync: a job that only reads has nothing to sync; use fsync: 0 and end_fsync: false"
                .to_owned()
            },
        )?;
        require(!self.overwrite || self.rw.writes(), || {
            "overwrite: a job that only reads overwrites nothing; use overwrite: false".to_owned()
        })
    }

    fn validate_verify(&self) -> Result<(), EngineError> {
        require(
            !self.verify || self.bs.is_multiple_of(BLOCK_BYTES as u64),
            || {
                format!(
                    "verify: bs={} must be a multiple of {BLOCK_BYTES}, the unit of verification",
                    self.bs
                )
            },
        )?;
        require(!(self.verify && self.rw == ReadWrite::Rw), || {
            "verify: with rw=rw a block can be read while it is written; use rw=randrw".to_owned()
        })?;
        require(!(self.verify && self.engine == EngineName::Null), || {
            "verify: the null engine moves no data; use verify: false".to_owned()
        })
    }
}

fn require(holds: bool, words: impl FnOnce() -> String) -> Result<(), EngineError> {
    if holds {
        Ok(())
    } else {
        Err(EngineError::Job(words()))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A small valid job that tests change.
    pub fn example() -> Value {
        json!({
            "format": FORMAT, "trial": "t0001", "directory": "/nowhere", "prefix": "data",
            "rw": "randread", "rwmixread": 50, "bs": 4096, "size": 1 << 20, "nrfiles": 1, "numjobs": 1,
            "iodepth": 1, "engine": "psync", "direct": false, "overwrite": false, "fsync": 0,
            "end_fsync": false, "time_based": false, "runtime_ns": 0, "ramp_time_ns": 0,
            "rate_bytes_per_s": null, "rate_iops": null, "arrival": "constant", "verify": false,
            "incompressible": true, "sqthread_poll": false, "seed": 1, "generation": 1, "interval_ns": 100_000_000,
            "deadline_ns": 60_000_000_000_u64, "parent_pid": null
        })
    }

    fn refusal(changes: Value) -> String {
        let mut job = example();
        for (key, value) in changes.as_object().unwrap() {
            job[key] = value.clone();
        }
        match Job::parse(&job.to_string()) {
            Err(EngineError::Job(text)) => text,
            other => panic!("{changes} gave {other:?}"),
        }
    }

    #[test]
    fn the_example_is_valid_and_round_trips() {
        let job = Job::parse(&example().to_string()).unwrap();
        assert_eq!(
            Job::parse(&serde_json::to_string(&job).unwrap()).unwrap(),
            job
        );
    }

    #[test]
    fn every_missing_key_is_named() {
        for key in example().as_object().unwrap().keys() {
            let mut job = example();
            job.as_object_mut().unwrap().remove(key);
            let text = Job::parse(&job.to_string()).unwrap_err().to_string();
            assert!(text.contains(key.as_str()), "{key}: {text}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused() {
        assert!(refusal(json!({"blocksize": 4096})).contains("blocksize"));
    }

    #[test]
    fn contradictions_name_the_key_and_the_remedy() {
        for (changes, key, remedy) in [
            (json!({"iodepth": 2}), "iodepth", "io_uring"),
            (json!({"engine": "mmap", "direct": true}), "direct", "psync"),
            (
                json!({"rate_iops": 10.0, "rate_bytes_per_s": 10}),
                "rate_iops",
                "null",
            ),
            (json!({"rate_iops": 0.0}), "rate_iops", "above 0"),
            (
                json!({"verify": true, "bs": 1000}),
                "verify",
                "multiple of 4096",
            ),
            (json!({"verify": true, "rw": "rw"}), "verify", "randrw"),
            (json!({"direct": true, "bs": 1000}), "bs", "multiple of 512"),
            (json!({"fsync": 4}), "fsync", "0"),
            (json!({"size": 100}), "size", "raise size"),
            (json!({"time_based": true}), "runtime_ns", "above 0"),
            (
                json!({"runtime_ns": 60_000_000_000_u64}),
                "deadline_ns",
                "beyond",
            ),
            (json!({"interval_ns": 1}), "interval_ns", "100 ms"),
            (json!({"directory": "here"}), "directory", "absolute"),
            (json!({"prefix": "../x"}), "prefix", "without '/'"),
            (
                json!({"format": "leadline.job/2"}),
                "format",
                "leadline.job/1",
            ),
            (json!({"rwmixread": 101}), "rwmixread", "0 to 100"),
            (json!({"iodepth": 0}), "iodepth", "1 to"),
        ] {
            let text = refusal(changes);
            assert!(text.starts_with(key) && text.contains(remedy), "{text}");
        }
    }
}
