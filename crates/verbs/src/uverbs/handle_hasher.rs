//! Hashes of the kernel's handles.

use std::hash::Hasher;

/// Spreads handles, which the kernel counts and no peer chooses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HandleHasher(u64);

/// 2⁶⁴ divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for HandleHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32((*byte).into());
        }
    }

    fn write_u32(&mut self, handle: u32) {
        self.0 = (self.0 ^ u64::from(handle)).wrapping_mul(SPREAD);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn different_handles_have_different_hashes() {
        let hash = |handle| {
            let mut hasher = HandleHasher::default();
            hasher.write_u32(handle);
            hasher.finish()
        };
        // Tables use the lowest and the highest bits.
        let hashes: HashSet<_> = (0..1024).map(hash).collect();
        let lowest: HashSet<_> = hashes.iter().map(|hash| hash & 1023).collect();
        let highest: HashSet<_> = hashes.iter().map(|hash| hash >> 57).collect();
        assert_eq!(
            (hashes.len(), lowest.len(), highest.len()),
            (1024, 1024, 128)
        );
    }
}
