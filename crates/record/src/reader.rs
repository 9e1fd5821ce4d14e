//! Reads a record of any version up to ours. A cut tail is normal (the worker was killed); other damage is an error.

use std::path::Path;

use serde_json::Value;

use crate::{
    Interval, KIND_HEADER, KIND_INTERVAL, KIND_SUMMARY, MAGIC, PAYLOAD_BYTES_MAX, RecordError,
    VERSION, checksum, plain::read_plain,
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
