//! A job in fio's vocabulary, every default explicit, and the refusal of contradictions.
//! Knows nothing of how I/O is done.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

use crate::distribution::Distribution;
use crate::error::EngineError;
use crate::geometry::Shared;
use crate::pattern::BLOCK_BYTES;
use crate::schemes::{EngineName, Location};
use crate::sizes::Split;

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
    /// Bounds `layout`; may be left out.
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

    fn validate(&self) -> Result<(), EngineError> {
        self.validate_identity()?;
        self.validate_sizes()?;
        self.validate_rates()?;
        self.validate_times()?;
        self.validate_engine()?;
        self.validate_location()?;
        self.validate_verify()?;
        self.validate_places()?;
        self.validate_data()
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
        if let Some(problem) = self.bssplit.as_ref().and_then(|s| s.problem(self.bs)) {
            return Err(EngineError::Job(problem));
        }
        let largest = self.largest_block();
        require(largest <= BLOCK_SIZE_MAX_BYTES, || {
            format!("bssplit: {largest} must be at most {BLOCK_SIZE_MAX_BYTES} bytes")
        })?;
        require(self.size / u64::from(self.nrfiles) >= largest, || {
            format!(
                "size: {} bytes over {} file(s) leaves less than one block of bs={largest}; raise size or lower bs",
                self.size, self.nrfiles
            )
        })?;
        require(self.size <= i64::MAX as u64, || {
            format!("size: {} is beyond what a file can hold", self.size)
        })?;
        let slot_bytes = largest.next_multiple_of(4096);
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
        require(!(self.engine.blocking && self.iodepth > 1), || {
            format!(
                "iodepth: {} with an engine that does one call at a time (psync, mmap); \
                 use engine io_uring, or numjobs instead of iodepth",
                self.iodepth
            )
        })?;
        require(!self.sqthread_poll || self.engine.submission_thread, || {
            "sqthread_poll: only io_uring has a submission thread; use sqthread_poll: false"
                .to_owned()
        })?;
        require(self.engine.direct || !self.direct, || {
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
            self.rw.writes() || (self.fsync == 0 && self.fdatasync == 0 && !self.end_fsync),
            || {
                "fsync: a job that only reads has nothing to sync; use fsync: 0, fdatasync: 0, end_fsync: false"
                .to_owned()
            },
        )?;
        require(!self.overwrite || self.rw.writes(), || {
            "overwrite: a job that only reads overwrites nothing; use overwrite: false".to_owned()
        })
    }

    fn validate_location(&self) -> Result<(), EngineError> {
        let name = self.engine.name();
        match &self.location {
            None => require(!self.engine.needs_location(), || {
                format!("location: engine {name} needs a URL; or use another engine")
            }),
            Some(location) => {
                let wanted = location.engine().name();
                require(wanted == name, || {
                    format!("engine: {location} needs engine {wanted}, not {name}")
                })
            }
        }
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
        let repeats = self.bssplit.is_some() || self.random_distribution != Distribution::Map;
        require(!(self.verify && self.rw.is_mixed() && repeats), || {
            "verify: with bssplit, or random_distribution other than map, a block can be read while it is \
             written; use verify: false, or one direction"
                .to_owned()
        })?;
        require(!(self.verify && self.rw == ReadWrite::Rw), || {
            "verify: with rw=rw a block can be read while it is written; use rw=randrw".to_owned()
        })?;
        require(!self.verify || self.engine.moves_data, || {
            "verify: the null engine moves no data; use verify: false".to_owned()
        })
    }

    fn validate_data(&self) -> Result<(), EngineError> {
        for (name, percent) in [
            (
                "buffer_compress_percentage",
                self.buffer_compress_percentage,
            ),
            ("dedupe_percentage", self.dedupe_percentage),
        ] {
            require(percent <= 100, || {
                format!("{name}: {percent} must be from 0 to 100 percent")
            })?;
            require(percent == 0 || !self.incompressible, || {
                format!(
                    "{name}: with incompressible: true nothing may be; use incompressible: false"
                )
            })?;
        }
        require(self.fsync == 0 || self.fdatasync == 0, || {
            "fdatasync: fsync is set too; leave one of them 0".to_owned()
        })?;
        require(self.thinktime_blocks > 0, || {
            "thinktime_blocks: must be at least 1".to_owned()
        })?;
        require(self.thinktime_ns == 0 || !self.is_open_loop(), || {
            "thinktime_ns: a rate sets the pace already; use thinktime_ns: 0, or no rate".to_owned()
        })
    }
}

/// An error in `words` unless `holds`.
pub fn require(holds: bool, words: impl FnOnce() -> String) -> Result<(), EngineError> {
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
            (json!({"offset": 1 << 20}), "offset", "raise size"),
            (json!({"offset": 100}), "offset", "multiples of bs"),
            (
                json!({"rw": "write", "fsync": 2, "fdatasync": 2}),
                "fdatasync",
                "leave one",
            ),
            (json!({"fdatasync": 2}), "fsync", "0"),
            (
                json!({"dedupe_percentage": 20}),
                "dedupe_percentage",
                "incompressible: false",
            ),
            (
                json!({"buffer_compress_percentage": 101, "incompressible": false}),
                "buffer_compress_percentage",
                "100",
            ),
            (
                json!({"thinktime_ns": 5, "rate_iops": 3.0}),
                "thinktime_ns",
                "no rate",
            ),
            (
                json!({"shared": "strided", "nrfiles": 2}),
                "shared",
                "nrfiles: 1",
            ),
            (
                json!({"shared": "segmented", "offset": 4096}),
                "shared",
                "offset: 0",
            ),
            (
                json!({"bssplit": {"read": [[4096, 50]], "write": [[4096, 100]]}}),
                "bssplit",
                "100",
            ),
            (
                json!({"bssplit": {"read": [[6144, 100]], "write": [[4096, 100]]}}),
                "bssplit",
                "multiple of bs",
            ),
            (
                json!({"rw": "read", "random_distribution": "zipf:1.2"}),
                "random_distribution",
                "map",
            ),
            (
                json!({"verify": true, "rw": "randrw", "random_distribution": "random"}),
                "verify",
                "one direction",
            ),
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
