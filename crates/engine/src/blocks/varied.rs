//! Operations of several sizes: where each begins, and that no size disturbs another's shares.
//!
//! Sequential ones follow each other without a gap, the last of a file cut to what is left. Random ones are
//! aligned to their own size, and each size has an order of its own over all its blocks; so the shares of sizes are
//! exactly those asked for. Or, as fio has it, they share one map, are aligned to the smallest size and cut short
//! where the map has no room for them; so a pass moves every byte once, and more small operations than asked for.

use super::map::TouchedMap;
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
}
