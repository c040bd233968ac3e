//! The memory of writes that have not completed.

/// A ring of bytes from which data is sent. Requests complete in the order in which they
/// were posted, so memory is released in the order in which it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendRing {
    size: u32,
    /// Where the next bytes go.
    head: u32,
    /// How many bytes are taken.
    taken: u32,
}

impl SendRing {
    /// An empty ring of this many bytes.
    #[must_use]
    pub fn new(size: u32) -> Self {
        Self {
            size,
            head: 0,
            taken: 0,
        }
    }

    /// The offset of the free bytes, and how many of them follow it without wrapping around.
    #[must_use]
    pub fn free(&self) -> (u32, u32) {
        let free = self.size - self.taken;
        (self.head, free.min(self.size - self.head))
    }

    /// How many bytes are free, with those beyond the end of the ring.
    #[must_use]
    pub fn free_bytes(&self) -> u32 {
        self.size - self.taken
    }

    /// Takes free bytes, at most those that [`free`](Self::free) returns. Returns how many.
    pub fn take(&mut self, bytes: u32) -> u32 {
        let (_, free) = self.free();
        let bytes = bytes.min(free);
        self.head += bytes;
        if self.head == self.size {
            self.head = 0;
        }
        self.taken += bytes;
        bytes
    }

    /// Releases the bytes that were taken first, whose requests have completed.
    pub fn release(&mut self, bytes: u32) {
        self.taken = self.taken.saturating_sub(bytes);
    }

    /// Whether all requests have completed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn what_is_taken_ends_at_the_end_of_the_ring() {
        let mut ring = SendRing::new(10);
        assert_eq!(ring.take(7), 7);
        ring.release(5);
        assert_eq!(ring.free(), (7, 3));
        assert_eq!(ring.take(8), 3);
        assert_eq!(ring.free(), (0, 5));
        assert_eq!(ring.take(9), 5);
        assert_eq!((ring.free(), ring.take(1)), ((5, 0), 0));
        ring.release(10);
        assert!(ring.is_empty());
    }

    proptest! {
        /// No byte is handed out before its earlier use was released.
        #[test]
        fn bytes_are_not_shared(
            size in 1..40_u32,
            steps in proptest::collection::vec((any::<bool>(), 1..20_u32), 0..100),
        ) {
            let mut ring = SendRing::new(size);
            let mut taken: VecDeque<(u32, u32)> = VecDeque::new();
            let mut used = vec![false; size as usize];
            for (takes, bytes) in steps {
                if takes {
                    let (offset, _) = ring.free();
                    let length = ring.take(bytes);
                    for at in offset..offset + length {
                        prop_assert!(!std::mem::replace(&mut used[at as usize], true));
                    }
                    taken.push_back((offset, length));
                } else if let Some((offset, length)) = taken.pop_front() {
                    ring.release(length);
                    used[offset as usize..(offset + length) as usize].fill(false);
                }
                let free = used.iter().filter(|used| !**used).count();
                prop_assert_eq!(ring.free_bytes() as usize, free);
            }
        }
    }
}
