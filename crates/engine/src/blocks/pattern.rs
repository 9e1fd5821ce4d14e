//! What is written: blocks of 4 KiB that no storage can compress or deduplicate, each carrying its own address.
//!
//! A block is `header (40 bytes) | payload`, the payload being a window of a fixed random pool XORed with
//! a key drawn from seed, generation, file and offset: as cheap as a copy, different in every block,
//! and recomputable from the header alone, by anyone, later.
//!
//! Header, little-endian: magic u64, checksum u64, seed u64, offset u64, file u32, generation u32.
//!
//! On request a part of the data is the contrary. Of a compressible block a share is zeros, at its end, and the
//! magic's last byte gives that share in percent. A duplicate carries the header of the one block that it equals.

use crate::distribution::scaled;
pub use crate::geometry::BLOCK_BYTES;
use crate::job::Job;
use crate::random::{Random, mix};
use crate::sys::lanes::{Lanes, Width};

const MAGIC_RANDOM: u64 = u64::from_le_bytes(*b"LLblk1r\n");
const MAGIC_UNIFORM: u64 = u64::from_le_bytes(*b"LLblk1u\n");
/// The last byte is the percentage of zeros.
const MAGIC_COMPRESSIBLE: u64 = u64::from_le_bytes(*b"LLblk1c\0");
const POOL_BYTES: usize = 16 << 10;
const POOL_SEED: u64 = 0x6C65_6164_6C69_6E65;
/// Start of the part that is filled by whole keys; the words between header and it are drawn singly.
const BODY_START: usize = 64;
const HEADER_WORDS: usize = 5;
/// What is copied at once.
const LANE_BYTES: usize = 32;

/// Where a block belongs and which writing it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub seed: u64,
    pub generation: u32,
    pub file: u32,
    /// Of the block's first byte in its file; a multiple of 4 KiB.
    pub offset: u64,
}

/// The pool, shared by all threads.
#[derive(Debug)]
pub struct Pattern {
    pool: Box<[u8]>,
    kind: Kind,
    dedupe_percentage: u32,
    /// What is equal or different as a whole, in bytes.
    dedupe_unit_bytes: u64,
    width: Width,
}

/// How a block's body is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Random,
    /// One repeated word.
    Uniform,
    /// This percentage of the block is zeros.
    Compressible(u8),
}

impl Kind {
    fn magic(self) -> u64 {
        match self {
            Self::Random => MAGIC_RANDOM,
            Self::Uniform => MAGIC_UNIFORM,
            Self::Compressible(percent) => MAGIC_COMPRESSIBLE | u64::from(percent) << 56,
        }
    }

    fn is_magic(magic: u64) -> bool {
        let is_compressible = magic << 8 == MAGIC_COMPRESSIBLE << 8 && magic >> 56 <= 100;
        magic == MAGIC_RANDOM || magic == MAGIC_UNIFORM || is_compressible
    }
}

/// Bytes of a body that are random where `percent` of the block are zeros.
fn random_bytes(percent: u8) -> usize {
    let wanted = BLOCK_BYTES * (100 - usize::from(percent)) / 100;
    wanted.saturating_sub(BODY_START) / LANE_BYTES * LANE_BYTES
}

impl Pattern {
    /// Incompressible blocks; or, for the contrary, blocks of one repeated word.
    pub fn new(incompressible: bool) -> Self {
        let mut random = Random::new(POOL_SEED, 0);
        let words = (POOL_BYTES + BLOCK_BYTES) / 8;
        let pool: Vec<u8> = (0..words)
            .flat_map(|_| random.next_u64().to_le_bytes())
            .collect();
        Self {
            pool: pool.into_boxed_slice(),
            kind: if incompressible {
                Kind::Random
            } else {
                Kind::Uniform
            },
            dedupe_percentage: 0,
            dedupe_unit_bytes: BLOCK_BYTES as u64,
            width: Width::of_this_cpu(),
        }
    }

    /// What `job` writes.
    pub fn of(job: &Job) -> Self {
        let shares = (job.buffer_compress_percentage, job.dedupe_percentage);
        let kind = match shares {
            (0, 0) => return Self::new(job.incompressible),
            (0, _) => Kind::Random,
            (percent, _) => Kind::Compressible(percent as u8),
        };
        Self {
            kind,
            dedupe_percentage: job.dedupe_percentage,
            dedupe_unit_bytes: job.bs.next_multiple_of(BLOCK_BYTES as u64),
            ..Self::new(true)
        }
    }

    /// The stamp that a block carries: its own, or that of the block that it duplicates. Which blocks are
    /// duplicates depends on the place alone, so that every reader knows.
    fn carried(&self, stamp: Stamp) -> Stamp {
        if self.dedupe_percentage == 0 {
            return stamp;
        }
        let unit = stamp.offset / self.dedupe_unit_bytes;
        let place = mix(unit ^ mix(u64::from(stamp.file) ^ POOL_SEED));
        if scaled(place, 100) >= u64::from(self.dedupe_percentage) {
            return stamp;
        }
        Stamp {
            seed: 0,
            generation: 0,
            file: 0,
            offset: stamp.offset % self.dedupe_unit_bytes,
        }
    }

    /// Fills `buffer` with what belongs at `stamp.offset` of its file, which may lie within a block.
    pub fn fill(&self, buffer: &mut [u8], stamp: Stamp) {
        let within = (stamp.offset % BLOCK_BYTES as u64) as usize;
        let head = (BLOCK_BYTES - within) % BLOCK_BYTES;
        let (head, rest) = buffer.split_at_mut(head.min(buffer.len()));
        let (blocks, tail) = rest.as_chunks_mut();
        let at = |offset: u64| Stamp { offset, ..stamp };
        if !head.is_empty() {
            let block = self.block(at(stamp.offset - within as u64));
            head.copy_from_slice(&block[within..within + head.len()]);
        }
        let first = stamp.offset + head.len() as u64;
        self.fill_blocks(blocks, at(first));
        if !tail.is_empty() {
            let block = self.block(at(first + (blocks.len() * BLOCK_BYTES) as u64));
            tail.copy_from_slice(&block[..tail.len()]);
        }
    }

    /// Whole blocks. What the next one is made of is drawn before this one is: a chain of multiplications that
    /// the processor does beside the copying.
    fn fill_blocks(&self, blocks: &mut [[u8; BLOCK_BYTES]], first: Stamp) {
        let made = |index: usize| {
            let offset = first.offset + (index * BLOCK_BYTES) as u64;
            Made::of(self.carried(Stamp { offset, ..first }))
        };
        let Some((last, others)) = blocks.split_last_mut() else {
            return;
        };
        let mut next = made(0);
        for (index, block) in others.iter_mut().enumerate() {
            let now = std::mem::replace(&mut next, made(index + 1));
            self.fill_block(block, now, self.kind);
        }
        self.fill_block(last, next, self.kind);
    }

    /// Whether `block`, or the shorter end of a file, is what `stamp` stands for.
    #[inline]
    pub fn holds(&self, block: &[u8], stamp: Stamp) -> bool {
        if block.len() == BLOCK_BYTES && self.kind == Kind::Random {
            return self.matches(block, self.carried(stamp));
        }
        self.block(stamp).starts_with(block)
    }

    /// The block that `stamp` stands for.
    pub fn block(&self, stamp: Stamp) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        self.fill_block(&mut block, Made::of(self.carried(stamp)), self.kind);
        block
    }

    /// What a block says of itself, if it says anything.
    pub fn stamp_in(block: &[u8]) -> Option<Stamp> {
        read_stamp(block)
    }

    fn fill_block(&self, block: &mut [u8; BLOCK_BYTES], made: Made, kind: Kind) {
        let Made { stamp, hash, key } = made;
        let (head, body) = block.split_at_mut(BODY_START);
        let sums = match kind {
            Kind::Random => self.width.xor_copy(body, self.window(hash), key),
            Kind::Uniform => {
                body.chunks_exact_mut(8)
                    .for_each(|word| word.copy_from_slice(&hash.to_le_bytes()));
                [hash; 4]
            }
            Kind::Compressible(percent) => {
                let (random, zeros) = body.split_at_mut(random_bytes(percent));
                zeros.fill(0);
                self.width.xor_copy(random, self.window(hash), key)
            }
        };
        write_head(head, stamp, hash, sums, kind);
    }

    /// Compares without writing: several times faster than making the block again.
    fn matches(&self, block: &[u8], stamp: Stamp) -> bool {
        let hash = hash_of(stamp);
        let (head, body) = block.split_at(BODY_START);
        let (same, sums) = self
            .width
            .xor_compare(body, self.window(hash), key_of(hash));
        let mut expected = [0; BODY_START];
        write_head(&mut expected, stamp, hash, sums, Kind::Random);
        same && head == expected
    }

    fn window(&self, hash: u64) -> &[u8] {
        let start = (hash as usize % POOL_BYTES) & !63;
        &self.pool[start..start + BLOCK_BYTES - BODY_START]
    }
}

/// What a block is made of.
struct Made {
    stamp: Stamp,
    hash: u64,
    key: Lanes,
}

impl Made {
    #[inline]
    fn of(stamp: Stamp) -> Self {
        let hash = hash_of(stamp);
        let key = key_of(hash);
        Self { stamp, hash, key }
    }
}

fn hash_of(stamp: Stamp) -> u64 {
    let place = mix(stamp.offset ^ mix(u64::from(stamp.file) << 32 | u64::from(stamp.generation)));
    mix(place ^ mix(stamp.seed))
}

fn key_of(hash: u64) -> Lanes {
    [mix(hash ^ 1), mix(hash ^ 2), mix(hash ^ 3), mix(hash ^ 4)]
}

fn write_head(head: &mut [u8], stamp: Stamp, hash: u64, sums: Lanes, kind: Kind) {
    let place = u64::from(stamp.file) | u64::from(stamp.generation) << 32;
    let checksum = sums.iter().fold(hash, |sum, lane| mix(sum ^ lane));
    let words = [
        kind.magic(),
        checksum,
        stamp.seed,
        stamp.offset,
        place,
        mix(hash ^ 5),
        mix(hash ^ 6),
        mix(hash ^ 7),
    ];
    for (bytes, word) in head.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}

fn read_stamp(block: &[u8]) -> Option<Stamp> {
    let mut words = [0_u64; HEADER_WORDS];
    for (word, bytes) in words
        .iter_mut()
        .zip(block.get(..HEADER_WORDS * 8)?.chunks_exact(8))
    {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    let [magic, _, seed, offset, place] = words;
    let stamp = Stamp {
        seed,
        offset,
        file: place as u32,
        generation: (place >> 32) as u32,
    };
    Kind::is_magic(magic).then_some(stamp)
}

/// True for zeros only. Looks at one word first: data is hardly ever zero there.
#[inline(always)]
pub fn is_zero(bytes: &[u8]) -> bool {
    match bytes.split_first_chunk::<8>() {
        Some((word, _)) if u64::from_ne_bytes(*word) != 0 => false,
        _ => all_zero(bytes),
    }
}

#[cold]
fn all_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    const STAMP: Stamp = Stamp {
        seed: 9,
        generation: 2,
        file: 3,
        offset: 8192,
    };

    fn written(bytes: usize, stamp: Stamp) -> Vec<u8> {
        let mut buffer = vec![0; bytes];
        Pattern::new(true).fill(&mut buffer, stamp);
        buffer
    }

    #[test]
    fn a_written_block_holds_what_its_stamp_stands_for_and_says_so() {
        for incompressible in [true, false] {
            let pattern = Pattern::new(incompressible);
            let mut block = vec![0; BLOCK_BYTES];
            pattern.fill(&mut block, STAMP);
            assert!(pattern.holds(&block, STAMP));
            assert_eq!(Pattern::stamp_in(&block), Some(STAMP));
            let older = Stamp {
                generation: STAMP.generation - 1,
                ..STAMP
            };
            assert!(!pattern.holds(&block, older));
        }
        assert_eq!(Pattern::stamp_in(&[0; BLOCK_BYTES]), None);
    }

    #[test]
    fn no_two_blocks_are_equal() {
        let mut seen = HashSet::new();
        for file in 0..4 {
            for generation in 0..4 {
                let stamp = Stamp {
                    file,
                    generation,
                    offset: 0,
                    seed: 1,
                };
                for block in written(64 * BLOCK_BYTES, stamp).chunks(BLOCK_BYTES) {
                    assert!(seen.insert(block[BODY_START..].to_vec()));
                }
            }
        }
    }

    fn at(file: u32, index: usize) -> Stamp {
        let offset = (index * BLOCK_BYTES) as u64;
        Stamp {
            offset,
            file,
            ..STAMP
        }
    }

    fn data_of(changes: serde_json::Value, file: u32, bytes: usize) -> (Pattern, Vec<u8>) {
        let mut job = crate::job::tests::example();
        job["incompressible"] = false.into();
        for (key, value) in changes.as_object().unwrap() {
            job[key] = value.clone();
        }
        let pattern = Pattern::of(&Job::parse(&job.to_string()).unwrap());
        let mut data = vec![0; bytes];
        let stamp = Stamp {
            offset: 0,
            file,
            ..STAMP
        };
        pattern.fill(&mut data, stamp);
        (pattern, data)
    }

    #[test]
    fn a_compressible_block_has_its_share_of_zeros_and_verifies() {
        for percent in [1_u8, 30, 50, 99, 100] {
            let changes = serde_json::json!({"buffer_compress_percentage": percent});
            let (pattern, data) = data_of(changes, 0, 1 << 20);
            let zeros = data.iter().filter(|byte| **byte == 0).count() as f64 / data.len() as f64;
            // A random byte is zero once in 256; the header's 64 bytes are 1.6 % of a block.
            let expected = f64::from(percent) / 100.0 + (1.0 - f64::from(percent) / 100.0) / 256.0;
            assert!((zeros - expected).abs() < 0.02, "{percent}: {zeros}");
            let good = |(index, block)| pattern.holds(block, at(0, index));
            assert!(data.chunks(BLOCK_BYTES).enumerate().all(good));
        }
    }

    #[test]
    fn duplicates_have_their_share_in_whole_operations_and_verify() {
        let changes = serde_json::json!({"dedupe_percentage": 40, "bs": 16384});
        let (pattern, data) = data_of(changes, 3, 64 << 20);
        let units: Vec<&[u8]> = data.chunks(16384).collect();
        let different = units.iter().collect::<HashSet<_>>().len() as f64;
        // 4,096 units: the standard error of the share is 0.8 %.
        let share = 1.0 - different / units.len() as f64;
        assert!((share - 0.4).abs() < 0.04, "{share}");
        let good = |(index, block)| pattern.holds(block, at(3, index));
        assert!(data.chunks(BLOCK_BYTES).enumerate().all(good));
    }

    #[test]
    fn the_last_partial_block_of_a_file_verifies() {
        let block = written(1000, STAMP);
        assert!(Pattern::new(true).holds(&block, STAMP));
    }

    proptest! {
        #[test]
        fn small_writes_make_the_same_file_as_large_ones(size in 1_usize..9000) {
            let whole = written(5 * BLOCK_BYTES, Stamp { offset: 0, ..STAMP });
            let mut parts = vec![0; whole.len()];
            for (index, part) in parts.chunks_mut(size).enumerate() {
                Pattern::new(true).fill(part, Stamp { offset: (index * size) as u64, ..STAMP });
            }
            prop_assert!(whole == parts);
        }
    }
}
