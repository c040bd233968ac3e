//! Random numbers from seeds.

use std::ops::RangeInclusive;

/// Sets the number of seeds, for a longer run.
const SEEDS: &str = "RDMACM_SEEDS";

/// The seeds to run: `default` of them unless the environment sets the number.
#[must_use]
pub fn seeds(usual: u64) -> RangeInclusive<u64> {
    1..=std::env::var(SEEDS).map_or(usual, |seeds| seeds.parse().unwrap())
}

/// A generator of random numbers (xorshift64*).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Makes the sequences of neighbouring seeds begin differently.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// The next number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// The next index or size below a limit.
    pub fn place(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(limit as u64)).unwrap()
    }
}
