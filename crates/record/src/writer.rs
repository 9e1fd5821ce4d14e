//! Writes a record frame by frame; each frame is one write, so that a killed process leaves whole frames.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use crate::{
    Interval, KIND_HEADER, KIND_INTERVAL, KIND_SUMMARY, MAGIC, PAYLOAD_BYTES_MAX, RecordError,
    VERSION, checksum, new_plain,
};

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
