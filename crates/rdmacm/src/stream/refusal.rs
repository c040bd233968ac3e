//! Why a read or a write is refused.

use super::failure::StreamFailure;

/// Why a read or a write is refused.
#[derive(Debug)]
pub(super) enum Refusal {
    /// This direction was shut down.
    ShutDown,
    /// The peer has mapped no memory there.
    NotMapped,
    /// The peer has no room for another mapped region.
    NoMapEntry,
    /// The stream has failed.
    Failed(StreamFailure),
}

impl From<StreamFailure> for Refusal {
    fn from(failure: StreamFailure) -> Self {
        Self::Failed(failure)
    }
}
