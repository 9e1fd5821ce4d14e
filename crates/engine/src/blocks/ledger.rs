//! What the engine knows that it wrote: how often each block of a job's files was written, beside the files and not in
//! them. A block that vouched for itself would also do so after its newer writing was lost.
//!
//! Four bytes for each block of 4 KiB, a thousandth of the data; between trials on the same files it is a file of the
//! result. A writing that was in flight when a trial ended may have arrived or not.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::EngineError;
use crate::geometry::{BLOCK_BYTES, LEDGER_ENTRY_BYTES};
use crate::job::Job;
use crate::pattern::Stamp;

const MAGIC: u64 = u64::from_le_bytes(*b"LLledg1\n");
const HEADER_WORDS: usize = 4;

// An entry, from its lowest bit: 27 bits of writings, 3 of what was found, and two flags.
const WRITINGS: u32 = (1 << 27) - 1;
const FOUND_SHIFT: u32 = 27;
const FOUND: u32 = 7 << FOUND_SHIFT;
/// Found by an earlier trial, whatever it was.
const FOUND_BEFORE: u32 = FOUND;
/// The last writing was in flight when a trial ended.
const EITHER: u32 = 1 << 30;
/// An operation on the block is in flight.
const BUSY: u32 = 1 << 31;

/// What must be at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Of the last writing, if there was one.
    pub stamp: Stamp,
    pub is_written: bool,
    /// What was there before will do as well.
    pub either: bool,
}

/// The writings of each block. Threads share it, and never a block.
#[derive(Debug)]
pub struct Ledger {
    /// Of the data of all these files, whichever trial wrote it.
    seed: u64,
    blocks_per_file: u64,
    entries: Box<[AtomicU32]>,
}

impl Ledger {
    /// Of files that `layout` of this very job has written.
    pub fn laid_out(job: &Job) -> Self {
        Self::of(job, 1)
    }

    /// Of files that are empty.
    pub fn empty(job: &Job) -> Self {
        Self::of(job, 0)
    }

    fn of(job: &Job, writings: u32) -> Self {
        let count = job.ledger_bytes() / LEDGER_ENTRY_BYTES;
        Self {
            seed: job.seed,
            blocks_per_file: job.blocks_per_file(),
            entries: (0..count).map(|_| AtomicU32::new(writings)).collect(),
        }
    }

    /// Reads what `save` wrote for the files of `job`; what was found wrong then is known from before.
    pub fn load(path: &Path, job: &Job) -> Result<Self, EngineError> {
        let words = |what: &str| {
            EngineError::Other(format!(
                "{}: {what}; what was written is not known, so nothing can be verified: lay the files out anew",
                path.display()
            ))
        };
        let refused = |error: io::Error| words(&format!("the ledger cannot be read: {error}"));
        let mut file = io::BufReader::new(leadline_record::open_plain(path).map_err(refused)?);
        let mut header = [0_u8; HEADER_WORDS * 8];
        file.read_exact(&mut header).map_err(refused)?;
        let word = |index: usize| {
            let bytes = header[index * 8..index * 8 + 8].try_into();
            u64::from_le_bytes(bytes.unwrap_or_default())
        };
        let mut this = Self::empty(job);
        let wanted = [MAGIC, this.blocks_per_file, this.entries.len() as u64];
        if [word(0), word(2), word(3)] != wanted {
            return Err(words("it is no ledger of these files"));
        }
        this.seed = word(1);
        for entry in &mut this.entries {
            let mut bytes = [0; LEDGER_ENTRY_BYTES as usize];
            file.read_exact(&mut bytes).map_err(refused)?;
            *entry.get_mut() = u32::from_le_bytes(bytes);
        }
        Ok(this)
    }

    /// Whatever was found so far was found by an earlier trial.
    pub fn begin_trial(&self) {
        for entry in &self.entries {
            let now = entry.load(Ordering::Relaxed);
            if now & FOUND != 0 {
                entry.store(now | FOUND_BEFORE, Ordering::Relaxed);
            }
        }
    }

    /// Writes it to a file that appears whole. What is in flight may have arrived or not.
    pub fn save(&self, path: &Path) -> Result<(), EngineError> {
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let refused = |error: io::Error| EngineError::system(&error, "write the ledger", path);
        let mut file =
            io::BufWriter::new(leadline_record::new_plain(Path::new(&new)).map_err(refused)?);
        let header = [
            MAGIC,
            self.seed,
            self.blocks_per_file,
            self.entries.len() as u64,
        ];
        for word in header {
            file.write_all(&word.to_le_bytes()).map_err(refused)?;
        }
        for entry in &self.entries {
            let now = entry.load(Ordering::Relaxed);
            let either = if now & BUSY != 0 { EITHER } else { 0 };
            let kept = (now & !BUSY) | either;
            file.write_all(&kept.to_le_bytes()).map_err(refused)?;
        }
        file.flush().map_err(refused)?;
        drop(file);
        std::fs::rename(&new, path).map_err(refused)
    }

    fn index(&self, file: u32, offset: u64) -> usize {
        (u64::from(file) * self.blocks_per_file + offset / BLOCK_BYTES as u64) as usize
    }

    #[inline(always)]
    fn entry(&self, file: u32, offset: u64) -> &AtomicU32 {
        &self.entries[self.index(file, offset)]
    }

    /// Whether any block of a range is in flight.
    #[inline]
    pub fn is_busy(&self, file: u32, offset: u64, length: u32) -> bool {
        let first = self.index(file, offset);
        let count = (length as usize).div_ceil(BLOCK_BYTES);
        let range = &self.entries[first..first + count];
        range
            .iter()
            .any(|entry| entry.load(Ordering::Relaxed) & BUSY != 0)
    }

    /// One more writing of a block begins: what it carries.
    #[inline(always)]
    pub fn begin_write(&self, file: u32, offset: u64) -> Stamp {
        let entry = self.entry(file, offset);
        let now = entry.load(Ordering::Relaxed);
        let writings = now & WRITINGS;
        // Where it is not known whether the last writing arrived, it is done again: one of two, as before.
        let next = match (now & EITHER != 0, writings == WRITINGS) {
            (true, _) => writings.max(1),
            (false, true) => 1,
            (false, false) => writings + 1,
        };
        entry.store(next | now & EITHER | BUSY, Ordering::Relaxed);
        self.stamp(next, file, offset)
    }

    /// The writing of a block was acknowledged.
    #[inline(always)]
    pub fn end_write(&self, file: u32, offset: u64) {
        let entry = self.entry(file, offset);
        entry.store(
            entry.load(Ordering::Relaxed) & !(BUSY | EITHER),
            Ordering::Relaxed,
        );
    }

    /// Keeps a block from being written while it is read, until `end_read`.
    #[inline]
    pub fn begin_read(&self, file: u32, offset: u64) {
        let entry = self.entry(file, offset);
        entry.store(entry.load(Ordering::Relaxed) | BUSY, Ordering::Relaxed);
    }

    #[inline]
    pub fn end_read(&self, file: u32, offset: u64) {
        let entry = self.entry(file, offset);
        entry.store(entry.load(Ordering::Relaxed) & !BUSY, Ordering::Relaxed);
    }

    /// What must be at a place.
    #[inline(always)]
    pub fn expected(&self, file: u32, offset: u64) -> Expected {
        let now = self.entry(file, offset).load(Ordering::Relaxed);
        let writings = now & WRITINGS;
        Expected {
            stamp: self.stamp(writings, file, offset),
            is_written: writings > 0,
            either: now & EITHER != 0,
        }
    }

    #[inline(always)]
    fn stamp(&self, writings: u32, file: u32, offset: u64) -> Stamp {
        Stamp {
            seed: self.seed,
            generation: writings.saturating_sub(1),
            file,
            offset,
        }
    }

    /// Whether anything was found at a place since it was last written, and the number if this trial did.
    pub fn found(&self, file: u32, offset: u64) -> Option<Option<u32>> {
        match self.entry(file, offset).load(Ordering::Relaxed) & FOUND {
            0 => None,
            FOUND_BEFORE => Some(None),
            found => Some(Some(found >> FOUND_SHIFT)),
        }
    }

    /// Notes a number from 1 to 6 for what was found at a place where nothing was found yet.
    pub fn find(&self, file: u32, offset: u64, what: u32) {
        let entry = self.entry(file, offset);
        let now = entry.load(Ordering::Relaxed);
        entry.store(now | what << FOUND_SHIFT, Ordering::Relaxed);
    }

    /// Forgets what was found at a place, which is well now.
    pub fn forget_found(&self, file: u32, offset: u64) {
        let entry = self.entry(file, offset);
        let now = entry.load(Ordering::Relaxed);
        if now & FOUND != 0 {
            entry.store(now & !FOUND, Ordering::Relaxed);
        }
    }

    /// Whether `stamp` can be of these files at all.
    pub fn knows(&self, stamp: &Stamp) -> bool {
        let within = stamp.offset / (BLOCK_BYTES as u64) < self.blocks_per_file;
        stamp.seed == self.seed
            && within
            && self.index(stamp.file, stamp.offset) < self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::example;

    fn job() -> Job {
        Job::parse(&example().to_string()).unwrap()
    }

    #[test]
    fn a_link_in_place_of_a_ledger_that_is_saved_is_not_followed() {
        let top = tempfile::tempdir().unwrap();
        let (precious, path) = (top.path().join("precious"), top.path().join("ledger"));
        std::fs::write(&precious, b"precious").unwrap();
        std::os::unix::fs::symlink(&precious, top.path().join("ledger.new")).unwrap();
        assert!(Ledger::empty(&job()).save(&path).is_err());
        assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
    }

    fn saved(ledger: &Ledger) -> Ledger {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger");
        ledger.save(&path).unwrap();
        Ledger::load(&path, &job()).unwrap()
    }

    #[test]
    fn each_writing_has_the_next_generation_and_is_known_afterwards() {
        let ledger = Ledger::empty(&job());
        assert!(!ledger.expected(0, 4096).is_written);
        for generation in 0..3 {
            assert_eq!(ledger.begin_write(0, 4096).generation, generation);
            assert!(ledger.is_busy(0, 0, 8192) && !ledger.is_busy(0, 8192, 4096));
            ledger.end_write(0, 4096);
        }
        let found = saved(&ledger).expected(0, 4096);
        assert_eq!((found.stamp.generation, found.either), (2, false));
        assert!(!saved(&ledger).expected(0, 0).is_written);
    }

    #[test]
    fn what_was_in_flight_at_the_end_may_be_either_until_it_is_written_again() {
        let ledger = Ledger::laid_out(&job());
        ledger.begin_write(0, 0);
        let ledger = saved(&ledger);
        let expected = ledger.expected(0, 0);
        assert_eq!((expected.stamp.generation, expected.either), (1, true));
        assert_eq!(ledger.begin_write(0, 0).generation, 1);
        ledger.end_write(0, 0);
        assert!(!ledger.expected(0, 0).either);
    }

    #[test]
    fn what_an_earlier_trial_found_is_told_apart_until_the_block_is_written_again() {
        let ledger = Ledger::laid_out(&job());
        ledger.find(0, 0, 1);
        ledger.find(0, 4096, 5);
        assert_eq!(ledger.found(0, 0), Some(Some(1)));
        ledger.forget_found(0, 4096);
        assert_eq!(ledger.found(0, 4096), None);
        let ledger = saved(&ledger);
        assert_eq!(ledger.found(0, 0), Some(Some(1)));
        ledger.begin_trial();
        assert_eq!(ledger.found(0, 0), Some(None));
        ledger.begin_write(0, 0);
        assert_eq!(ledger.found(0, 0), None, "a new writing can be lost anew");
    }

    #[test]
    fn generations_go_on_from_the_start_after_the_last() {
        let ledger = Ledger::of(&job(), WRITINGS);
        assert_eq!(ledger.begin_write(0, 0).generation, 0);
        assert!(ledger.expected(0, 0).is_written);
    }

    #[test]
    fn the_ledger_of_other_files_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger");
        Ledger::empty(&job()).save(&path).unwrap();
        let mut other = example();
        other["nrfiles"] = 2.into();
        let other = Job::parse(&other.to_string()).unwrap();
        let error = Ledger::load(&path, &other).unwrap_err().to_string();
        assert!(error.contains("no ledger of these files"), "{error}");
        std::fs::write(&path, b"short").unwrap();
        assert!(Ledger::load(&path, &job()).is_err());
    }
}
