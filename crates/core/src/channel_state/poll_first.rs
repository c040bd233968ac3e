//! Whether to poll before reading an event.

use std::sync::atomic::{AtomicU8, Ordering};

/// How many waits poll first before one reads first again.
const WAITS: u8 = 8;

/// Whether a caller that waits for an event polls before it reads.
///
/// The event that follows a command is rarely there when the caller begins to wait: then
/// polling first saves a read that finds nothing. If it is there, reading first saves the
/// poll. The last read that was not preceded by a poll decides; the first waits of a channel
/// poll. It is only a hint: either order finds every event.
#[derive(Debug)]
pub(crate) struct PollFirst(AtomicU8);

impl Default for PollFirst {
    fn default() -> Self {
        Self(AtomicU8::new(WAITS))
    }
}

impl PollFirst {
    /// Whether the next wait polls first.
    #[inline]
    pub(crate) fn next(&self) -> bool {
        let left = self.0.load(Ordering::Relaxed);
        if left == 0 {
            return false;
        }
        self.0.store(left - 1, Ordering::Relaxed);
        true
    }

    /// A read found nothing.
    pub(crate) fn set(&self) {
        self.0.store(WAITS, Ordering::Relaxed);
    }

    /// The caller has waited by other means.
    pub(crate) fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_some_waits_one_reads_first() {
        let poll_first = PollFirst::default();
        for _ in 0..2 {
            for _ in 0..WAITS {
                assert!(poll_first.next());
            }
            assert!(!poll_first.next());
            poll_first.set();
        }
        poll_first.clear();
        assert!(!poll_first.next());
    }
}
