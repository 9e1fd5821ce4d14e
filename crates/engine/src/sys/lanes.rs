//! The two passes over data that a trial makes, in the widest registers of this CPU: writing pool XOR key, and
//! comparing with it. Knows nothing of blocks; both give the same sums on every CPU.

/// 32 bytes as words: the unit of both passes.
pub type Lanes = [u64; 4];

/// Which registers are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// What every CPU of the architecture has.
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Width {
    /// The widest that is present.
    pub fn of_this_cpu() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") {
            return Self::Avx2;
        }
        Self::Baseline
    }

    /// Writes pool XOR key, and sums it as Fletcher does (a sum, and a sum of the sums, per lane).
    #[inline]
    pub fn xor_copy(self, body: &mut [u8], pool: &[u8], key: Lanes) -> Lanes {
        match self {
            Self::Baseline => xor_copy(body, pool, key),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this width is made only where the CPU has AVX2.
            Self::Avx2 => unsafe { xor_copy_avx2(body, pool, key) },
        }
    }

    /// Whether `body` is pool XOR key, and the sums of what it should be.
    #[inline]
    pub fn xor_compare(self, body: &[u8], pool: &[u8], key: Lanes) -> (bool, Lanes) {
        match self {
            Self::Baseline => xor_compare(body, pool, key),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as for `xor_copy`.
            Self::Avx2 => unsafe { xor_compare_avx2(body, pool, key) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn xor_copy_avx2(body: &mut [u8], pool: &[u8], key: Lanes) -> Lanes {
    xor_copy(body, pool, key)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn xor_compare_avx2(body: &[u8], pool: &[u8], key: Lanes) -> (bool, Lanes) {
    xor_compare(body, pool, key)
}

#[inline(always)]
fn lanes(bytes: &[u8]) -> Lanes {
    let mut lanes = [0; 4];
    for (lane, word) in lanes.iter_mut().zip(bytes.chunks_exact(8)) {
        *lane = u64::from_le_bytes([
            word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7],
        ]);
    }
    lanes
}

#[inline(always)]
fn xor_copy(body: &mut [u8], pool: &[u8], key: Lanes) -> Lanes {
    let (mut first, mut second) = ([0_u64; 4], [0_u64; 4]);
    for (out, pool) in body.chunks_exact_mut(32).zip(pool.chunks_exact(32)) {
        let pool = lanes(pool);
        for lane in 0..4 {
            let word = pool[lane] ^ key[lane];
            first[lane] = first[lane].wrapping_add(word);
            second[lane] = second[lane].wrapping_add(first[lane]);
            out[lane * 8..lane * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
    }
    [0, 1, 2, 3].map(|lane| first[lane] ^ second[lane].rotate_left(32))
}

#[inline(always)]
fn xor_compare(body: &[u8], pool: &[u8], key: Lanes) -> (bool, Lanes) {
    let (mut first, mut second, mut differs) = ([0_u64; 4], [0_u64; 4], [0_u64; 4]);
    for (found, pool) in body.chunks_exact(32).zip(pool.chunks_exact(32)) {
        let (found, pool) = (lanes(found), lanes(pool));
        for lane in 0..4 {
            let word = pool[lane] ^ key[lane];
            differs[lane] |= found[lane] ^ word;
            first[lane] = first[lane].wrapping_add(word);
            second[lane] = second[lane].wrapping_add(first[lane]);
        }
    }
    let sums = [0, 1, 2, 3].map(|lane| first[lane] ^ second[lane].rotate_left(32));
    (differs == [0; 4], sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_width_gives_the_same(words in proptest::collection::vec(any::<u64>(), 16), key: Lanes) {
            let pool: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let wide = Width::of_this_cpu();
            let (mut plain, mut other) = (vec![0; pool.len()], vec![0; pool.len()]);
            let sums = Width::Baseline.xor_copy(&mut plain, &pool, key);
            prop_assert_eq!(sums, wide.xor_copy(&mut other, &pool, key));
            prop_assert_eq!(&plain, &other);
            prop_assert_eq!(wide.xor_compare(&other, &pool, key), (true, sums));
            other[17] ^= 1;
            prop_assert!(!wide.xor_compare(&other, &pool, key).0);
        }
    }
}
