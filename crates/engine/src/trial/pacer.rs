//! When operations of an open loop are meant to start. The schedule never looks at completions:
//! a slow target does not slow the arrivals (no coordinated omission).

use crate::job::Arrival;
use crate::random::Random;

/// An endless schedule of intended starts, in ns since the trial's start.
#[derive(Debug, Clone)]
pub struct Pacer {
    arrival: Arrival,
    gap_ns: f64,
    /// Constant arrivals are counted, not summed, so that no rounding accumulates.
    count: u64,
    first_ns: f64,
    next_ns: f64,
    random: Random,
}

impl Pacer {
    /// `rate` operations per second of this thread; `phase` (0 to 1) is the share of a gap before the
    /// first of constant arrivals, by which threads are staggered.
    pub fn new(arrival: Arrival, rate: f64, phase: f64, random: Random) -> Self {
        let gap_ns = 1e9 / rate;
        let first_ns = phase * gap_ns;
        let mut pacer = Self {
            arrival,
            gap_ns,
            count: 0,
            first_ns,
            next_ns: first_ns,
            random,
        };
        if arrival == Arrival::Poisson {
            pacer.next_ns = pacer.exponential_gap();
        }
        pacer
    }

    /// The next intended start.
    #[inline]
    pub fn peek_ns(&self) -> u64 {
        self.next_ns as u64
    }

    /// Takes the next intended start.
    #[inline]
    pub fn take_ns(&mut self) -> u64 {
        let intended = self.peek_ns();
        self.count += 1;
        self.next_ns = match self.arrival {
            Arrival::Constant => self.first_ns + self.count as f64 * self.gap_ns,
            Arrival::Poisson => self.next_ns + self.exponential_gap(),
        };
        intended
    }

    /// A Poisson process has independent exponential gaps; 1 - u lies in (0, 1], so the logarithm is finite.
    fn exponential_gap(&mut self) -> f64 {
        -(1.0 - self.random.unit()).ln() * self.gap_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(arrival: Arrival, rate: f64, count: usize) -> Vec<u64> {
        let mut pacer = Pacer::new(arrival, rate, 0.0, Random::new(1, 2));
        (0..count).map(|_| pacer.take_ns()).collect()
    }

    #[test]
    fn constant_arrivals_do_not_drift() {
        let starts = starts(Arrival::Constant, 3.0, 3_000_001);
        assert_eq!(starts[3_000_000], 1_000_000_000_000_000);
        assert_eq!(starts[1], 333_333_333);
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_the_spread_of_an_exponential() {
        let count = 400_000;
        let starts = starts(Arrival::Poisson, 1000.0, count);
        let gaps: Vec<f64> = starts
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // The mean's standard error is 1 / sqrt(400,000) = 0.16 %.
        assert!((mean / 1e6 - 1.0).abs() < 0.006, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.01);
    }

    #[test]
    fn threads_are_staggered_within_one_gap() {
        let pacer = Pacer::new(Arrival::Constant, 1000.0, 0.25, Random::new(1, 0));
        assert_eq!(pacer.peek_ns(), 250_000);
    }
}
