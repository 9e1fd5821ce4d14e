//! Operations of several sizes over one map, as fio has it: what one of them touched none touches again before
//! everything was touched, so that one that meets such a block ends there. A bit for each smallest block.

use crate::distribution::scaled;
use crate::random::Random;

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
    use proptest::prelude::*;

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
