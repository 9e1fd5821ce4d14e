//! A transfer, every default explicit, and the refusal of contradictions.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::error::EngineError;
use crate::geometry::Shared;
use crate::io::Direction;
use crate::job::{
    self, Arrival, Generator, Job, ReadBack, ReadWrite, located, present, require, require_common,
};
use crate::schemes::{EngineName, Location};

/// The format of the JSON that `TransferJob::parse` reads.
pub const FORMAT: &str = "leadline.transfer/1";
const STREAMS_MAX: u32 = 1024;
const IN_FLIGHT_MAX: u32 = 4096;
const BUFFER_BYTES: std::ops::RangeInclusive<u64> = 4096..=1 << 30;
const BUFFER_UNIT_BYTES: u64 = 4096;
const DIRECT_UNIT_BYTES: u64 = 512;
const SOURCES_MAX: usize = 1 << 16;
/// Of 48 bytes each: the log is 4.8 GB at most.
const ACKS_MAX: u64 = 100_000_000;
const MEMORY_MAX_BYTES: u64 = 64 << 30;

/// Which way data flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transfer {
    Write,
    Read,
    /// Some streams write while the others read.
    Duplex,
}

/// What is computed of each stream's file as its data flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Checksum {
    Adler32,
    Crc32c,
    Md5,
}

/// One trial's transfer. Sizes in bytes, times in ns; `size` is of each stream's file, the rate a total of all streams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferJob {
    pub format: String,
    pub trial: String,
    pub directory: PathBuf,
    pub prefix: String,
    pub transfer: Transfer,
    pub streams: u32,
    /// The last of the streams, which read.
    pub readers: u32,
    pub buffer: u64,
    /// Requests of each stream.
    pub in_flight: u32,
    pub size: u64,
    pub engine: EngineName,
    pub direct: bool,
    #[serde(deserialize_with = "present")]
    pub checksum: Option<Checksum>,
    /// Files that are sent, dealt out over the streams that write; none: generated data.
    pub sources: Vec<PathBuf>,
    /// Round the file until the time is over; else the whole file once.
    pub time_based: bool,
    pub runtime_ns: u64,
    pub ramp_time_ns: u64,
    /// Each written file is synced after its last acknowledgement.
    pub end_sync: bool,
    #[serde(deserialize_with = "present")]
    pub rate_bytes_per_s: Option<u64>,
    pub incompressible: bool,
    pub seed: u64,
    pub generation: u32,
    pub interval_ns: u64,
    pub deadline_ns: u64,
    #[serde(deserialize_with = "present")]
    pub parent_pid: Option<i32>,
    /// Where the log of acknowledgements goes; null: there is none.
    #[serde(deserialize_with = "present")]
    pub acks: Option<PathBuf>,
    /// Of all streams; what comes beyond is counted only.
    pub acks_max: u64,
    /// Bounds `layout`; may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout_rate_bytes_per_s: Option<u64>,
    /// Where `directory` is, when no mount holds it: a URL.
    #[serde(default, deserialize_with = "located")]
    pub location: Option<Location>,
}

impl TransferJob {
    /// Reads and validates. Every error names the key and what would be right.
    pub fn parse(json: &str) -> Result<Self, EngineError> {
        let job: Self = job::read(json)?;
        job.validate()?;
        Ok(job)
    }

    /// Streams that write: the first ones.
    pub fn writers(&self) -> u32 {
        self.streams - self.readers
    }

    /// What a stream does.
    pub fn direction(&self, stream: u32) -> Direction {
        if stream < self.writers() {
            Direction::Write
        } else {
            Direction::Read
        }
    }

    /// Bytes of all buffers of all requests in flight.
    pub fn buffers_bytes(&self) -> u64 {
        u64::from(self.streams) * u64::from(self.in_flight) * self.buffer
    }

    /// Bytes of memory that it takes at most.
    fn memory_bytes(&self) -> u64 {
        let streams = (self.writers(), self.readers);
        self.engine
            .memory
            .bytes(streams, self.buffer, self.in_flight)
    }

    /// Requests per second of each stream in open loop.
    pub fn stream_rate(&self) -> Option<f64> {
        let total = self.rate_bytes_per_s?;
        Some(total as f64 / self.buffer as f64 / f64::from(self.streams))
    }

    /// The same files as a job of data has them: one for each stream, named and filled as all are.
    pub fn as_data(&self) -> Job {
        Job {
            format: job::FORMAT.to_owned(),
            trial: self.trial.clone(),
            directory: self.directory.clone(),
            prefix: self.prefix.clone(),
            rw: match self.transfer {
                Transfer::Write => ReadWrite::Write,
                Transfer::Read => ReadWrite::Read,
                Transfer::Duplex => ReadWrite::Rw,
            },
            rwmixread: 50,
            // A file ends where it ends, and need not be whole buffers.
            bs: 1,
            size: self.size,
            nrfiles: 1,
            numjobs: self.streams,
            iodepth: self.in_flight,
            engine: self.engine,
            direct: self.direct,
            overwrite: false,
            fsync: 0,
            end_fsync: self.end_sync,
            time_based: self.time_based,
            runtime_ns: self.runtime_ns,
            ramp_time_ns: self.ramp_time_ns,
            rate_bytes_per_s: self.rate_bytes_per_s,
            rate_iops: None,
            arrival: Arrival::Constant,
            verify: false,
            incompressible: self.incompressible,
            sqthread_poll: false,
            seed: self.seed,
            generation: self.generation,
            interval_ns: self.interval_ns,
            deadline_ns: self.deadline_ns,
            parent_pid: self.parent_pid,
            layout_rate_bytes_per_s: self.layout_rate_bytes_per_s,
            bssplit: None,
            fdatasync: 0,
            iodepth_batch: 0,
            thinktime_ns: 0,
            thinktime_blocks: 1,
            offset: 0,
            offset_increment: 0,
            random_distribution: Distribution::Map,
            buffer_compress_percentage: 0,
            dedupe_percentage: 0,
            shared: Shared::None,
            io_size: 0,
            percentage_random: 100,
            one_map: false,
            invalidate: false,
            generator: Generator::Leadline,
            read_back: ReadBack::Same,
            descriptor: None,
            ledger: None,
            location: self.location.clone(),
        }
    }

    fn validate(&self) -> Result<(), EngineError> {
        require_common(
            (&self.format, FORMAT),
            &self.prefix,
            &self.directory,
            self.interval_ns,
        )?;
        self.validate_streams()?;
        self.validate_sizes()?;
        self.validate_times()?;
        self.validate_engine()?;
        job::require_location(self.location.as_ref(), self.engine)?;
        self.validate_ends()?;
        self.validate_memory()
    }

    fn validate_streams(&self) -> Result<(), EngineError> {
        let (streams, readers) = (self.streams, self.readers);
        require((1..=STREAMS_MAX).contains(&streams), || {
            format!("streams: {streams} must be from 1 to {STREAMS_MAX}")
        })?;
        let (fits, wanted) = match self.transfer {
            Transfer::Write => (readers == 0, "0: transfer is write".to_owned()),
            Transfer::Read => (
                readers == streams,
                format!("{streams}, as many as streams: transfer is read"),
            ),
            Transfer::Duplex => (
                (1..streams).contains(&readers),
                "from 1 to one less than streams: with duplex some write and some read".to_owned(),
            ),
        };
        require(fits, || format!("readers: {readers} must be {wanted}"))
    }

    fn validate_sizes(&self) -> Result<(), EngineError> {
        require((1..=IN_FLIGHT_MAX).contains(&self.in_flight), || {
            format!(
                "in_flight: {} must be from 1 to {IN_FLIGHT_MAX}",
                self.in_flight
            )
        })?;
        let whole = self.buffer.is_multiple_of(BUFFER_UNIT_BYTES);
        require(whole && BUFFER_BYTES.contains(&self.buffer), || {
            let (least, most) = (BUFFER_BYTES.start(), BUFFER_BYTES.end());
            format!(
                "buffer: {} must be from {least} to {most} bytes and a multiple of {BUFFER_UNIT_BYTES}",
                self.buffer
            )
        })?;
        require(self.size >= self.buffer, || {
            format!(
                "size: {} is less than one buffer of {} bytes; raise size or lower buffer",
                self.size, self.buffer
            )
        })?;
        let all = self.size.checked_mul(u64::from(self.streams));
        require(all.is_some_and(|bytes| bytes <= i64::MAX as u64), || {
            format!(
                "size: {} for each of {} streams is beyond what files can hold; lower size or streams",
                self.size, self.streams
            )
        })?;
        let whole = self.size.is_multiple_of(DIRECT_UNIT_BYTES);
        require(!self.direct || whole, || {
            format!(
                "size: {} with direct I/O must be a multiple of {DIRECT_UNIT_BYTES} bytes; or use direct: false",
                self.size
            )
        })
    }

    fn validate_times(&self) -> Result<(), EngineError> {
        job::require_times(
            self.time_based,
            (self.ramp_time_ns, self.runtime_ns),
            self.deadline_ns,
        )?;
        let sound = |rate: f64| rate > 0.0 && rate <= 1e9;
        require(self.stream_rate().is_none_or(sound), || {
            "rate_bytes_per_s: must be above 0; null for none".to_owned()
        })?;
        require(self.layout_rate_bytes_per_s != Some(0), || {
            "layout_rate_bytes_per_s: must be above 0; null for no limit".to_owned()
        })
    }

    fn validate_engine(&self) -> Result<(), EngineError> {
        let name = self.engine.name();
        require(!self.engine.blocking || self.in_flight == 1, || {
            format!(
                "in_flight: {} with engine {name}, which does one call at a time; use 1, or engine io_uring",
                self.in_flight
            )
        })?;
        require(self.engine.direct || !self.direct, || {
            format!(
                "direct: {name} goes through the page cache; use direct: false, or engine io_uring"
            )
        })?;
        let whole = |bytes| self.buffer.is_multiple_of(bytes);
        let object = self.location.as_ref().and_then(Location::whole_object);
        let writes = self.transfer != Transfer::Read;
        require(!writes || object.is_none_or(whole), || {
            format!(
                "buffer: {} must be a multiple of object_size={}: objects are written whole there",
                self.buffer,
                object.unwrap_or_default()
            )
        })
    }

    /// What is sent, and what is kept of the end of it.
    fn validate_ends(&self) -> Result<(), EngineError> {
        let writes = self.transfer != Transfer::Read;
        require(writes || !self.end_sync, || {
            "end_sync: a transfer that only reads has nothing to sync; use end_sync: false"
                .to_owned()
        })?;
        require(!self.end_sync || self.engine.syncs(), || {
            let name = self.engine.name();
            format!("end_sync: engine {name} has no call that syncs a file; use end_sync: false")
        })?;
        require(writes || self.sources.is_empty(), || {
            "sources: a transfer that only reads sends nothing; use sources: []".to_owned()
        })?;
        require(self.sources.len() <= SOURCES_MAX, || {
            let files = self.sources.len();
            format!("sources: {files} files are more than {SOURCES_MAX}; name fewer")
        })?;
        let relative = self.sources.iter().find(|path| !path.is_absolute());
        require(relative.is_none(), || {
            let path = relative.map(|path| path.display().to_string());
            format!(
                "sources: {} must be an absolute path",
                path.unwrap_or_default()
            )
        })?;
        require((1..=ACKS_MAX).contains(&self.acks_max), || {
            format!("acks_max: {} must be from 1 to {ACKS_MAX}", self.acks_max)
        })
    }

    fn validate_memory(&self) -> Result<(), EngineError> {
        let bytes = self.memory_bytes();
        require(bytes <= MEMORY_MAX_BYTES, || {
            format!(
                "in_flight: {} streams with {} requests of {} bytes need {bytes} bytes of memory with engine {}, \
                 more than {MEMORY_MAX_BYTES}; lower one of them",
                self.streams,
                self.in_flight,
                self.buffer,
                self.engine.name()
            )
        })
    }
}
