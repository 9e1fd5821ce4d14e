//! Where a job's operations may go: its files, and the part of them that each thread works on.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Job, require};
use crate::distribution::Distribution;
use crate::error::EngineError;

/// The unit of patterns and of verification.
pub const BLOCK_BYTES: usize = 4096;
/// What is known of each such block that is verified.
pub const LEDGER_ENTRY_BYTES: u64 = 4;

/// Whether all threads work on one file (N to 1), and how they divide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shared {
    /// Each thread has files of its own.
    #[default]
    None,
    /// One file; each thread has a contiguous region of `size` bytes.
    Segmented,
    /// One file; the threads' blocks alternate.
    Strided,
    /// The same files, and each thread works on all of them, as fio's do where it is told a filename.
    Whole,
}

impl Shared {
    /// True where each thread has a part of one file.
    fn is_divided(self) -> bool {
        matches!(self, Self::Segmented | Self::Strided)
    }
}

impl Job {
    /// Bytes of each file: `size` divided evenly over the files in whole blocks, or of all threads in a shared one.
    pub fn file_bytes(&self) -> u64 {
        let own = self.size / u64::from(self.nrfiles) / self.bs * self.bs;
        match self.shared {
            Shared::None | Shared::Whole => own,
            Shared::Segmented | Shared::Strided => own.saturating_mul(u64::from(self.numjobs)),
        }
    }

    /// The first byte of each file that `thread` touches.
    pub fn first_byte(&self, thread: u32) -> u64 {
        let thread = u64::from(thread);
        match self.shared {
            Shared::None | Shared::Whole => self
                .offset
                .saturating_add(self.offset_increment.saturating_mul(thread)),
            Shared::Segmented => thread * (self.file_bytes() / u64::from(self.numjobs)),
            Shared::Strided => thread * self.bs,
        }
    }

    /// Bytes of each file that are `thread`'s own, in whole blocks.
    pub fn own_bytes(&self, thread: u32) -> u64 {
        let bytes = match self.shared {
            Shared::None | Shared::Whole => {
                self.file_bytes().saturating_sub(self.first_byte(thread))
            }
            Shared::Segmented | Shared::Strided => self.file_bytes() / u64::from(self.numjobs),
        };
        bytes / self.bs * self.bs
    }

    /// From one block of a thread to its next, in bytes.
    pub fn stride_bytes(&self) -> u64 {
        match self.shared {
            Shared::Strided => self.bs * u64::from(self.numjobs),
            Shared::None | Shared::Segmented | Shared::Whole => self.bs,
        }
    }

    /// Bytes that all threads move in one pass over what is theirs.
    pub fn pass_bytes(&self) -> u64 {
        let own: u64 = (0..self.numjobs).map(|thread| self.own_bytes(thread)).sum();
        own * u64::from(self.nrfiles)
    }

    /// The largest operation.
    pub fn largest_block(&self) -> u64 {
        let split = self.bssplit.as_ref();
        split
            .and_then(|split| split.sizes().max())
            .unwrap_or(self.bs)
    }

    /// Units of verification of each file.
    pub fn blocks_per_file(&self) -> u64 {
        self.file_bytes().div_ceil(BLOCK_BYTES as u64)
    }

    /// Memory that the ledger of a verified job takes.
    pub fn ledger_bytes(&self) -> u64 {
        let files = u64::from(self.owners()) * u64::from(self.nrfiles);
        files
            .saturating_mul(self.blocks_per_file())
            .saturating_mul(LEDGER_ENTRY_BYTES)
    }

    /// How many threads have files of their own: all, or one where they share.
    pub fn owners(&self) -> u32 {
        match self.shared {
            Shared::None => self.numjobs,
            Shared::Segmented | Shared::Strided | Shared::Whole => 1,
        }
    }

    /// The path of a file of this job.
    pub fn file_path(&self, numjob: u32, file: u32) -> PathBuf {
        let numjob = numjob.min(self.owners() - 1);
        self.directory
            .join(format!("{}.{numjob}.{file}", self.prefix))
    }

    /// The number by which data patterns know a file.
    pub fn file_id(&self, numjob: u32, file: u32) -> u32 {
        numjob.min(self.owners() - 1) * self.nrfiles + file
    }

    /// Refuses places that contradict each other.
    pub fn validate_places(&self) -> Result<(), EngineError> {
        let own = self.own_bytes(self.numjobs - 1);
        require(own >= self.largest_block(), || {
            format!(
                "offset: the last of {} thread(s) begins at {} of files of {} bytes, which leaves no block; \
                 lower offset or offset_increment, or raise size",
                self.numjobs,
                self.first_byte(self.numjobs - 1),
                self.file_bytes()
            )
        })?;
        let aligned = |bytes: u64| bytes.is_multiple_of(self.bs);
        require(
            aligned(self.offset) && aligned(self.offset_increment),
            || {
                format!(
                    "offset: offset and offset_increment must be multiples of bs={}",
                    self.bs
                )
            },
        )?;
        let divided = self.shared.is_divided();
        require(!(divided && self.nrfiles > 1), || {
            "shared: one file is shared; use nrfiles: 1".to_owned()
        })?;
        let moved = self.offset > 0 || self.offset_increment > 0;
        require(!(divided && moved), || {
            "shared: it says already where each thread works; use offset: 0 and offset_increment: 0"
                .to_owned()
        })?;
        require(
            !(self.shared == Shared::Strided && self.bssplit.is_some()),
            || {
                "shared: strided needs blocks of one size; use bssplit: null, or segmented"
                    .to_owned()
            },
        )?;
        let races = self.shared == Shared::Whole && self.numjobs > 1 && self.rw.writes();
        require(!(races && self.verify), || {
            "verify: with shared: whole several threads write the same blocks; use verify: false, or numjobs: 1"
                .to_owned()
        })?;
        let plain = self.random_distribution == Distribution::Map;
        require(self.rw.is_random() || plain, || {
            "random_distribution: a sequential job has none; use map".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::source::Source;
    use crate::job::tests::example;
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::HashSet;

    fn touched(shared: &str, rw: &str, threads: u32, blocks: u64) -> Vec<HashSet<u64>> {
        let mut job = example();
        job["shared"] = json!(shared);
        job["rw"] = json!(rw);
        job["numjobs"] = json!(threads);
        job["size"] = json!(blocks * 4096);
        let job = Job::parse(&job.to_string()).unwrap();
        (0..threads)
            .map(|thread| {
                let mut source = Source::new(&job, thread);
                std::iter::from_fn(|| source.next_operation())
                    .map(|operation| operation.offset)
                    .collect()
            })
            .collect()
    }

    proptest! {
        #[test]
        fn threads_of_a_shared_file_divide_it_without_gap_or_overlap(threads in 1_u32..9, blocks in 1_u64..40) {
            for shared in ["segmented", "strided"] {
                for rw in ["write", "randwrite"] {
                    let each = touched(shared, rw, threads, blocks);
                    let all: HashSet<u64> = each.iter().flatten().copied().collect();
                    let count = u64::from(threads) * blocks;
                    prop_assert_eq!(each.iter().map(HashSet::len).sum::<usize>() as u64, count);
                    prop_assert_eq!(all, (0..count).map(|block| block * 4096).collect::<HashSet<u64>>());
                }
            }
        }
    }

    #[test]
    fn segments_are_contiguous_and_strides_alternate() {
        let first = |shared| touched(shared, "write", 2, 3)[1].iter().copied().min();
        assert_eq!(first("segmented"), Some(3 * 4096));
        assert_eq!(first("strided"), Some(4096));
    }

    #[test]
    fn each_thread_meets_every_block_of_a_file_that_is_whole_to_all() {
        for rw in ["read", "randread", "randwrite"] {
            let each = touched("whole", rw, 3, 8);
            let all: HashSet<u64> = (0..8).map(|block| block * 4096).collect();
            assert_eq!(each, vec![all; 3]);
        }
    }

    #[test]
    fn several_writers_of_the_same_blocks_cannot_be_verified() {
        let mut job = example();
        job["shared"] = json!("whole");
        job["rw"] = json!("randwrite");
        job["verify"] = json!(true);
        assert!(Job::parse(&job.to_string()).is_ok());
        job["numjobs"] = json!(2);
        let error = Job::parse(&job.to_string()).unwrap_err().to_string();
        assert!(error.contains("several threads write"), "{error}");
        job["rw"] = json!("randread");
        assert!(Job::parse(&job.to_string()).is_ok());
    }

    #[test]
    fn all_threads_open_the_same_file_where_it_is_shared() {
        let mut job = example();
        job["shared"] = json!("strided");
        job["numjobs"] = json!(4);
        let job = Job::parse(&job.to_string()).unwrap();
        assert_eq!(job.file_path(0, 0), job.file_path(3, 0));
        assert_eq!((job.file_id(3, 0), job.file_bytes()), (0, 4 << 20));
    }
}
