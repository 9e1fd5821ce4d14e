//! The seeded randomness of a trial: small, fast, the same on every machine.

/// Steele, Lea and Flood's SplitMix64 (OOPSLA 2014): one addition and a mix per number.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A stream for one purpose: equal seeds and purposes give equal streams.
    pub fn new(seed: u64, purpose: u64) -> Self {
        Self {
            state: mix(seed) ^ mix(purpose.wrapping_add(0xA5A5)),
        }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }
}

/// SplitMix64's finaliser: a bijection on 64 bits that spreads every bit.
#[inline]
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
