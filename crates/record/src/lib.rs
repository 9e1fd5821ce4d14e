//! The trial record file: what a worker writes while it measures, so that a killed trial keeps its intervals.
//! Knows the format only; it neither measures nor interprets histograms.
//!
//! ```text
//! magic "LLREC\r\n\x1a" (8 bytes) | version (u32)
//! frame*:  kind (u32) | payload length (u32) | CRC-32 of kind, length and payload (u32) | payload
//! ```
//!
//! All integers are little-endian. Kinds: 1 header (JSON), 2 interval (see [`Interval`]), 3 summary (JSON).
//! The header comes first; frames of an unknown kind are skipped.

#![forbid(unsafe_code)]

mod frames;
mod plain;
pub mod trace;

pub use frames::{Histograms, Interval, Record, RecordError, Writer, parse, read};
pub use plain::{new_plain, open_plain, read_plain};

/// The first bytes of a record; the line ends and the DOS end-of-file show a file that was converted.
pub const MAGIC: [u8; 8] = *b"LLREC\r\n\x1a";
/// The version that this crate writes; it reads every version up to this one.
pub const VERSION: u32 = 1;
/// No payload is larger: a length beyond it is damage, not data.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

const KIND_HEADER: u32 = 1;
const KIND_INTERVAL: u32 = 2;
const KIND_SUMMARY: u32 = 3;

/// Covers kind and length too: a flipped kind would otherwise make an interval vanish silently.
fn checksum(kind: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&kind.to_le_bytes());
    hasher.update(&(payload.len() as u32).to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}
