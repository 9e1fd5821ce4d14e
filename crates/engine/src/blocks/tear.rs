//! Where a block is a mixture: a part of one writing arrived, and the rest is what was there before.

use crate::pattern::BLOCK_BYTES;

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
