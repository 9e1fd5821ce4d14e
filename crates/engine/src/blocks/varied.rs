//! Operations of several sizes: where each begins, and that no size disturbs another's shares.
//!
//! Sequential ones follow each other without a gap, the last of a file cut to what is left. Random ones are
//! aligned to their own size, and each size has an order of its own over all its blocks; so the shares of sizes are
//! exactly those asked for. Or, as fio has it, they share one map, are aligned to the smallest size and cut short
//! where the map has no room for them; so a pass moves every byte once, and more small operations than asked for.

use crate::distribution::scaled;
use crate::io::{Direction, Operation};
use crate::job::Job;
use crate::offsets::{Jump, Order};
use crate::random::Random;
use crate::sizes::{SizeDraw, Split};

/// Blocks of one size.
struct Class {
    bytes: u64,
    per_file: u64,
    order: Order,
}

/// How often a size is drawn again that does not fit before a file's end, as fio does without a bound.
const DRAWS_MAX: usize = 100;

/// What all sizes share.
struct OneMap {
    touched: TouchedMap,
    block_bytes: u64,
    per_file: u64,
}

#[derive(Clone, Copy, Default)]
struct Cursor {
    file: u32,
    done_bytes: u64,
}

/// One thread's stream of places and sizes.
pub struct Varied {
    first_byte: u64,
    own_bytes: u64,
    files: u32,
    draws: [SizeDraw; 2],
    /// Empty for sequential jobs, and where there is one map.
    classes: Vec<Class>,
    one_map: Option<OneMap>,
    cursors: [Cursor; 2],
    /// Of random jobs of which a share is sequential.
    jump: Option<Jump>,
}

impl Varied {
    /// `random` gives the stream of each purpose, counted from 0.
    pub fn new(job: &Job, split: &Split, thread: u32, random: impl Fn(u64) -> Random) -> Self {
        let own_bytes = job.own_bytes(thread);
        let mut sizes: Vec<u64> = split.sizes().collect();
        sizes.sort_unstable();
        sizes.dedup();
        let class = |(index, bytes): (usize, u64)| {
            let per_file = own_bytes / bytes;
            let blocks = per_file * u64::from(job.nrfiles);
            let random = random(2 + index as u64);
            Class {
                bytes,
                per_file,
                order: Order::random(job.random_distribution, blocks, random),
            }
        };
        let one_map = job.one_map.then(|| OneMap {
            touched: TouchedMap::new(own_bytes / job.bs * u64::from(job.nrfiles), random(2)),
            block_bytes: job.bs,
            per_file: own_bytes / job.bs,
        });
        let classes = match job.rw.is_random() && !job.one_map {
            true => sizes.into_iter().enumerate().map(class).collect(),
            false => Vec::new(),
        };
        Self {
            first_byte: job.first_byte(thread),
            own_bytes,
            files: job.nrfiles,
            draws: [Direction::Read, Direction::Write]
                .map(|direction| SizeDraw::new(split, direction, random(direction as u64))),
            classes,
            one_map,
            cursors: [Cursor::default(); 2],
            jump: None,
        }
    }

    /// The operations that do not `jump` follow the one before them.
    pub fn partly(mut self, jump: Jump) -> Self {
        self.jump = Some(jump);
        self
    }

    /// The next operation; `stream` is the cursor to advance where the job is sequential.
    pub fn next_operation(&mut self, direction: Direction, stream: usize) -> Operation {
        if let Some(map) = &mut self.one_map {
            let (file, within, length) = map.next_part(&mut self.draws[direction as usize]);
            return self.operation(direction, file, within, length);
        }
        let bytes = self.draws[direction as usize].next_bytes();
        let jumps = self.jump.as_mut().is_none_or(Jump::is_due);
        let class = self.classes.iter_mut().find(|c| c.bytes == bytes && jumps);
        let (file, within, length) = match class {
            Some(class) => {
                let block = class.order.next_block();
                let (file, block) = ((block / class.per_file) as u32, block % class.per_file);
                if self.jump.is_some() {
                    self.cursors[stream] = self.behind(file, (block + 1) * bytes);
                }
                (file, block * bytes, bytes)
            }
            None => self.advance(stream, bytes),
        };
        self.operation(direction, file, within, length)
    }

    fn operation(&self, direction: Direction, file: u32, within: u64, length: u64) -> Operation {
        Operation {
            direction,
            file,
            offset: self.first_byte + within,
            start: 0,
            length: length as u32,
            data_only: false,
        }
    }

    fn advance(&mut self, stream: usize, bytes: u64) -> (u32, u64, u64) {
        let cursor = self.cursors[stream];
        let (file, within) = (cursor.file, cursor.done_bytes);
        let length = bytes.min(self.own_bytes - within);
        self.cursors[stream] = self.behind(file, within + length);
        (file, within, length)
    }

    /// Where the next operation goes on: behind `done_bytes` of a file, or in the next one.
    fn behind(&self, file: u32, done_bytes: u64) -> Cursor {
        match done_bytes == self.own_bytes {
            true => Cursor {
                file: (file + 1) % self.files,
                done_bytes: 0,
            },
            false => Cursor { file, done_bytes },
        }
    }
}

impl OneMap {
    /// File, place and length of the next operation.
    fn next_part(&mut self, draw: &mut SizeDraw) -> (u32, u64, u64) {
        let block = self.touched.next_place();
        let (file, within) = (block / self.per_file, block % self.per_file);
        let room = self.per_file - within;
        let fits = |blocks: &u64| *blocks <= room;
        let drawn = (0..DRAWS_MAX).map(|_| draw.next_bytes() / self.block_bytes);
        let wanted = drawn.into_iter().find(fits).unwrap_or(room);
        let blocks = self.touched.touch(block, wanted);
        (
            file as u32,
            within * self.block_bytes,
            blocks * self.block_bytes,
        )
    }
}

const WORD_BITS: u64 = 64;

/// Which blocks of a pass were touched, and where the next operation begins.
pub struct TouchedMap {
    blocks: u64,
    left: u64,
    /// A bit for each block, then one for each word of the level before that is full, and so on to one word.
    levels: Vec<Vec<u64>>,
    random: Random,
}

impl TouchedMap {
    pub fn new(blocks: u64, random: Random) -> Self {
        let mut this = Self {
            blocks,
            left: 0,
            levels: Vec::new(),
            random,
        };
        this.start_pass();
        this
    }

    /// A free block: a random one, or the first free one behind it. Begins a pass where none is left.
    pub fn next_place(&mut self) -> u64 {
        if self.left == 0 {
            self.start_pass();
        }
        let wished = scaled(self.random.next_u64(), self.blocks);
        let found = self.free_from(wished).or_else(|| self.free_from(0));
        found.expect("a map that has blocks left has a free one")
    }

    /// Touches up to `wanted` blocks from the free `block` on; how many were free in a row.
    pub fn touch(&mut self, block: u64, wanted: u64) -> u64 {
        let end = (block + wanted).min(self.blocks);
        let mut next = block;
        while next < end && !self.is_touched(next) {
            self.mark(next);
            next += 1;
        }
        self.left -= next - block;
        next - block
    }

    fn start_pass(&mut self) {
        self.left = self.blocks;
        self.levels.clear();
        let mut bits = self.blocks;
        loop {
            let words = bits.div_ceil(WORD_BITS);
            let mut level = vec![0_u64; words as usize];
            // What stands for no block is never free.
            if !bits.is_multiple_of(WORD_BITS) {
                level[words as usize - 1] = u64::MAX << (bits % WORD_BITS);
            }
            self.levels.push(level);
            if words <= 1 {
                return;
            }
            bits = words;
        }
    }

    fn is_touched(&self, block: u64) -> bool {
        self.levels[0][(block / WORD_BITS) as usize] >> (block % WORD_BITS) & 1 == 1
    }

    fn mark(&mut self, block: u64) {
        let mut bit = block;
        for level in &mut self.levels {
            let word = &mut level[(bit / WORD_BITS) as usize];
            *word |= 1 << (bit % WORD_BITS);
            if *word != u64::MAX {
                return;
            }
            bit /= WORD_BITS;
        }
    }

    /// The first free block from `block` on: up to a level that has room behind it, and down again.
    fn free_from(&self, block: u64) -> Option<u64> {
        let mut bit = block;
        for (height, level) in self.levels.iter().enumerate() {
            let index = (bit / WORD_BITS) as usize;
            let free = match level.get(index) {
                Some(word) => !word & (u64::MAX << (bit % WORD_BITS)),
                None => return None,
            };
            if free != 0 {
                let found = index as u64 * WORD_BITS + u64::from(free.trailing_zeros());
                return Some(self.lowest(height, found));
            }
            bit = index as u64 + 1;
        }
        None
    }

    /// The first free block below the free bit `bit` of a level.
    fn lowest(&self, height: usize, mut bit: u64) -> u64 {
        for level in self.levels[..height].iter().rev() {
            bit = bit * WORD_BITS + u64::from((!level[bit as usize]).trailing_zeros());
        }
        bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::source::Source;
    use crate::job::tests::example;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use std::collections::{HashMap, HashSet};

    fn operations(changes: Value, count: usize) -> Vec<Operation> {
        let mut job = example();
        for (key, value) in changes.as_object().unwrap() {
            job[key] = value.clone();
        }
        let mut source = Source::new(&Job::parse(&job.to_string()).unwrap(), 0);
        std::iter::from_fn(|| source.next_operation())
            .take(count)
            .collect()
    }

    fn split(read: Value, write: Value) -> Value {
        json!({"read": read, "write": write})
    }

    proptest! {
        #[test]
        fn shares_of_sizes_are_those_asked_for(percent in 1_u32..99, seed: u64, random: bool) {
            let parts = json!([[4096, percent], [65536, 100 - percent]]);
            let found = operations(json!({
                "rw": if random { "randread" } else { "read" }, "size": 1 << 30, "seed": seed,
                "time_based": true, "runtime_ns": 1, "bssplit": split(parts.clone(), parts),
            }), 20_000);
            let small = found.iter().filter(|o| o.length == 4096).count() as f64 / 20_000.0;
            // Five standard errors of a share of 20,000 draws.
            prop_assert!((small - f64::from(percent) / 100.0).abs() < 0.018, "{}", small);
        }

        #[test]
        fn sequential_operations_leave_no_gap(percent in 1_u32..99, files in 1_u32..5, seed: u64) {
            let parts = json!([[4096, percent], [12288, 100 - percent]]);
            let found = operations(json!({
                "rw": "write", "size": 1 << 20, "nrfiles": files, "seed": seed, "bssplit": split(parts.clone(), parts),
            }), usize::MAX);
            let mut ends: HashMap<u32, u64> = HashMap::new();
            for operation in &found {
                prop_assert_eq!(*ends.entry(operation.file).or_default(), operation.offset);
                *ends.entry(operation.file).or_default() += u64::from(operation.length);
            }
            let file_bytes = (1 << 20) / u64::from(files) / 4096 * 4096;
            prop_assert!(ends.len() == files as usize && ends.values().all(|end| *end == file_bytes));
        }
    }

    #[test]
    fn a_pass_over_one_map_moves_every_byte_once() {
        let parts = json!([[512, 10], [4096, 60], [65536, 30]]);
        let found = operations(
            json!({"rw": "randrw", "rwmixread": 80, "bs": 512, "nrfiles": 2, "one_map": true,
                   "bssplit": split(parts.clone(), parts)}),
            usize::MAX,
        );
        let mut times = vec![0; (1 << 20) / 512];
        for operation in &found {
            let first = operation.file as usize * 1024 + operation.offset as usize / 512;
            let count = operation.length as usize / 512;
            assert!(operation.offset + u64::from(operation.length) <= 1 << 19);
            times[first..first + count]
                .iter_mut()
                .for_each(|time| *time += 1);
        }
        assert!(times.iter().all(|time| *time == 1));
        let cut = |o: &&Operation| ![512, 4096, 65536].contains(&o.length);
        assert!(found.iter().filter(cut).count() > 5);
    }

    #[test]
    fn what_is_not_random_follows_what_was_before_it() {
        let parts = json!([[4096, 50], [16384, 50]]);
        let found = operations(
            json!({"rw": "randread", "size": 64 << 20, "percentage_random": 40, "bssplit": split(parts.clone(), parts)}),
            4_000,
        );
        let behind =
            |pair: &&[Operation]| pair[1].offset == pair[0].offset + u64::from(pair[0].length);
        let share = found.windows(2).filter(behind).count() as f64 / (found.len() - 1) as f64;
        // Five standard errors of a share of 4,000 draws.
        assert!((share - 0.6).abs() < 0.04, "{share}");
    }

    #[test]
    fn each_direction_has_its_own_size() {
        let changes =
            json!({"rw": "randrw", "bssplit": split(json!([[4096, 100]]), json!([[16384, 100]]))});
        for operation in operations(changes, 100) {
            let expected = [4096, 16384][operation.direction as usize];
            assert_eq!(operation.length, expected);
            assert!(operation.offset.is_multiple_of(u64::from(expected)));
        }
    }

    #[test]
    fn no_block_of_a_size_comes_again_within_its_pass() {
        let parts = json!([[4096, 90], [65536, 10]]);
        let changes = json!({"rw": "randread", "bssplit": split(parts.clone(), parts)});
        let found = operations(changes, usize::MAX);
        let small: Vec<u64> = found
            .iter()
            .filter(|o| o.length == 4096)
            .map(|o| o.offset)
            .collect();
        assert!(!small.is_empty());
        assert_eq!(small.iter().collect::<HashSet<_>>().len(), small.len());
        let bytes: u64 = found.iter().map(|o| u64::from(o.length)).sum();
        assert!(((1 << 20)..(1 << 20) + 65536).contains(&bytes), "{bytes}");
    }

    proptest! {
        #[test]
        fn a_pass_touches_every_block_once(blocks in 1_u64..9000, most in 1_u64..70, seed: u64) {
            let mut map = TouchedMap::new(blocks, Random::new(seed, 0));
            let mut sizes = Random::new(seed, 1);
            for _ in 0..2 {
                let mut times = vec![0_u32; blocks as usize];
                let mut sum = 0;
                while sum < blocks {
                    let begin = map.next_place();
                    let count = map.touch(begin, 1 + scaled(sizes.next_u64(), most));
                    prop_assert!(count > 0);
                    times[begin as usize..(begin + count) as usize].iter_mut().for_each(|time| *time += 1);
                    sum += count;
                }
                prop_assert!(times.iter().all(|time| *time == 1));
            }
        }

        #[test]
        fn the_next_free_block_is_the_first_one(
            blocks in 1_u64..20_000, touched in prop::collection::vec(any::<prop::sample::Index>(), 0..40), from: prop::sample::Index,
        ) {
            let mut map = TouchedMap::new(blocks, Random::new(1, 0));
            for index in touched {
                let block = index.index(blocks as usize) as u64;
                if !map.is_touched(block) {
                    map.touch(block, 200);
                }
            }
            let from = from.index(blocks as usize) as u64;
            let slowly = (from..blocks).find(|block| !map.is_touched(*block));
            prop_assert_eq!(map.free_from(from), slowly);
        }
    }
}
