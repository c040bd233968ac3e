//! Requests that the device may complete although they have left their queue.

use crate::completion_queue::CqCredits;
use crate::memory::SgList;

/// Requests that the device may complete although they have left their queue.
#[derive(Debug, Default)]
pub(super) struct LateRequests {
    /// Discarded by a reset. The device may still use their memory.
    discarded: Vec<(u32, SgList)>,
    /// Reported as flushed. Their completion queue entries stay reserved.
    flushed: Vec<u32>,
}

impl LateRequests {
    /// The device has completed one; `false` if none has the number.
    #[cold]
    pub(super) fn complete(&mut self, credits: &CqCredits, number: u32) -> bool {
        if let Some(index) = self.flushed.iter().position(|one| *one == number) {
            self.flushed.swap_remove(index);
            credits.release(1);
            return true;
        }
        let index = self.discarded.iter().position(|(one, _)| *one == number);
        index.map(|index| self.discarded.remove(index)).is_some()
    }

    /// These are reported as flushed.
    pub(super) fn flush(&mut self, numbers: Vec<u32>) {
        self.flushed.extend(numbers);
    }

    /// These are discarded.
    pub(super) fn discard(&mut self, requests: Vec<(u32, SgList)>) {
        self.discarded.extend(requests);
    }

    /// Takes the memory out: the device completes none any more.
    pub(super) fn take_all(&mut self, credits: &CqCredits) -> Vec<(u32, SgList)> {
        for _ in std::mem::take(&mut self.flushed) {
            credits.release(1);
        }
        std::mem::take(&mut self.discarded)
    }
}
