//! How random blocks are distributed (fio's `random_distribution`): a map without repeats, uniform, or skewed so
//! that some blocks are met far more often than others.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::offsets::Permutation;
use crate::random::Random;

/// The distribution of a job's random blocks.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Distribution {
    /// Every block once before any comes again (fio's random map).
    #[default]
    Map,
    /// Each block as likely as any other at any time (fio's `norandommap`).
    Random,
    /// The block of rank k is met in proportion to k^-theta.
    Zipf(f64),
    /// A share h of the blocks gets a share 1 - h of the operations, and so on within that share.
    Pareto(f64),
}

/// What `theta` may be: beyond it nearly all operations meet one block.
const THETA_MAX: f64 = 10.0;

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = text.split_once(':').unwrap_or((text, ""));
        let parameter = number.parse::<f64>().ok().filter(|value| value.is_finite());
        match (name, parameter) {
            ("map", None) if number.is_empty() => Ok(Self::Map),
            ("random", None) if number.is_empty() => Ok(Self::Random),
            ("zipf", Some(theta)) if theta > 0.0 && theta <= THETA_MAX => Ok(Self::Zipf(theta)),
            ("pareto", Some(h)) if h > 0.0 && h < 1.0 => Ok(Self::Pareto(h)),
            _ => Err(format!(
                "random_distribution: {text:?} must be map, random, zipf:THETA (above 0, at most \
                 {THETA_MAX}) or pareto:H (between 0 and 1)"
            )),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Map => out.write_str("map"),
            Self::Random => out.write_str("random"),
            Self::Zipf(theta) => write!(out, "zipf:{theta}"),
            Self::Pareto(h) => write!(out, "pareto:{h}"),
        }
    }
}

impl TryFrom<String> for Distribution {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Distribution> for String {
    fn from(distribution: Distribution) -> Self {
        distribution.to_string()
    }
}

/// Draws ranks from 0; rank 0 is met most often.
#[derive(Debug, Clone)]
enum Law {
    Uniform,
    Zipf(Zipf),
    /// The exponent of a uniform number.
    Pareto(f64),
}

/// An endless sequence of independent blocks. Ranks are scattered over the file by a fixed permutation, so that
/// the hot blocks are not neighbours.
#[derive(Debug, Clone)]
pub struct Draw {
    blocks: u64,
    law: Law,
    scatter: Permutation,
    random: Random,
}

impl Draw {
    /// `None` for the map, which is no independent draw.
    pub fn new(distribution: Distribution, blocks: u64, mut random: Random) -> Option<Self> {
        let law = match distribution {
            Distribution::Map => return None,
            Distribution::Random => Law::Uniform,
            Distribution::Zipf(theta) => Law::Zipf(Zipf::new(blocks, theta)),
            // Gray et al., "Quickly generating billion-record synthetic databases", SIGMOD 1994, section 3.3
            // (self-similar): u^(ln h / ln (1 - h)) puts a share 1 - h below h.
            Distribution::Pareto(h) => Law::Pareto(h.ln() / (1.0 - h).ln()),
        };
        let scatter = Permutation::new(blocks, random.next_u64());
        Some(Self {
            blocks,
            law,
            scatter,
            random,
        })
    }

    /// The next block's number.
    #[inline]
    pub fn next_block(&mut self) -> u64 {
        match self.law {
            Law::Uniform => scaled(self.random.next_u64(), self.blocks),
            _ => {
                let rank = self.next_rank();
                self.scatter.scattered(rank, self.blocks)
            }
        }
    }

    fn next_rank(&mut self) -> u64 {
        let last = self.blocks - 1;
        match &self.law {
            Law::Uniform => scaled(self.random.next_u64(), self.blocks),
            Law::Zipf(zipf) => zipf.draw(&mut self.random).min(last),
            Law::Pareto(exponent) => {
                let place = self.random.unit().powf(*exponent) * self.blocks as f64;
                (place as u64).min(last)
            }
        }
    }
}

/// `value` of the whole 64-bit range, scaled to a number below `limit`.
#[inline]
pub fn scaled(value: u64, limit: u64) -> u64 {
    ((u128::from(value) * u128::from(limit)) >> 64) as u64
}

/// Zipf's law over `count` ranks, exact for every exponent and count, without a table.
///
/// Rejection-inversion: Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6 (1996) 169-184.
#[derive(Debug, Clone, Copy)]
struct Zipf {
    count: f64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    accepted_below: f64,
}

impl Zipf {
    fn new(count: u64, theta: f64) -> Self {
        let mut this = Self {
            count: count as f64,
            theta,
            integral_first: 0.0,
            integral_last: 0.0,
            accepted_below: 0.0,
        };
        this.integral_first = this.integral(1.5) - 1.0;
        this.integral_last = this.integral(this.count + 0.5);
        this.accepted_below = 2.0 - this.inverse(this.integral(2.5) - this.density(2.0));
        this
    }

    /// x^-theta.
    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// The integral of the density from 1 to x; near theta = 1 without loss of digits.
    fn integral(&self, x: f64) -> f64 {
        let logarithm = x.ln();
        logarithm * ratio((1.0 - self.theta) * logarithm, f64::exp_m1)
    }

    /// The inverse of `integral`.
    fn inverse(&self, value: f64) -> f64 {
        let scaled = (value * (1.0 - self.theta)).max(-1.0);
        (value * ratio(scaled, f64::ln_1p)).exp()
    }

    /// A rank from 0.
    fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let span = self.integral_first - self.integral_last;
            let height = self.integral_last + random.unit() * span;
            let x = self.inverse(height);
            let rank = (x + 0.5).floor().clamp(1.0, self.count);
            let sure = rank - x <= self.accepted_below;
            if sure || height >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

/// function(x) / x, which tends to 1 at 0 for both functions used here.
fn ratio(x: f64, function: fn(f64) -> f64) -> f64 {
    if x.abs() < 1e-12 {
        1.0
    } else {
        function(x) / x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DRAWS: usize = 200_000;

    fn rank_counts(distribution: &str, blocks: u64) -> Vec<f64> {
        let mut draw =
            Draw::new(distribution.parse().unwrap(), blocks, Random::new(11, 0)).unwrap();
        let mut counts = vec![0.0; blocks as usize];
        (0..DRAWS).for_each(|_| counts[draw.next_rank() as usize] += 1.0);
        counts
    }

    #[test]
    fn zipf_follows_its_formula() {
        for theta in [0.5, 0.99, 1.0, 1.2, 2.5] {
            let blocks = 1000;
            let counts = rank_counts(&format!("zipf:{theta}"), blocks);
            let sum: f64 = (1..=blocks).map(|rank| (rank as f64).powf(-theta)).sum();
            for (index, found) in counts.iter().enumerate().take(50) {
                let share = ((index + 1) as f64).powf(-theta) / sum;
                let expected = share * DRAWS as f64;
                // Five standard deviations of a binomial count.
                let bound = 5.0 * (expected * (1.0 - share)).sqrt().max(1.0);
                assert!(
                    (found - expected).abs() < bound,
                    "zipf:{theta} rank {index}: {found} of {expected}"
                );
            }
        }
    }

    #[test]
    fn pareto_gives_a_share_h_of_the_blocks_the_rest_of_the_operations() {
        for h in [0.1, 0.2, 0.4] {
            let counts = rank_counts(&format!("pareto:{h}"), 10_000);
            let hot: f64 = counts[..(10_000.0 * h) as usize].iter().sum();
            // The standard error is at most 0.11 %.
            assert!((hot / DRAWS as f64 - (1.0 - h)).abs() < 0.006, "pareto:{h}");
        }
    }

    #[test]
    fn random_is_uniform() {
        let counts = rank_counts("random", 100);
        let expected = DRAWS as f64 / 100.0;
        let chi_square: f64 = counts
            .iter()
            .map(|c| (c - expected).powi(2) / expected)
            .sum();
        // 99 degrees of freedom: 149 is the 99.9 % quantile; the seed is fixed.
        assert!(chi_square < 149.0, "{chi_square}");
    }

    proptest! {
        #[test]
        fn every_draw_is_a_block(blocks in 1_u64..100_000, theta in 0.01_f64..9.0, h in 0.01_f64..0.99, seed: u64) {
            for distribution in [Distribution::Random, Distribution::Zipf(theta), Distribution::Pareto(h)] {
                let mut draw = Draw::new(distribution, blocks, Random::new(seed, 0)).unwrap();
                for _ in 0..50 {
                    prop_assert!(draw.next_block() < blocks);
                }
            }
        }
    }

    #[test]
    fn hot_blocks_are_scattered() {
        let mut draw = Draw::new(Distribution::Zipf(1.5), 1 << 20, Random::new(4, 0)).unwrap();
        let low = (0..10_000).filter(|_| draw.next_block() < 1 << 19).count();
        assert!((500..9_500).contains(&low), "{low}");
    }

    #[test]
    fn bad_parameters_are_refused_with_what_would_be_right() {
        for text in [
            "zipf", "zipf:0", "zipf:x", "pareto:1", "pareto:", "normal:1", "map:2", "",
        ] {
            assert!(
                text.parse::<Distribution>()
                    .unwrap_err()
                    .contains("zipf:THETA"),
                "{text}"
            );
        }
    }
}
