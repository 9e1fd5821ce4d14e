//! The log of acknowledgements: one record a request, from the threads that meet them to a file.
//!
//! Little-endian. A header of 32 bytes: magic, bytes of a record u32, streams u32, records u64, 0 u64. Then the records,
//! those of different streams mixed, those of one in the order in which they were acknowledged:
//! stream u32, direction u8 (0 read, 1 write), 3 x 0, offset u64, length u64, submitted ns u64, acknowledged ns u64,
//! result i64 (bytes, or minus errno). Times are since the trial's start. A log without its end says 0 records, and has
//! as many as it has.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::EngineError;
use crate::io::Direction;
use crate::trial::watch::Alarm;

pub const MAGIC: &[u8; 8] = b"LLACKS\x01\0";
const RECORD_BYTES: u32 = 48;
const WORDS: usize = 6;
/// Of all streams together, at most: 12 MiB.
const HELD_MAX: usize = 1 << 18;
const HELD_LEAST: usize = 1 << 8;
const HELD_MOST: usize = 1 << 16;
/// A pause of a thread whose records are not taken as fast as they come.
const PAUSE: Duration = Duration::from_micros(100);

/// One acknowledgement. Times are ns since the trial's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    pub stream: u32,
    pub direction: Direction,
    pub offset: u64,
    pub length: u64,
    pub submitted_ns: u64,
    pub acked_ns: u64,
    /// Bytes, or minus errno.
    pub result: i64,
}

impl Ack {
    fn words(self) -> [u64; WORDS] {
        [
            u64::from(self.stream) | (self.direction as u64) << 32,
            self.offset,
            self.length,
            self.submitted_ns,
            self.acked_ns,
            self.result as u64,
        ]
    }
}

/// Records of one thread on their way: it alone puts them in, one other takes them out, and neither locks.
pub struct Ring {
    records: Box<[[AtomicU64; WORDS]]>,
    put: AtomicU64,
    taken: AtomicU64,
}

impl Ring {
    /// One of those for `streams` threads, all memory touched.
    pub fn new(streams: u32) -> Self {
        let held = (HELD_MAX / streams as usize).clamp(HELD_LEAST, HELD_MOST);
        let records = (0..held).map(|_| [const { AtomicU64::new(0) }; WORDS]);
        Self {
            records: records.collect(),
            put: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        }
    }

    /// Puts one in; where there is no room, once there is, and true then. Nobody else puts any in.
    pub fn put(&self, ack: Ack, alarm: &Alarm, is_abandoned: impl Fn() -> bool) -> bool {
        let put = self.put.load(Ordering::Relaxed);
        let held = self.records.len() as u64;
        let used = || put - self.taken.load(Ordering::Acquire);
        let mut waited = false;
        if used() == held / 2 {
            alarm.ring();
        }
        while used() >= held {
            waited = true;
            if is_abandoned() {
                return waited;
            }
            alarm.ring();
            std::thread::sleep(PAUSE);
        }
        let place = &self.records[(put % held) as usize];
        for (word, value) in place.iter().zip(ack.words()) {
            word.store(value, Ordering::Relaxed);
        }
        self.put.store(put + 1, Ordering::Release);
        waited
    }

    /// Takes all out. Nobody else takes any.
    fn take(&self, mut each: impl FnMut([u64; WORDS])) {
        let put = self.put.load(Ordering::Acquire);
        let held = self.records.len() as u64;
        let mut taken = self.taken.load(Ordering::Relaxed);
        while taken < put {
            let place = &self.records[(taken % held) as usize];
            each(std::array::from_fn(|word| {
                place[word].load(Ordering::Relaxed)
            }));
            taken += 1;
        }
        self.taken.store(taken, Ordering::Release);
    }
}

/// The file that is being written.
pub struct Log {
    out: Option<BufWriter<File>>,
    most: u64,
    records: u64,
    lost: u64,
    streams: u32,
}

impl Log {
    /// Creates the file, or replaces a plain one; without a path all are counted, and none kept.
    pub fn create(path: Option<&Path>, streams: u32, most: u64) -> Result<Self, EngineError> {
        let mut log = Self {
            out: None,
            most,
            records: 0,
            lost: 0,
            streams,
        };
        if let Some(path) = path {
            let refused =
                |error: io::Error| EngineError::system(&error, "write the log of acks", path);
            let mut out = BufWriter::with_capacity(
                1 << 18,
                leadline_record::new_plain(path).map_err(refused)?,
            );
            out.write_all(&log.header()).map_err(refused)?;
            log.out = Some(out);
        }
        Ok(log)
    }

    fn header(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&RECORD_BYTES.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.streams.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.records.to_le_bytes());
        bytes
    }

    /// Takes what the threads put in. After an error, which is told once, it only empties them.
    pub fn take<'a>(&mut self, rings: impl Iterator<Item = &'a Ring>) -> io::Result<()> {
        let mut outcome = Ok(());
        for ring in rings {
            ring.take(|words| {
                let Some(out) = &mut self.out else { return };
                if self.records == self.most {
                    self.lost += 1;
                    return;
                }
                self.records += 1;
                for word in words {
                    if let Err(error) = out.write_all(&word.to_le_bytes()) {
                        outcome = Err(error);
                    }
                }
            });
            if outcome.is_err() {
                self.forget();
            }
        }
        outcome
    }

    /// Nothing more is written, by what is buffered least of all.
    fn forget(&mut self) {
        if let Some(out) = self.out.take() {
            drop(out.into_parts());
        }
    }

    /// Completes the file.
    pub fn finish(&mut self) -> io::Result<()> {
        let header = self.header();
        let Some(mut out) = self.out.take() else {
            return Ok(());
        };
        out.flush()?;
        let file = out.get_mut();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&header)
    }

    /// Records that the file has, and that it has no more room for.
    pub fn counted(&self) -> (u64, u64) {
        (self.records, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_place_of_a_log_is_not_followed() {
        let top = tempfile::tempdir().unwrap();
        let (precious, path) = (top.path().join("precious"), top.path().join("acks"));
        std::fs::write(&precious, b"precious").unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        assert!(Log::create(Some(&path), 1, 1).is_err());
        assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
    }
}
