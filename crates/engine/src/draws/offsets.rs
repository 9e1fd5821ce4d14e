//! Which block comes next: sequential, random without repeats until every block was met (fio's random map), or
//! drawn. Needs no memory per block: the map's order is a keyed permutation of the block numbers.

use crate::distribution::{Distribution, Draw};
use crate::random::{Random, mix};

/// An endless order over `blocks` blocks.
#[derive(Debug, Clone)]
pub enum Order {
    /// Blocks 0, 1, 2, … and again.
    Sequential { blocks: u64, next: u64 },
    /// A random order, another one in each pass; each pass meets every block once.
    Map(Map),
    /// Independent draws.
    Drawn(Box<Draw>),
    /// Some by one of the orders above, the others behind the one before them.
    Partly(Box<Partly>),
}

/// A share of random blocks, the others sequential.
#[derive(Debug, Clone)]
pub struct Partly {
    jumps: Order,
    jump: Jump,
    blocks: u64,
    next: u64,
}

/// Whether an operation goes to a random place; the first one always does.
#[derive(Debug, Clone)]
pub struct Jump {
    below: u64,
    random: Random,
}

impl Jump {
    /// In `percent` of 100 operations.
    pub fn new(percent: u32, random: Random) -> Self {
        let below = share_of_range(percent);
        Self { below, random }
    }

    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.random.next_u64() < self.below
    }
}

/// The part of the 64-bit range that so many percent of random numbers lie below.
pub fn share_of_range(percent: u32) -> u64 {
    (u128::from(u64::MAX) * u128::from(percent) / 100) as u64
}

/// One pass after the other over all blocks, each in its own order.
#[derive(Debug, Clone)]
pub struct Map {
    blocks: u64,
    next: u64,
    permutation: Permutation,
    random: Random,
}

impl Order {
    /// Blocks 0, 1, 2, … and again.
    pub fn sequential(blocks: u64) -> Self {
        Self::Sequential { blocks, next: 0 }
    }

    /// Random blocks of this distribution.
    pub fn random(distribution: Distribution, blocks: u64, mut random: Random) -> Self {
        match Draw::new(distribution, blocks, random.clone()) {
            Some(draw) => Self::Drawn(Box::new(draw)),
            None => Self::Map(Map {
                blocks,
                next: 0,
                permutation: Permutation::new(blocks, random.next_u64()),
                random,
            }),
        }
    }

    /// This order for the operations that `jump`, the block behind the last one for the others.
    pub fn partly(self, blocks: u64, jump: Jump) -> Self {
        Self::Partly(Box::new(Partly {
            jumps: self,
            jump,
            blocks,
            next: 0,
        }))
    }

    /// The next block's number.
    #[inline]
    pub fn next_block(&mut self) -> u64 {
        match self {
            Self::Sequential { blocks, next } => {
                let block = *next;
                *next += 1;
                if *next == *blocks {
                    *next = 0;
                }
                block
            }
            Self::Map(map) => map.next_block(),
            Self::Drawn(draw) => draw.next_block(),
            Self::Partly(partly) => partly.next_block(),
        }
    }
}

impl Partly {
    fn next_block(&mut self) -> u64 {
        let block = match self.jump.is_due() {
            true => self.jumps.next_block(),
            false => self.next,
        };
        self.next = (block + 1) % self.blocks;
        block
    }
}

impl Map {
    #[inline]
    fn next_block(&mut self) -> u64 {
        let (block, next) = self.permutation.advance(self.next, self.blocks);
        if next >= self.permutation.positions {
            self.start_pass();
        } else {
            self.next = next;
        }
        block
    }

    #[cold]
    fn start_pass(&mut self) {
        self.next = 0;
        self.permutation = Permutation::new(self.blocks, self.random.next_u64());
    }
}

/// A keyed bijection on the numbers below a power of two: multiplications by odd numbers and
/// xor-shifts can each be undone, hence so can their sequence.
#[derive(Debug, Clone)]
pub struct Permutation {
    mask: u64,
    shift: u32,
    multipliers: [u64; 3],
    added: u64,
    positions: u64,
}

impl Permutation {
    /// The bijection of `key`, for numbers below `blocks`.
    pub fn new(blocks: u64, key: u64) -> Self {
        let bits = (64 - (blocks - 1).leading_zeros()).max(1);
        let multipliers = [mix(key ^ 1) | 1, mix(key ^ 2) | 1, mix(key ^ 3) | 1];
        let mut this = Self {
            mask: u64::MAX >> (64 - bits),
            shift: bits.div_ceil(2),
            multipliers,
            added: mix(key ^ 4),
            positions: 1 << bits,
        };
        // Positions at the end that map to no block are cut off, so that a pass ends with its last block.
        while this.image(this.positions - 1) >= blocks {
            this.positions -= 1;
        }
        this
    }

    #[inline]
    fn image(&self, position: u64) -> u64 {
        let mut value = position.wrapping_add(self.added) & self.mask;
        for multiplier in self.multipliers {
            value = value.wrapping_mul(multiplier) & self.mask;
            value ^= value >> self.shift;
        }
        value
    }

    /// Where `number` (below `blocks`) is scattered to, below `blocks` too: images outside are mapped again, which
    /// keeps it a bijection (cycle walking).
    #[inline]
    pub fn scattered(&self, number: u64, blocks: u64) -> u64 {
        let mut image = self.image(number);
        while image >= blocks {
            image = self.image(image);
        }
        image
    }

    /// The block at the first position from `position` on that maps below `blocks`, and the position after.
    #[inline]
    fn advance(&self, mut position: u64, blocks: u64) -> (u64, u64) {
        loop {
            let block = self.image(position);
            position += 1;
            if block < blocks {
                return (block, position);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pass(order: &mut Order, blocks: u64) -> Vec<u64> {
        (0..blocks).map(|_| order.next_block()).collect()
    }

    proptest! {
        #[test]
        fn a_random_pass_meets_every_block_once(blocks in 1_u64..3000, seed: u64) {
            let mut order = Order::random(Distribution::Map, blocks, Random::new(seed, 0));
            for _ in 0..3 {
                let mut seen = pass(&mut order, blocks);
                seen.sort_unstable();
                prop_assert_eq!(seen, (0..blocks).collect::<Vec<_>>());
            }
        }

        #[test]
        fn scattering_is_a_bijection(blocks in 1_u64..3000, key: u64) {
            let permutation = Permutation::new(blocks, key);
            let mut images: Vec<u64> = (0..blocks).map(|block| permutation.scattered(block, blocks)).collect();
            images.sort_unstable();
            prop_assert_eq!(images, (0..blocks).collect::<Vec<_>>());
        }

        #[test]
        fn equal_seeds_give_equal_orders(seed: u64) {
            let order = || pass(&mut Order::random(Distribution::Map, 1000, Random::new(seed, 7)), 2500);
            prop_assert_eq!(order(), order());
        }
    }

    #[test]
    fn passes_differ() {
        let mut order = Order::random(Distribution::Map, 1000, Random::new(3, 0));
        assert_ne!(pass(&mut order, 1000), pass(&mut order, 1000));
    }

    #[test]
    fn a_share_of_blocks_follows_the_one_before() {
        let blocks = 1 << 16;
        for percent in [0, 30, 100] {
            let jump = Jump::new(percent, Random::new(9, 1));
            let order = Order::random(Distribution::Map, blocks, Random::new(9, 0));
            let found = pass(&mut order.partly(blocks, jump), blocks);
            let following = found
                .windows(2)
                .filter(|pair| pair[1] == (pair[0] + 1) % blocks)
                .count();
            let share = following as f64 / (blocks - 1) as f64;
            // Five standard errors of a share of 65,535 draws; random places follow by chance once in 65,536.
            assert!(
                (share - (1.0 - f64::from(percent) / 100.0)).abs() < 0.009,
                "{percent}: {share}"
            );
        }
    }

    #[test]
    fn a_sequential_order_wraps_around() {
        assert_eq!(pass(&mut Order::sequential(3), 7), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn neighbours_in_time_are_not_neighbours_in_space() {
        let blocks = 1 << 16;
        let order = pass(
            &mut Order::random(Distribution::Map, blocks, Random::new(5, 0)),
            blocks,
        );
        let near = order
            .windows(2)
            .filter(|pair| pair[0].abs_diff(pair[1]) < 64)
            .count();
        // A uniform order has 2 * 64 / 65536 of its pairs that near: 128 of them.
        assert!((64..256).contains(&near), "{near}");
        let mean_step: f64 = order
            .windows(2)
            .map(|pair| pair[0].abs_diff(pair[1]) as f64)
            .sum::<f64>()
            / blocks as f64;
        assert!(
            (mean_step / (blocks as f64 / 3.0) - 1.0).abs() < 0.05,
            "{mean_step}"
        );
    }
}
