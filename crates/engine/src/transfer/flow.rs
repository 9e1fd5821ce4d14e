//! What flows through a stream: its data are made or read from the user's files, and summed up, a chunk at a time; and
//! how long each of that took.

use super::checksum::Checksums;
use super::input::Input;
use super::shared::{StreamRow, Transfers};
use crate::error::Failure;
use crate::io::Direction;
use crate::pattern::Stamp;

/// The data of one stream.
pub struct Flow<'a> {
    shared: &'a Transfers,
    stream: u32,
    input: Option<Input>,
    checksums: Option<Checksums>,
    source_wait_ns: u64,
    fill_ns: u64,
    checksum_ns: u64,
}

impl<'a> Flow<'a> {
    /// Opens what the stream sends.
    pub fn open(shared: &'a Transfers, stream: u32) -> Result<Self, Failure> {
        let job = &shared.job;
        let input = match job.direction(stream) {
            Direction::Write => Input::open(job, stream)?,
            _ => None,
        };
        let checksums = job.checksum.map(|kind| Checksums::new(kind, job.size));
        Ok(Self {
            shared,
            stream,
            input,
            checksums,
            source_wait_ns: 0,
            fill_ns: 0,
            checksum_ns: 0,
        })
    }

    /// Whether somebody looks at buffers that never meet storage.
    pub fn is_looked_at(&self) -> bool {
        self.input.is_some() || self.checksums.is_some()
    }

    pub fn has_checksum(&self) -> bool {
        self.checksums.is_some()
    }

    /// Makes what belongs at `offset` of the file, and adds it to the checksum.
    pub fn make(
        &mut self,
        part: &mut [u8],
        offset: u64,
        now: impl Fn() -> u64,
    ) -> Result<(), Failure> {
        let begun = now();
        if let Some(input) = &self.input {
            input.fill(part, offset)?;
            self.source_wait_ns += now() - begun;
        } else {
            let job = &self.shared.job;
            let stamp = Stamp {
                seed: job.seed,
                generation: job.generation,
                file: self.stream,
                offset,
            };
            self.shared.context.pattern.fill(part, stamp);
            self.fill_ns += now() - begun;
        }
        self.sum_up(part, now);
        Ok(())
    }

    /// Adds what comes next in the file to the checksum.
    pub fn sum_up(&mut self, part: &[u8], now: impl Fn() -> u64) {
        if let Some(checksums) = &mut self.checksums {
            let begun = now();
            checksums.add(part);
            self.checksum_ns += now() - begun;
        }
    }

    /// The checksum as it is, for `go_back`.
    pub fn mark(&self) -> Option<Checksums> {
        self.checksums.clone()
    }

    /// Takes away what was added since `mark`.
    pub fn go_back(&mut self, mark: Option<Checksums>) {
        self.checksums = mark;
    }

    /// What the summary says of it.
    pub fn tell(&self, row: &mut StreamRow) {
        if let Some(checksums) = &self.checksums {
            let (hex, bytes) = checksums.found();
            (row.checksum, row.checksum_bytes) = (Some(hex), bytes);
        }
        row.source_wait_ns = self.source_wait_ns;
        row.fill_ns = self.fill_ns;
        row.checksum_ns = self.checksum_ns;
    }
}
