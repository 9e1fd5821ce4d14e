//! What a block that was read turned out to be, held against what is known to have been written there: told apart by
//! what would have to be done about it.

use serde::Serialize;

use super::ledger::{Expected, Ledger};
use crate::pattern::{BLOCK_BYTES, Pattern, Stamp, is_zero};

/// What is wrong with a block. The order is that of `Wrongs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum Wrong {
    /// What was there before a writing that was acknowledged.
    Lost = 1,
    /// A part of one writing is there, the rest of it is not.
    Torn,
    /// What was written elsewhere in these files.
    Misplaced,
    /// What this run never wrote there.
    Foreign,
    /// Zeros.
    Zeroed,
    /// Its own data with some bytes changed.
    Flipped,
}

impl Wrong {
    const ALL: [Self; 6] = [
        Self::Lost,
        Self::Torn,
        Self::Misplaced,
        Self::Foreign,
        Self::Zeroed,
        Self::Flipped,
    ];

    fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|one| *one as u32 == number)
    }

    /// Whether what was written is only absent: it may have been delayed.
    pub fn may_arrive(self) -> bool {
        matches!(self, Self::Lost | Self::Torn | Self::Zeroed)
    }
}

/// Blocks by what is wrong with them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Wrongs {
    pub lost: u64,
    pub torn: u64,
    pub misplaced: u64,
    pub foreign: u64,
    pub zeroed: u64,
    pub flipped: u64,
}

impl Wrongs {
    pub fn of(&mut self, wrong: Wrong) -> &mut u64 {
        match wrong {
            Wrong::Lost => &mut self.lost,
            Wrong::Torn => &mut self.torn,
            Wrong::Misplaced => &mut self.misplaced,
            Wrong::Foreign => &mut self.foreign,
            Wrong::Zeroed => &mut self.zeroed,
            Wrong::Flipped => &mut self.flipped,
        }
    }

    pub fn add(&mut self, mut other: Self) {
        for wrong in Wrong::ALL {
            *self.of(wrong) += *other.of(wrong);
        }
    }

    pub fn total(mut self) -> u64 {
        Wrong::ALL.iter().map(|wrong| *self.of(*wrong)).sum()
    }
}

/// A block that is wrong, at `offset` of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub offset: u64,
    pub wrong: Wrong,
    pub reason: String,
}

/// Looks at data of one file against the ledger.
#[derive(Debug, Clone, Copy)]
pub struct Inspector<'a> {
    pub pattern: &'a Pattern,
    pub ledger: &'a Ledger,
    /// Of one operation: what arrives or is lost as a whole.
    pub unit_bytes: usize,
}

impl Inspector<'_> {
    /// Blocks that are well at the start of `data`, which was read at `offset`: all of them, nearly always.
    #[inline]
    pub fn count_good(&self, data: &[u8], file: u32, offset: u64) -> usize {
        let blocks = data.chunks(BLOCK_BYTES).enumerate();
        blocks
            .take_while(|(index, block)| {
                let at = offset + (index * BLOCK_BYTES) as u64;
                let expected = self.ledger.expected(file, at);
                expected.is_written && self.pattern.holds(block, expected.stamp)
            })
            .count()
    }

    /// What is wrong in `data`, in order. It begins with a unit.
    #[cold]
    pub fn findings(&self, data: &[u8], file: u32, offset: u64) -> Vec<Finding> {
        let mut found = Vec::new();
        for (index, unit) in data.chunks(self.unit_bytes).enumerate() {
            let first = offset + (index * self.unit_bytes) as u64;
            found.extend(self.unit(unit, file, first));
        }
        found
    }

    fn unit(&self, unit: &[u8], file: u32, first: u64) -> Vec<Finding> {
        let mut found = Vec::new();
        let count = unit.len().div_ceil(BLOCK_BYTES);
        for (index, block) in unit.chunks(BLOCK_BYTES).enumerate() {
            let offset = first + (index * BLOCK_BYTES) as u64;
            let expected = self.ledger.expected(file, offset);
            if let Err((wrong, reason)) = self.judge(block, expected) {
                found.push(Finding {
                    offset,
                    wrong,
                    reason,
                });
            }
        }
        let absent = |one: &Finding| matches!(one.wrong, Wrong::Lost | Wrong::Zeroed);
        let last = first + ((count - 1) * BLOCK_BYTES) as u64;
        let at_an_end = found.first().is_some_and(|one| one.offset == first)
            || found.last().is_some_and(|one| one.offset == last);
        let contiguous = found
            .windows(2)
            .all(|pair| pair[1].offset == pair[0].offset + BLOCK_BYTES as u64);
        if found.len() < count && at_an_end && contiguous && found.iter().all(absent) {
            let words = format!(
                "{} of the {count} blocks of one write of {} bytes are there, and this one is not",
                count - found.len(),
                unit.len()
            );
            for one in &mut found {
                (one.wrong, one.reason) = (Wrong::Torn, words.clone());
            }
        }
        found
    }

    /// Judges one block, or the shorter end of a file.
    pub fn judge(&self, block: &[u8], expected: Expected) -> Result<(), (Wrong, String)> {
        let stamp = expected.stamp;
        let is_right = match expected.is_written {
            true => {
                self.pattern.holds(block, stamp) || expected.either && self.was_before(block, stamp)
            }
            false => is_zero(block),
        };
        if is_right {
            return Ok(());
        }
        if is_zero(block) {
            let words = format!(
                "the block holds zeros; writing {} was acknowledged",
                stamp.generation
            );
            return Err((Wrong::Zeroed, words));
        }
        if let Some(found) = self.as_stamped(block, stamp) {
            return Err(found);
        }
        if !expected.is_written {
            return Err(foreign());
        }
        let before = self.before(block, stamp);
        match tear(block, &self.pattern.block(stamp), &before) {
            Some(_) if expected.either => Ok(()),
            Some(at) => Err((
                Wrong::Torn,
                format!(
                    "the block changes at its byte {at} from one writing to another; the last was {}",
                    stamp.generation
                ),
            )),
            None => Err(self.as_damaged(block, stamp).unwrap_or_else(foreign)),
        }
    }

    /// Whether it is what was there before the writing of `stamp`.
    fn was_before(&self, block: &[u8], stamp: Stamp) -> bool {
        match stamp.generation.checked_sub(1) {
            Some(generation) => self.pattern.holds(
                block,
                Stamp {
                    generation,
                    ..stamp
                },
            ),
            None => is_zero(block),
        }
    }

    /// What may be left of what was there before: the writings before this one, and zeros.
    fn before(&self, block: &[u8], stamp: Stamp) -> Vec<[u8; BLOCK_BYTES]> {
        let mut generations: Vec<u32> = (1..=2)
            .filter_map(|n| stamp.generation.checked_sub(n))
            .collect();
        generations.extend(Pattern::stamp_in(block).map(|found| found.generation));
        generations.retain(|generation| *generation < stamp.generation);
        let block_of = |generation| {
            self.pattern.block(Stamp {
                generation,
                ..stamp
            })
        };
        let mut before: Vec<_> = generations.into_iter().map(block_of).collect();
        before.push([0; BLOCK_BYTES]);
        before
    }

    /// Mostly what was expected, with some bytes changed.
    fn as_damaged(&self, block: &[u8], stamp: Stamp) -> Option<(Wrong, String)> {
        let expected = self.pattern.block(stamp);
        let differing = || (0..block.len()).filter(|at| block[*at] != expected[*at]);
        let first = differing().next()?;
        let count = differing().count();
        if count > block.len() / 2 {
            return None;
        }
        let words = format!(
            "{count} byte(s) differ, the first at {}: 0x{:02x}, written as 0x{:02x} by writing {}",
            stamp.offset + first as u64,
            block[first],
            expected[first],
            stamp.generation
        );
        Some((Wrong::Flipped, words))
    }

    /// A whole block of another place or time, by what it says of itself.
    fn as_stamped(&self, block: &[u8], stamp: Stamp) -> Option<(Wrong, String)> {
        let found = Pattern::stamp_in(block).filter(|one| self.pattern.holds(block, *one))?;
        let at_its_place = (found.file, found.offset) == (stamp.file, stamp.offset);
        let is_newer = at_its_place && found.generation >= stamp.generation;
        Some(if is_newer || !self.ledger.knows(&found) {
            let words = format!(
                "the block is of another run or writer: file {} at offset {}, seed {}, writing {}",
                found.file, found.offset, found.seed, found.generation
            );
            (Wrong::Foreign, words)
        } else if at_its_place {
            let words = format!(
                "the block is of writing {}; writing {} was acknowledged and is not there",
                found.generation, stamp.generation
            );
            (Wrong::Lost, words)
        } else {
            let words = format!(
                "the block belongs to file {} at offset {} (writing {})",
                found.file, found.offset, found.generation
            );
            (Wrong::Misplaced, words)
        })
    }
}

fn foreign() -> (Wrong, String) {
    let words = "the block holds nothing that leadline writes there";
    (Wrong::Foreign, words.to_owned())
}

/// Whether something was found at a place before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    No,
    /// By this trial, which took it for this.
    ByTrial(Wrong),
    Before,
}

/// Notes what was found at a place, where it is the first since its last writing; says whether it is.
pub fn note(ledger: &Ledger, file: u32, finding: &Finding) -> Known {
    let known = known(ledger, file, finding.offset);
    if known == Known::No {
        ledger.find(file, finding.offset, finding.wrong as u32);
    }
    known
}

/// Whether something was found at a place before.
pub fn known(ledger: &Ledger, file: u32, offset: u64) -> Known {
    match ledger.found(file, offset) {
        None => Known::No,
        Some(found) => match found.and_then(Wrong::of_number) {
            Some(wrong) => Known::ByTrial(wrong),
            None => Known::Before,
        },
    }
}

/// What storage writes or loses at once at the least.
pub(super) const SECTOR_BYTES: usize = 512;
/// A shorter part of a writing is a damaged byte and no tear.
pub(super) const TORN_MIN_BYTES: usize = 64;

/// Where a block changes from one writing to another: at one byte, or by sectors.
pub(super) fn tear(block: &[u8], new: &[u8], older: &[[u8; BLOCK_BYTES]]) -> Option<usize> {
    let common = |one: &[u8], from_start: bool| {
        let pairs = block.iter().zip(one);
        match from_start {
            true => pairs.take_while(|(a, b)| a == b).count(),
            false => pairs.rev().take_while(|(a, b)| a == b).count(),
        }
    };
    let length = block.len();
    let long = |part: usize| (TORN_MIN_BYTES..=length - TORN_MIN_BYTES.min(length)).contains(&part);
    for old in older {
        let old = &old[..length];
        let (begins, ends) = (common(new, true), common(old, false));
        if begins + ends >= length && long(begins) && long(length - begins) {
            return Some(begins);
        }
        let (begins, ends) = (common(old, true), common(&new[..length], false));
        if begins + ends >= length && long(ends) && long(length - ends) {
            return Some(length - ends);
        }
        let is_new = |at: usize| {
            let end = (at + SECTOR_BYTES).min(length);
            let sector = &block[at..end];
            match (sector == &new[at..end], sector == &old[at..end]) {
                (true, _) => Some(true),
                (false, true) => Some(false),
                (false, false) => None,
            }
        };
        let sectors: Option<Vec<bool>> = (0..length).step_by(SECTOR_BYTES).map(is_new).collect();
        if let Some(sectors) = sectors
            && sectors.contains(&true)
            && let Some(change) = sectors.windows(2).position(|pair| pair[0] != pair[1])
        {
            return Some((change + 1) * SECTOR_BYTES);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::job::tests::example;
    use proptest::prelude::*;

    /// File 0 was laid out and then written twice at offset 8192.
    fn judged(change: impl FnOnce(&Pattern, &mut [u8])) -> Result<(), Wrong> {
        judged_as(|_| {}, change)
    }

    fn judged_as(
        prepare: impl FnOnce(&Ledger),
        change: impl FnOnce(&Pattern, &mut [u8]),
    ) -> Result<(), Wrong> {
        let job = Job::parse(&example().to_string()).unwrap();
        let (pattern, ledger) = (Pattern::of(&job), Ledger::laid_out(&job));
        ledger.begin_write(0, 8192);
        ledger.end_write(0, 8192);
        let stamp = ledger.begin_write(0, 8192);
        ledger.end_write(0, 8192);
        prepare(&ledger);
        let mut block = pattern.block(stamp);
        change(&pattern, &mut block);
        let inspector = Inspector {
            pattern: &pattern,
            ledger: &ledger,
            unit_bytes: BLOCK_BYTES,
        };
        let found = inspector.findings(&block, 0, 8192);
        assert_eq!(
            found.is_empty(),
            inspector.judge(&block, ledger.expected(0, 8192)).is_ok()
        );
        found.first().map_or(Ok(()), |one| Err(one.wrong))
    }

    fn block(
        pattern: &Pattern,
        seed: u64,
        generation: u32,
        file: u32,
        offset: u64,
    ) -> [u8; BLOCK_BYTES] {
        pattern.block(Stamp {
            seed,
            generation,
            file,
            offset,
        })
    }

    fn becomes(seed: u64, generation: u32, file: u32, offset: u64) -> Result<(), Wrong> {
        judged(|pattern, data| {
            data.copy_from_slice(&block(pattern, seed, generation, file, offset))
        })
    }

    #[test]
    fn each_kind_of_damage_is_told_apart() {
        assert_eq!(judged(|_, _| {}), Ok(()));
        assert_eq!(becomes(1, 1, 0, 8192), Err(Wrong::Lost));
        assert_eq!(becomes(1, 0, 0, 8192), Err(Wrong::Lost));
        assert_eq!(
            becomes(1, 3, 0, 8192),
            Err(Wrong::Foreign),
            "newer than anything written"
        );
        assert_eq!(becomes(1, 0, 0, 4096), Err(Wrong::Misplaced));
        assert_eq!(
            becomes(1, 0, 7, 8192),
            Err(Wrong::Foreign),
            "a file that the job has not"
        );
        assert_eq!(becomes(2, 2, 0, 8192), Err(Wrong::Foreign));
        assert_eq!(judged(|_, data| data.fill(0)), Err(Wrong::Zeroed));
        assert_eq!(judged(|_, data| data.fill(0x55)), Err(Wrong::Foreign));
    }

    #[test]
    fn what_was_in_flight_may_be_old_new_or_torn_and_nothing_else() {
        let in_flight = |ledger: &Ledger| {
            let directory = tempfile::tempdir().unwrap();
            ledger.begin_write(0, 0);
            ledger.save(&directory.path().join("ledger")).unwrap();
            let job = Job::parse(&example().to_string()).unwrap();
            Ledger::load(&directory.path().join("ledger"), &job).unwrap()
        };
        let job = Job::parse(&example().to_string()).unwrap();
        let pattern = Pattern::of(&job);
        let ledger = in_flight(&Ledger::laid_out(&job));
        let inspector = Inspector {
            pattern: &pattern,
            ledger: &ledger,
            unit_bytes: BLOCK_BYTES,
        };
        let (old, new) = (block(&pattern, 1, 0, 0, 0), block(&pattern, 1, 1, 0, 0));
        let torn: Vec<u8> = new[..1000].iter().chain(&old[1000..]).copied().collect();
        for data in [&old[..], &new[..], &torn] {
            assert_eq!(inspector.findings(data, 0, 0), []);
        }
        assert_eq!(
            inspector.findings(&[0x55; BLOCK_BYTES], 0, 0)[0].wrong,
            Wrong::Foreign
        );
    }

    #[test]
    fn where_nothing_was_written_only_zeros_are_right() {
        let job = Job::parse(&example().to_string()).unwrap();
        let (pattern, ledger) = (Pattern::of(&job), Ledger::empty(&job));
        let inspector = Inspector {
            pattern: &pattern,
            ledger: &ledger,
            unit_bytes: BLOCK_BYTES,
        };
        assert_eq!(inspector.findings(&[0; BLOCK_BYTES], 0, 0), []);
        let other = block(&pattern, 1, 0, 0, 4096);
        assert_eq!(inspector.findings(&other, 0, 0)[0].wrong, Wrong::Misplaced);
    }

    #[test]
    fn a_write_of_several_blocks_that_arrived_in_part_is_torn() {
        let job = Job::parse(&example().to_string()).unwrap();
        let (pattern, ledger) = (Pattern::of(&job), Ledger::laid_out(&job));
        let mut data: Vec<u8> = (0..4)
            .flat_map(|n| block(&pattern, 1, 0, 0, n * 4096))
            .collect();
        for at in [0, 1] {
            let offset = at * BLOCK_BYTES;
            let stamp = ledger.begin_write(0, offset as u64);
            data[offset..offset + BLOCK_BYTES].copy_from_slice(&pattern.block(stamp));
        }
        let inspector = Inspector {
            pattern: &pattern,
            ledger: &ledger,
            unit_bytes: 4 * BLOCK_BYTES,
        };
        for at in [2, 3] {
            ledger.begin_write(0, at * BLOCK_BYTES as u64);
        }
        let kinds = |found: Vec<Finding>| -> Vec<(u64, Wrong)> {
            found.iter().map(|one| (one.offset, one.wrong)).collect()
        };
        let torn = [(8192, Wrong::Torn), (12288, Wrong::Torn)];
        assert_eq!(kinds(inspector.findings(&data, 0, 0)), torn);
        data[..8192].copy_from_slice(
            &[block(&pattern, 1, 0, 0, 0), block(&pattern, 1, 0, 0, 4096)].concat(),
        );
        let whole = inspector.findings(&data, 0, 0);
        assert!(whole.len() == 4 && whole.iter().all(|one| one.wrong == Wrong::Lost));
    }

    proptest! {
        #[test]
        fn every_flipped_bit_is_found(byte in 0..BLOCK_BYTES, bit in 0..8) {
            let found = judged(|_, data| data[byte] ^= 1_u8 << bit);
            prop_assert_eq!(found, Err(Wrong::Flipped));
        }

        #[test]
        fn a_tear_at_any_byte_is_one(at in TORN_MIN_BYTES..BLOCK_BYTES - TORN_MIN_BYTES, old in 0..3_u32, starts: bool) {
            let found = judged(|pattern, data| {
                let old = if old == 2 { [0; BLOCK_BYTES] } else { block(pattern, 1, old, 0, 8192) };
                if starts { data[..at].copy_from_slice(&old[..at]) } else { data[at..].copy_from_slice(&old[at..]) }
            });
            prop_assert_eq!(found, Err(Wrong::Torn));
        }

        #[test]
        fn a_mixture_of_sectors_is_torn(mask in 1_u8..255) {
            let found = judged(|pattern, data| {
                let old = block(pattern, 1, 1, 0, 8192);
                for sector in (0..8).filter(|bit| mask >> bit & 1 == 1) {
                    let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                    data[range.clone()].copy_from_slice(&old[range]);
                }
            });
            prop_assert_eq!(found, Err(Wrong::Torn));
        }
    }
}
