//! Seeded random numbers.

/// The `SplitMix64` generator: every seed gives a sequence of its own.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A packet sequence number, of 24 bits.
    pub(crate) fn sequence_number(&mut self) -> u32 {
        let [.., a, b, c] = self.next().to_be_bytes();
        u32::from_be_bytes([0, a, b, c])
    }

    /// `true` in `percent` of 100 cases.
    pub(crate) fn percent(&mut self, percent: u8) -> bool {
        percent > 0 && self.next() % 100 < u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_sequence() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [(); 4].map(|()| random.sequence_number())
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn percentages_are_bounds() {
        let mut random = Random::new(7);
        assert!((0..1000).all(|_| random.percent(100)));
        assert!((0..1000).all(|_| !random.percent(0)));
        let count = (0..1000).filter(|_| random.percent(30)).count();
        assert!((200..400).contains(&count), "{count}");
    }
}
