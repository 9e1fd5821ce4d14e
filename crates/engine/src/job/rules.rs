//! The refusal of jobs that contradict themselves or ask for more than the engine can do.

use std::path::Path;

use super::geometry::{BLOCK_BYTES, Shared};
use super::{FORMAT, Job, ReadBack, ReadWrite};
use crate::distribution::Distribution;
use crate::error::EngineError;
use crate::schemes::{EngineName, Location};

const INTERVAL_NS: std::ops::RangeInclusive<u64> = 100_000_000..=10_000_000_000;
const BLOCK_SIZE_MAX_BYTES: u64 = 256 << 20;
const THREADS_MAX: u32 = 1024;
const DEPTH_MAX: u32 = 4096;
/// Of the files that are laid out for one job.
pub const FILES_MAX: u64 = 1 << 20;
const BUFFERS_MAX_BYTES: u64 = 64 << 30;
/// A ledger may take no more: for 1 TiB of data.
const LEDGER_MAX_BYTES: u64 = 1 << 30;
const MAP_BLOCKS_MAX: u64 = 1 << 31;

/// What holds for jobs of every kind: the format that is meant, names, and the interval of the record.
pub fn require_common(
    (format, wanted): (&str, &str),
    prefix: &str,
    directory: &Path,
    interval_ns: u64,
) -> Result<(), EngineError> {
    let prefix_ok = !prefix.is_empty() && !prefix.contains(['/', '\0']);
    require(format == wanted, || {
        format!("format: {format:?} is not known; write {wanted:?}")
    })?;
    require(prefix_ok, || {
        format!("prefix: {prefix:?} must be a file name without '/'")
    })?;
    require(directory.is_absolute(), || {
        let directory = directory.display();
        format!("directory: {directory} must be an absolute path")
    })?;
    require(INTERVAL_NS.contains(&interval_ns), || {
        let (least, most) = (INTERVAL_NS.start(), INTERVAL_NS.end());
        format!("interval_ns: {interval_ns} must be from 100 ms ({least}) to 10 s ({most})")
    })
}

/// A trial ends after its time, by a deadline at the latest.
pub fn require_times(
    time_based: bool,
    (ramp_time_ns, runtime_ns): (u64, u64),
    deadline_ns: u64,
) -> Result<(), EngineError> {
    require(!time_based || runtime_ns > 0, || {
        "runtime_ns: time_based needs a runtime above 0".to_owned()
    })?;
    let end_ns = ramp_time_ns.saturating_add(runtime_ns);
    require(deadline_ns > end_ns, || {
        format!("deadline_ns: {deadline_ns} must be beyond ramp_time_ns + runtime_ns ({end_ns})")
    })
}

/// An engine and a URL belong together.
pub fn require_location(
    location: Option<&Location>,
    engine: EngineName,
) -> Result<(), EngineError> {
    let name = engine.name();
    match location {
        None => require(!engine.needs_location(), || {
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

/// An error in `words` unless `holds`.
pub fn require(holds: bool, words: impl FnOnce() -> String) -> Result<(), EngineError> {
    if holds {
        Ok(())
    } else {
        Err(EngineError::Job(words()))
    }
}

impl Job {
    pub(super) fn validate(&self) -> Result<(), EngineError> {
        require_common(
            (&self.format, FORMAT),
            &self.prefix,
            &self.directory,
            self.interval_ns,
        )?;
        self.validate_sizes()?;
        self.validate_rates()?;
        self.validate_times()?;
        self.validate_engine()?;
        require_location(self.location.as_ref(), self.engine)?;
        self.validate_verify()?;
        self.validate_places()?;
        self.validate_descriptor()?;
        self.validate_data()
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
        let all = self.size.checked_mul(u64::from(self.numjobs));
        require(all.is_some_and(|bytes| bytes <= i64::MAX as u64), || {
            format!(
                "size: {} for each of {} numjobs is beyond what files can hold; lower size or numjobs",
                self.size, self.numjobs
            )
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
        require_times(
            self.time_based,
            (self.ramp_time_ns, self.runtime_ns),
            self.deadline_ns,
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

    fn validate_verify(&self) -> Result<(), EngineError> {
        if !self.verify {
            let asked = self.ledger.is_some() || self.read_back == ReadBack::Other;
            return require(!asked, || {
                "verify: a ledger and read_back say what verification does; use verify: true"
                    .to_owned()
            });
        }
        require(self.bs.is_multiple_of(BLOCK_BYTES as u64), || {
            format!(
                "verify: bs={} must be a multiple of {BLOCK_BYTES}, the unit of verification",
                self.bs
            )
        })?;
        let repeats = self.bssplit.is_some()
            || self.random_distribution != Distribution::Map
            || self.percentage_random < 100;
        require(!(self.rw.is_mixed() && repeats), || {
            "verify: with bssplit, percentage_random, or random_distribution other than map, a block can be \
             read while it is written; use verify: false, or one direction"
                .to_owned()
        })?;
        require(self.rw != ReadWrite::Rw, || {
            "verify: with rw=rw a block can be read while it is written; use rw=randrw".to_owned()
        })?;
        require(self.engine.moves_data, || {
            "verify: the null engine moves no data; use verify: false".to_owned()
        })?;
        require(self.dedupe_percentage < 100, || {
            "verify: with dedupe_percentage=100 all writings are alike and a lost one is not seen; use verify: \
             false, or a smaller share"
                .to_owned()
        })?;
        let bytes = self.ledger_bytes();
        require(bytes <= LEDGER_MAX_BYTES, || {
            format!(
                "verify: to know what was written takes {bytes} bytes of memory for these files, more than \
                 {LEDGER_MAX_BYTES}; use a smaller size or numjobs, or verify: false"
            )
        })
    }

    /// What is open already is one file that is there, of a mounted file system or a device.
    fn validate_descriptor(&self) -> Result<(), EngineError> {
        let Some(descriptor) = self.descriptor else {
            return Ok(());
        };
        require(
            descriptor >= 0 && self.location.is_none() && self.engine.moves_data,
            || "descriptor: it is of an open file of this process; leave out location".to_owned(),
        )?;
        let one = self.numjobs == 1 || self.shared == Shared::Whole;
        require(self.nrfiles == 1 && one, || {
            "descriptor: it is one file; use nrfiles: 1, and shared: whole with several numjobs"
                .to_owned()
        })?;
        require(!self.writes_fresh_files() && !self.verify, || {
            "descriptor: what is open is not made anew, and nobody knows what is in it; use overwrite: true, \
             verify: false"
                .to_owned()
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
        require(self.percentage_random <= 100, || {
            format!(
                "percentage_random: {} must be from 0 to 100 percent",
                self.percentage_random
            )
        })?;
        require(self.percentage_random == 100 || self.rw.is_random(), || {
            "percentage_random: a sequential job has none; use 100".to_owned()
        })?;
        self.check_one_map()?;
        require(self.io_size == 0 || !self.time_based, || {
            "io_size: the clock ends a time_based job; use io_size: 0".to_owned()
        })?;
        require(self.thinktime_blocks > 0, || {
            "thinktime_blocks: must be at least 1".to_owned()
        })?;
        require(self.thinktime_ns == 0 || !self.is_open_loop(), || {
            "thinktime_ns: a rate sets the pace already; use thinktime_ns: 0, or no rate".to_owned()
        })
    }

    fn check_one_map(&self) -> Result<(), EngineError> {
        if !self.one_map {
            return Ok(());
        }
        let mapped = self.rw.is_random() && self.random_distribution == Distribution::Map;
        require(mapped && self.percentage_random == 100, || {
            "one_map: only operations that are all random, without repeats, have a map".to_owned()
        })?;
        require(self.bssplit.is_some(), || {
            "one_map: operations of one size have one map always; use one_map: false".to_owned()
        })?;
        let blocks = self.size / self.bs;
        require(blocks <= MAP_BLOCKS_MAX, || {
            format!(
                "one_map: {blocks} blocks of {} need a map of more than {} MiB for each thread; use larger \
                 blocks, a smaller size or random_distribution: random",
                self.bs,
                (MAP_BLOCKS_MAX / 8) >> 20
            )
        })
    }
}
