//! A driver's memory, written by a test.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;

use rdmacm_abi::uverbs::WorkCompletion;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{CompletionRing, Provider, SendRing, SendSlot, SlotPayload};
use crate::error::Error;
use crate::request::SendOperation;
use crate::uverbs::Uverbs;

/// A file that is mapped as a driver's memory, and what the driver does to it.
pub(super) struct ByHand {
    file: File,
    pub(super) uverbs: Uverbs,
}

impl ByHand {
    /// So many zeros.
    pub(super) fn of(length: usize, provider: impl Provider + 'static) -> Self {
        let file = tempfile::tempfile().unwrap();
        file.set_len(length as u64).unwrap();
        let mapped = file.try_clone().unwrap();
        let uverbs = Uverbs::of_file(mapped, Arc::new(provider));
        Self { file, uverbs }
    }

    pub(super) fn write<T: IntoBytes + Immutable>(&self, at: usize, value: &T) {
        let bytes = value.as_bytes();
        self.file.write_all_at(bytes, at as u64).unwrap();
    }

    pub(super) fn read<T: FromBytes + IntoBytes>(&self, at: usize) -> T {
        let mut value = T::new_zeroed();
        let bytes = value.as_mut_bytes();
        self.file.read_exact_at(bytes, at as u64).unwrap();
        value
    }
}

/// The driver said something that cannot be, and it was noticed.
pub(super) fn assert_nonsense<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Answer { .. }), "{error}");
    let words = error.to_string();
    assert!(words.contains("size or place cannot be"), "{words}");
}

/// Posts a short message of this number.
pub(super) fn push(ring: &mut impl SendRing, number: u64) {
    ring.push(&SendSlot {
        number,
        operation: SendOperation::Send,
        signaled: true,
        solicited: false,
        fence: false,
        payload: SlotPayload::Inline(b"hi"),
        destination: None,
    });
}

/// What is in a ring, which ends after no more than it can hold.
pub(super) fn all(ring: &mut dyn CompletionRing) -> Vec<WorkCompletion> {
    let mut all = Vec::new();
    while let Some(completion) = ring.pop() {
        all.push(completion);
        assert!(all.len() <= ring.capacity() as usize + 1, "no end");
    }
    all
}

/// The context ends while somebody reads: what comes is what was written or nothing,
/// and it comes to an end.
pub(super) fn read_while_closed(
    ring_memory: &ByHand,
    mut ring: impl CompletionRing,
    is_written: impl Fn(&WorkCompletion) -> bool + Sync,
) {
    let most = 2 * ring.capacity() as usize;
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut read = 0;
            // The last look begins when all is over.
            loop {
                let is_over = ring_memory.uverbs.is_gone();
                while let Some(completion) = ring.pop() {
                    assert!(
                        is_written(&completion) || completion.id == 0,
                        "{completion:?}"
                    );
                    read += 1;
                    assert!(read <= most, "no end");
                }
                if is_over {
                    return;
                }
            }
        });
        ring_memory.uverbs.close();
        reader.join().unwrap();
    });
}
