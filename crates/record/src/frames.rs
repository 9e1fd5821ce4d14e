//! A record: its intervals, how it is written frame by frame (each is one write, so that a killed process leaves whole
//! frames), and how one of any version up to ours is read. A cut tail is normal (the worker was killed); other damage is
//! an error.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plain::read_plain;
use crate::{
    KIND_HEADER, KIND_INTERVAL, KIND_SUMMARY, MAGIC, PAYLOAD_BYTES_MAX, VERSION, checksum,
    new_plain,
};

/// All that a record holds. Without a summary the trial did not end by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub header: Value,
    pub intervals: Vec<Interval>,
    pub summary: Option<Value>,
    /// The last frame is incomplete, or the summary is missing.
    pub truncated: bool,
}

/// A day of a thousand intervals a second stays below.
const RECORD_BYTES_MAX: u64 = 4 << 30;

/// Reads the record at `path`.
pub fn read(path: &Path) -> Result<Record, RecordError> {
    parse(&read_plain(path, RECORD_BYTES_MAX)?)
}

/// Reads a record from memory; never panics, whatever the bytes.
pub fn parse(bytes: &[u8]) -> Result<Record, RecordError> {
    let mut offset = preamble(bytes)?;
    let mut header = None;
    let mut intervals = Vec::new();
    let mut summary = None;
    let mut cut = false;
    while offset < bytes.len() {
        let Some((kind, payload)) = frame(bytes, offset)? else {
            cut = true;
            break;
        };
        let damaged = |reason: String| RecordError::Damaged { offset, reason };
        match kind {
            KIND_HEADER if header.is_none() => header = Some(json(payload).map_err(damaged)?),
            KIND_INTERVAL => intervals.push(Interval::decode(payload).map_err(damaged)?),
            KIND_SUMMARY => summary = Some(json(payload).map_err(damaged)?),
            _ => {}
        }
        offset += FRAME_HEAD_BYTES + payload.len();
    }
    let truncated = cut || summary.is_none();
    Ok(Record {
        header: header.unwrap_or(Value::Null),
        intervals,
        summary,
        truncated,
    })
}

const FRAME_HEAD_BYTES: usize = 12;

fn preamble(bytes: &[u8]) -> Result<usize, RecordError> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or(RecordError::NotARecord)?;
    let version = rest.first_chunk::<4>().ok_or(RecordError::NotARecord)?;
    match u32::from_le_bytes(*version) {
        0 => Err(RecordError::NotARecord),
        found if found > VERSION => Err(RecordError::NewerVersion {
            found,
            known: VERSION,
        }),
        _ => Ok(MAGIC.len() + 4),
    }
}

/// The frame at `offset`; `None` when the file ends within it.
fn frame(bytes: &[u8], offset: usize) -> Result<Option<(u32, &[u8])>, RecordError> {
    let rest = &bytes[offset..];
    let Some(head) = rest.first_chunk::<FRAME_HEAD_BYTES>() else {
        return Ok(None);
    };
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (kind, length, expected) = (word(0), word(4) as usize, word(8));
    let damaged = |reason: &str| RecordError::Damaged {
        offset,
        reason: reason.to_owned(),
    };
    if rest.iter().all(|byte| *byte == 0) {
        // A crash of the host can leave a tail of zeros that the file system never filled.
        return Ok(None);
    }
    if length > PAYLOAD_BYTES_MAX {
        return Err(damaged("a frame's length is beyond the limit"));
    }
    let Some(payload) = rest.get(FRAME_HEAD_BYTES..FRAME_HEAD_BYTES + length) else {
        return Ok(None);
    };
    if checksum(kind, payload) != expected {
        return Err(damaged("a frame's checksum does not match"));
    }
    Ok(Some((kind, payload)))
}

fn json(payload: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(payload).map_err(|error| error.to_string())
}

/// Why a record could not be written or read.
#[derive(Debug)]
pub enum RecordError {
    /// The system refused; carries what was done to which file.
    Io(std::io::Error),
    /// The first bytes are not those of a record.
    NotARecord,
    /// Written by a later leadline.
    NewerVersion { found: u32, known: u32 },
    /// The bytes at this offset cannot be what a writer wrote.
    Damaged { offset: usize, reason: String },
    /// A frame would exceed the format's limit.
    TooLarge { bytes: usize },
}

impl fmt::Display for RecordError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(out, "{error}"),
            Self::NotARecord => write!(
                out,
                "this is no trial record of leadline (its first bytes differ)"
            ),
            Self::NewerVersion { found, known } => write!(
                out,
                "the trial record has version {found}; this leadline reads up to version {known}: use a newer leadline"
            ),
            Self::Damaged { offset, reason } => {
                write!(
                    out,
                    "the trial record is damaged at byte {offset}: {reason}"
                )
            }
            Self::TooLarge { bytes } => {
                write!(
                    out,
                    "a frame of {bytes} bytes is beyond the trial record's limit"
                )
            }
        }
    }
}

impl std::error::Error for RecordError {}

impl From<std::io::Error> for RecordError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// An open record. Dropping it without a summary leaves a record that readers call truncated.
#[derive(Debug)]
pub struct Writer<W: Write = File> {
    out: W,
}

impl Writer<File> {
    /// Creates the file, or replaces a plain one, and writes the header frame.
    pub fn create(path: &Path, header: &Value) -> Result<Self, RecordError> {
        Self::start(new_plain(path)?, header)
    }
}

impl<W: Write> Writer<W> {
    /// Writes magic, version and the header frame to `out`.
    pub fn start(mut out: W, header: &Value) -> Result<Self, RecordError> {
        let mut preamble = MAGIC.to_vec();
        preamble.extend_from_slice(&VERSION.to_le_bytes());
        out.write_all(&preamble)?;
        let mut writer = Self { out };
        writer.frame(KIND_HEADER, &json_bytes(header))?;
        Ok(writer)
    }

    /// Appends one interval.
    pub fn interval(&mut self, interval: &Interval) -> Result<(), RecordError> {
        self.frame(KIND_INTERVAL, &interval.encode())
    }

    /// Appends the summary, which completes the record.
    pub fn summary(&mut self, summary: &Value) -> Result<(), RecordError> {
        self.frame(KIND_SUMMARY, &json_bytes(summary))
    }

    fn frame(&mut self, kind: u32, payload: &[u8]) -> Result<(), RecordError> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(RecordError::TooLarge {
                bytes: payload.len(),
            });
        }
        let mut frame = Vec::with_capacity(12 + payload.len());
        frame.extend_from_slice(&kind.to_le_bytes());
        frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        frame.extend_from_slice(&checksum(kind, payload).to_le_bytes());
        frame.extend_from_slice(payload);
        self.out.write_all(&frame)?;
        self.out.flush()?;
        Ok(())
    }
}

fn json_bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a JSON value can always be written")
}

/// What happened in one direction between `start_ns` and `end_ns` (since the trial's start).
///
/// A thread that was stuck in a call delivers late: several intervals may then carry the same index
/// and direction, and their sum is the interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub index: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    /// False during the ramp time.
    pub measured: bool,
    /// `read`, `write` or `sync`.
    pub direction: String,
    pub bytes: u64,
    pub operations: u64,
    /// Transfers that moved fewer bytes than asked and were continued.
    pub short: u64,
    /// Operations in flight, averaged over the interval's time.
    pub in_flight_mean: f64,
    pub late_ns_max: u64,
    pub late_ns_sum: u64,
    /// Bytes per thread, by thread number.
    pub threads: Vec<u64>,
    #[serde(skip)]
    pub histograms: Histograms,
}

/// Latency histograms, serialised in the HdrHistogram V2 format (ns).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histograms {
    pub submission: Vec<u8>,
    pub completion: Vec<u8>,
    pub total: Vec<u8>,
    /// From the intended start; only in open loop.
    pub intended: Option<Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
struct Meta {
    #[serde(flatten)]
    interval: Interval,
    /// Lengths of the histograms that follow: submission, completion, total, intended.
    histogram_bytes: [Option<u32>; 4],
}

impl Interval {
    /// `length of the JSON (u32) | JSON | histograms one after the other`.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let parts = [
            Some(&self.histograms.submission),
            Some(&self.histograms.completion),
            Some(&self.histograms.total),
            self.histograms.intended.as_ref(),
        ];
        let meta = Meta {
            interval: Self {
                histograms: Histograms::default(),
                ..self.clone()
            },
            histogram_bytes: parts.map(|part| part.map(|bytes| bytes.len() as u32)),
        };
        let json = serde_json::to_vec(&meta).expect("an interval is plain data");
        let mut payload = Vec::with_capacity(4 + json.len() + 4096);
        payload.extend_from_slice(&(json.len() as u32).to_le_bytes());
        payload.extend_from_slice(&json);
        for part in parts.into_iter().flatten() {
            payload.extend_from_slice(part);
        }
        payload
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<Self, String> {
        let (length, rest) = payload
            .split_first_chunk::<4>()
            .ok_or("an interval without its length")?;
        let json = rest
            .get(..u32::from_le_bytes(*length) as usize)
            .ok_or("an interval's JSON is cut")?;
        let meta: Meta = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let mut rest = &rest[json.len()..];
        let mut take = |length: u32| -> Result<Vec<u8>, String> {
            let (part, after) = rest
                .split_at_checked(length as usize)
                .ok_or("a histogram is cut")?;
            rest = after;
            Ok(part.to_vec())
        };
        let [submission, completion, total, intended] = meta.histogram_bytes;
        let mut interval = meta.interval;
        interval.histograms = Histograms {
            submission: take(submission.unwrap_or(0))?,
            completion: take(completion.unwrap_or(0))?,
            total: take(total.unwrap_or(0))?,
            intended: intended.map(take).transpose()?,
        };
        Ok(interval)
    }
}
