//! Which operation comes next: direction, file and offset, and when a job of a given size is used up.

use super::varied::Varied;
use crate::io::{Direction, Operation};
use crate::job::{Job, ReadWrite};
use crate::offsets::{Jump, Order, share_of_range};
use crate::random::Random;

const PURPOSE_OFFSETS: u64 = 1;
const PURPOSE_MIX: u64 = 2;
/// Arrivals of the pacer; here so that no two purposes share a number.
pub const PURPOSE_ARRIVALS: u64 = 3;
const PURPOSE_JUMPS: u64 = 4;
/// From here on one for each direction's sizes and each size's offsets.
const PURPOSE_SIZES: u64 = 16;

/// The stream of operations of one thread.
pub struct Source {
    block_bytes: u64,
    blocks_per_file: u64,
    single_file: bool,
    /// The thread's first byte in each file, and from one of its blocks to the next.
    first_byte: u64,
    stride_bytes: u64,
    /// Blocks left; endless for time-based jobs.
    left: u64,
    /// Blocks until what is cached is dropped, and after how many it is again.
    until_anew: u64,
    pass_blocks: u64,
    /// One order for both directions when random (no block is met twice in a pass), one each when sequential.
    orders: [Order; 2],
    shared_order: bool,
    /// In place of the orders where operations have several sizes.
    varied: Option<Box<Varied>>,
    /// Reads below this share of the 64-bit range; `None` when there is one direction only.
    read_below: Option<u64>,
    only: Direction,
    mix: Random,
    /// A sync after so many writes, and whether of the data alone.
    sync_after: u32,
    data_only: bool,
    writes_since_sync: u32,
    written_file: u32,
}

impl Source {
    /// The stream of thread `thread`; equal jobs give equal streams.
    pub fn new(job: &Job, thread: u32) -> Self {
        let blocks_per_file = job.own_bytes(thread) / job.bs;
        let blocks = blocks_per_file * u64::from(job.nrfiles);
        let purpose = |purpose: u64| Random::new(job.seed, purpose << 32 | u64::from(thread));
        let partly = job.rw.is_random() && job.percentage_random < 100;
        let jump = || Jump::new(job.percentage_random, purpose(PURPOSE_JUMPS));
        let order = || match job.rw.is_random() {
            true => {
                let order =
                    Order::random(job.random_distribution, blocks, purpose(PURPOSE_OFFSETS));
                match partly {
                    true => order.partly(blocks, jump()),
                    false => order,
                }
            }
            false => Order::sequential(blocks),
        };
        let varied = job.bssplit.as_ref().map(|split| {
            let varied = Varied::new(job, split, thread, |which| purpose(PURPOSE_SIZES + which));
            Box::new(if partly {
                varied.partly(jump())
            } else {
                varied
            })
        });
        Self {
            block_bytes: job.bs,
            blocks_per_file,
            single_file: job.nrfiles == 1,
            first_byte: job.first_byte(thread),
            stride_bytes: job.stride_bytes(),
            left: match (job.time_based, job.io_size) {
                (true, _) => u64::MAX,
                (false, 0) => blocks,
                (false, bytes) => bytes.div_ceil(job.bs),
            },
            until_anew: if job.invalidate { blocks } else { u64::MAX },
            pass_blocks: blocks,
            orders: [order(), order()],
            // Each direction has its own last block to follow.
            shared_order: job.rw != ReadWrite::Rw && !partly,
            varied,
            read_below: job.rw.is_mixed().then(|| share_of_range(job.rwmixread)),
            only: if job.rw.reads() {
                Direction::Read
            } else {
                Direction::Write
            },
            mix: purpose(PURPOSE_MIX),
            sync_after: job.fsync.max(job.fdatasync),
            data_only: job.fdatasync > 0,
            writes_since_sync: 0,
            written_file: 0,
        }
    }

    /// The next operation; `None` when the job's size is done.
    #[inline]
    pub fn next_operation(&mut self) -> Option<Operation> {
        if self.sync_is_due() {
            self.writes_since_sync = 0;
            return Some(Operation {
                data_only: self.data_only,
                ..sync_of(self.written_file)
            });
        }
        if self.left == 0 {
            return None;
        }
        let direction = self.direction();
        let stream = if self.shared_order {
            0
        } else {
            direction as usize
        };
        if let Some(varied) = &mut self.varied {
            let operation = varied.next_operation(direction, stream);
            let blocks = u64::from(operation.length) / self.block_bytes;
            self.left = self.left.saturating_sub(blocks);
            self.until_anew = self.until_anew.saturating_sub(blocks);
            return Some(operation);
        }
        self.left -= 1;
        self.until_anew -= 1;
        let block = self.orders[stream].next_block();
        let (file, block) = if self.single_file {
            (0, block)
        } else {
            (
                (block / self.blocks_per_file) as u32,
                block % self.blocks_per_file,
            )
        };
        Some(Operation {
            direction,
            file,
            offset: self.first_byte + block * self.stride_bytes,
            start: 0,
            length: self.block_bytes as u32,
            data_only: false,
        })
    }

    /// True once after each pass, where what is cached is to be dropped then.
    #[inline]
    pub fn begins_anew(&mut self) -> bool {
        if self.until_anew > 0 {
            return false;
        }
        self.until_anew = self.pass_blocks;
        true
    }

    /// True when `next_operation` would give one.
    pub fn has_more(&self) -> bool {
        self.left > 0 || self.sync_is_due()
    }

    /// True when the next operation is a sync.
    #[inline]
    pub fn sync_is_due(&self) -> bool {
        self.sync_after > 0 && self.writes_since_sync >= self.sync_after
    }

    /// Counts a write that ended towards the next sync.
    #[inline]
    pub fn wrote(&mut self, file: u32) {
        self.writes_since_sync += 1;
        self.written_file = file;
    }

    #[inline]
    fn direction(&mut self) -> Direction {
        match self.read_below {
            None => self.only,
            Some(limit) if self.mix.next_u64() < limit => Direction::Read,
            Some(_) => Direction::Write,
        }
    }
}

/// A sync of `file`.
pub fn sync_of(file: u32) -> Operation {
    Operation {
        direction: Direction::Sync,
        file,
        offset: 0,
        start: 0,
        length: 0,
        data_only: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::example;
    use serde_json::{Value, json};
    use std::collections::HashSet;

    fn operations(changes: Value, thread: u32) -> Vec<Operation> {
        let mut job = example();
        for (key, value) in changes.as_object().unwrap() {
            job[key] = value.clone();
        }
        let mut source = Source::new(&Job::parse(&job.to_string()).unwrap(), thread);
        std::iter::from_fn(|| source.next_operation()).collect()
    }

    #[test]
    fn a_job_of_a_size_meets_every_block_of_every_file_once() {
        let operations = operations(json!({"nrfiles": 4}), 0);
        let places: HashSet<_> = operations.iter().map(|o| (o.file, o.offset)).collect();
        assert_eq!((operations.len(), places.len()), (256, 256));
    }

    #[test]
    fn io_size_is_what_each_thread_moves() {
        for (bytes, blocks) in [(40_960, 10), (2 << 20, 512), (4097, 2)] {
            for rw in ["read", "randwrite"] {
                let found = operations(json!({"rw": rw, "io_size": bytes}), 0);
                assert_eq!(found.len(), blocks, "{rw} {bytes}");
            }
        }
        let around = operations(json!({"rw": "write", "io_size": 2 << 20}), 0);
        assert_eq!(around[0].offset, around[256].offset);
    }

    #[test]
    fn directions_of_a_partly_random_mix_follow_their_own_last_block() {
        let found = operations(
            json!({"rw": "randrw", "percentage_random": 0, "rwmixread": 50}),
            0,
        );
        for direction in [Direction::Read, Direction::Write] {
            let own: Vec<u64> = found
                .iter()
                .filter(|o| o.direction == direction)
                .map(|o| o.offset)
                .collect();
            assert!(own.len() > 50 && own.windows(2).all(|pair| pair[1] == pair[0] + 4096));
        }
    }

    #[test]
    fn equal_seeds_give_equal_offsets_and_threads_differ() {
        let offsets = |seed: u64, thread| operations(json!({"seed": seed}), thread);
        assert_eq!(offsets(5, 0), offsets(5, 0));
        assert_ne!(offsets(5, 0), offsets(6, 0));
        assert_ne!(offsets(5, 0), offsets(5, 1));
    }

    #[test]
    fn rwmixread_is_the_share_of_reads() {
        let operations = operations(json!({"rw": "randrw", "rwmixread": 70, "size": 1 << 28}), 0);
        let reads = operations
            .iter()
            .filter(|o| o.direction == Direction::Read)
            .count();
        // 65,536 draws: the standard error is 0.18 %.
        assert!((reads as f64 / operations.len() as f64 - 0.7).abs() < 0.01);
    }

    #[test]
    fn sequential_reads_and_writes_of_a_mix_advance_separately() {
        let operations = operations(json!({"rw": "rw"}), 0);
        for direction in [Direction::Read, Direction::Write] {
            let offsets: Vec<u64> = operations
                .iter()
                .filter(|o| o.direction == direction)
                .map(|o| o.offset)
                .collect();
            assert!(offsets.windows(2).all(|pair| pair[1] == pair[0] + 4096));
        }
    }

    #[test]
    fn each_thread_begins_at_its_offset() {
        let changes = json!({"rw": "read", "offset": 8192, "offset_increment": 4096, "numjobs": 3});
        let first = |thread| operations(changes.clone(), thread)[0].offset;
        assert_eq!([first(0), first(1), first(2)], [8192, 12288, 16384]);
        let count = operations(changes.clone(), 2).len() as u64;
        assert_eq!(count, ((1 << 20) - 16384) / 4096);
    }

    #[test]
    fn a_data_sync_is_told_apart() {
        let operations = |key: &str| {
            let mut job = example();
            (job["rw"], job[key]) = (json!("write"), json!(1));
            let mut source = Source::new(&Job::parse(&job.to_string()).unwrap(), 0);
            source.wrote(0);
            source.next_operation().unwrap().data_only
        };
        assert!(operations("fdatasync") && !operations("fsync"));
    }

    #[test]
    fn a_sync_follows_every_so_many_writes() {
        let job = {
            let mut job = example();
            job["rw"] = json!("write");
            job["fsync"] = json!(3);
            Job::parse(&job.to_string()).unwrap()
        };
        let mut source = Source::new(&job, 0);
        for position in 0..16 {
            let operation = source.next_operation().unwrap();
            let expected = if position % 4 == 3 {
                Direction::Sync
            } else {
                Direction::Write
            };
            assert_eq!(operation.direction, expected);
            if operation.direction == Direction::Write {
                source.wrote(operation.file);
            }
        }
    }
}
