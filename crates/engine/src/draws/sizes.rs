//! How large operations are: one size, one for each direction, or shares of several (fio's `bssplit`).

use serde::{Deserialize, Serialize};

use crate::distribution::scaled;
use crate::io::Direction;
use crate::random::Random;

/// (bytes, percent) of each size; the percentages of a direction add up to 100.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    pub read: Vec<(u64, u32)>,
    pub write: Vec<(u64, u32)>,
}

impl Split {
    /// All sizes, both directions.
    pub fn sizes(&self) -> impl Iterator<Item = u64> + '_ {
        self.read.iter().chain(&self.write).map(|(size, _)| *size)
    }

    /// The mean size in bytes where `read_share` of the operations are reads.
    pub fn mean_bytes(&self, read_share: f64) -> f64 {
        let mean = |parts: &[(u64, u32)]| -> f64 {
            let sum = |(size, percent): &(u64, u32)| *size as f64 * f64::from(*percent) / 100.0;
            parts.iter().map(sum).sum()
        };
        mean(&self.read) * read_share + mean(&self.write) * (1.0 - read_share)
    }

    /// What is wrong with it, if `smallest` is the job's `bs`.
    pub fn problem(&self, smallest: u64) -> Option<String> {
        for (name, parts) in [("read", &self.read), ("write", &self.write)] {
            let sum: u64 = parts.iter().map(|(_, percent)| u64::from(*percent)).sum();
            if sum != 100 {
                return Some(format!(
                    "bssplit: the percentages of {name} add up to {sum}, not 100"
                ));
            }
        }
        let odd = self
            .sizes()
            .find(|size| *size == 0 || !size.is_multiple_of(smallest));
        odd.map(|size| format!("bssplit: {size} is no multiple of bs={smallest}, the smallest"))
    }
}

/// Draws sizes of one direction.
#[derive(Debug, Clone)]
pub struct SizeDraw {
    /// (percent up to and with this one, size).
    steps: Vec<(u64, u64)>,
    random: Random,
}

impl SizeDraw {
    pub fn new(split: &Split, direction: Direction, random: Random) -> Self {
        let parts = match direction {
            Direction::Read => &split.read,
            _ => &split.write,
        };
        let mut sum = 0;
        let steps = parts
            .iter()
            .filter(|(_, percent)| *percent > 0)
            .map(|(size, percent)| {
                sum += u64::from(*percent);
                (sum, *size)
            })
            .collect();
        Self { steps, random }
    }

    /// The next size in bytes.
    #[inline]
    pub fn next_bytes(&mut self) -> u64 {
        if let [(_, only)] = self.steps[..] {
            return only;
        }
        let place = scaled(self.random.next_u64(), 100);
        let found = self.steps.iter().find(|(upto, _)| place < *upto);
        found.map_or(0, |(_, size)| *size)
    }
}
