//! Memory that a caller fills in place, and a device sends.

use rdmacm_verbs::Buffer;

/// The registered buffers of a stream that are not in flight. There are none before the first
/// reservation.
#[derive(Debug, Default)]
pub(super) struct SendBuffers {
    free: Vec<Buffer>,
    are_made: bool,
}

impl SendBuffers {
    pub(super) fn are_made(&self) -> bool {
        self.are_made
    }

    /// Whether all of them are reserved or in flight.
    pub(super) fn are_taken(&self) -> bool {
        self.are_made && self.free.is_empty()
    }

    /// The first time; another caller's are enough.
    pub(super) fn fill(&mut self, buffers: Vec<Buffer>) {
        if !self.are_made {
            self.are_made = true;
            self.free = buffers;
        }
    }

    pub(super) fn take(&mut self) -> Option<Buffer> {
        self.free.pop()
    }

    pub(super) fn give_back(&mut self, buffer: Buffer) {
        self.free.push(buffer);
    }
}
