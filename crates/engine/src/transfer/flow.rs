//! What flows through a stream: its data are made or read from the user's files, and summed up, a chunk at a time; and
//! how long each of that took.

use std::fs::File;
use std::path::PathBuf;

use leadline_record::open_plain;
use md5::{Digest, Md5};
use simd_adler32::Adler32;

use super::job::{Checksum, TransferJob};
use super::runner::{StreamRow, Transfers};
use crate::error::{Failure, FailureKind};
use crate::io::Direction;
use crate::pattern::Stamp;
use crate::sys::file::{self, Advice};

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

/// Files of the user, one behind the other, over and over.
pub struct Input {
    files: Vec<(PathBuf, File, u64)>,
    bytes: u64,
}

impl Input {
    /// What `stream` sends; `None`: generated data. The files are dealt out in turn; where there are fewer than streams
    /// that write, several send the same.
    pub fn open(job: &TransferJob, stream: u32) -> Result<Option<Self>, Failure> {
        let (count, stream) = (job.sources.len(), stream as usize);
        if count == 0 {
            return Ok(None);
        }
        let dealt = (stream % count..count).step_by(job.writers().max(1) as usize);
        let mut files = Vec::new();
        for path in dealt.map(|number| &job.sources[number]) {
            let failed = |error: std::io::Error| {
                let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
                Failure::system(errno, "open of a source", path, 0)
            };
            let opened = open_plain(path).map_err(failed)?;
            let bytes = opened.metadata().map_err(failed)?.len();
            file::advise(&opened, Advice::Sequential);
            files.push((path.clone(), opened, bytes));
        }
        let bytes = files.iter().map(|(_, _, bytes)| bytes).sum();
        if bytes == 0 {
            let what = "there is nothing in it to send; name another file, or generate data";
            let path = &files[0].0;
            return Err(Failure::found(
                FailureKind::Short,
                "open of a source",
                path,
                0,
                what,
            ));
        }
        Ok(Some(Self { files, bytes }))
    }

    /// Fills `part` with what belongs at `offset` of the stream's file.
    pub fn fill(&self, part: &mut [u8], offset: u64) -> Result<(), Failure> {
        let mut done = 0;
        let mut place = offset % self.bytes;
        while done < part.len() {
            for (path, file, bytes) in &self.files {
                if place >= *bytes {
                    place -= bytes;
                    continue;
                }
                let room = usize::try_from(bytes - place).unwrap_or(usize::MAX);
                let length = room.min(part.len() - done);
                read_whole(file, &mut part[done..done + length], place)
                    .map_err(|(errno, at)| failed(path, errno, at))?;
                done += length;
                place = 0;
                if done == part.len() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// The error is an errno, or `None` at the end of the file; and where.
fn read_whole(file: &File, part: &mut [u8], offset: u64) -> Result<(), (Option<i32>, u64)> {
    let mut done = 0;
    while done < part.len() {
        let at = offset + done as u64;
        match file::read_at(file, &mut part[done..], at) {
            count if count > 0 => done += count as usize,
            0 => return Err((None, at)),
            result => return Err((Some(-result as i32), at)),
        }
    }
    Ok(())
}

fn failed(path: &std::path::Path, errno: Option<i32>, offset: u64) -> Failure {
    match errno {
        Some(errno) => Failure::system(errno, "read of a source", path, offset),
        None => {
            let what = "the file became shorter while it was sent";
            Failure::found(FailureKind::Short, "read of a source", path, offset, what)
        }
    }
}

/// One that is being computed.
#[derive(Clone)]
enum State {
    Adler32(Adler32),
    Crc32c(u32),
    Md5(Md5),
}

impl State {
    fn new(kind: Checksum) -> Self {
        match kind {
            Checksum::Adler32 => Self::Adler32(Adler32::new()),
            Checksum::Crc32c => Self::Crc32c(0),
            Checksum::Md5 => Self::Md5(Md5::default()),
        }
    }

    fn add(&mut self, data: &[u8]) {
        match self {
            Self::Adler32(state) => state.write(data),
            Self::Crc32c(state) => *state = crc32c::crc32c_append(*state, data),
            Self::Md5(state) => state.update(data),
        }
    }

    fn hex(&self) -> String {
        match self {
            Self::Adler32(state) => format!("{:08x}", state.finish()),
            Self::Crc32c(state) => format!("{state:08x}"),
            Self::Md5(state) => {
                let bytes = state.clone().finalize();
                bytes.iter().map(|byte| format!("{byte:02x}")).collect()
            }
        }
    }
}

/// The checksum of one stream: each pass over the file begins anew.
#[derive(Clone)]
pub struct Checksums {
    kind: Checksum,
    size: u64,
    state: State,
    bytes: u64,
    /// Of the last pass that came to the file's end.
    whole: Option<State>,
}

impl Checksums {
    /// Of a file of `size` bytes.
    pub fn new(kind: Checksum, size: u64) -> Self {
        Self {
            kind,
            size,
            state: State::new(kind),
            bytes: 0,
            whole: None,
        }
    }

    /// Adds what comes next in the file; no part goes beyond its end.
    pub fn add(&mut self, data: &[u8]) {
        self.state.add(data);
        self.bytes += data.len() as u64;
        if self.bytes == self.size {
            let new = State::new(self.kind);
            self.whole = Some(std::mem::replace(&mut self.state, new));
            self.bytes = 0;
        }
    }

    /// In hexadecimal, and of how many bytes from the file's beginning: of the last whole pass, or of what there was.
    pub fn found(&self) -> (String, u64) {
        match &self.whole {
            Some(whole) => (whole.hex(), self.size),
            None => (self.state.hex(), self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: Checksum, size: u64, parts: &[&[u8]]) -> (String, u64) {
        let mut checksums = Checksums::new(kind, size);
        parts.iter().for_each(|part| checksums.add(part));
        checksums.found()
    }

    #[test]
    fn known_values_are_met_whatever_the_parts() {
        // RFC 1950's algorithm, RFC 3720 B.4 and RFC 1321 A.5, of "123456789" as catalogues of checksums have them.
        for (kind, wanted) in [
            (Checksum::Adler32, "091e01de"),
            (Checksum::Crc32c, "e3069283"),
            (Checksum::Md5, "25f9e794323b453885f5181f1b624d0b"),
        ] {
            let wanted = (wanted.to_owned(), 9);
            assert_eq!(found(kind, 9, &[b"123456789"]), wanted);
            assert_eq!(found(kind, 9, &[b"1234", b"", b"56789"]), wanted);
            assert_eq!(found(kind, 99, &[b"12345", b"6789"]), wanted);
        }
    }

    #[test]
    fn each_pass_begins_anew_and_the_last_whole_one_counts() {
        let parts: [&[u8]; 3] = [b"123456789", b"1234", b"56"];
        let (hex, bytes) = found(Checksum::Crc32c, 9, &parts);
        assert_eq!((hex.as_str(), bytes), ("e3069283", 9));
    }
}
