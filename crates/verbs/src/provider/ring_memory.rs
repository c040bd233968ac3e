//! A driver's shared memory, written by a test.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;

use rdmacm_abi::uverbs::{SendFlags, Sge as AbiSge, WorkCompletion};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{CompletionRing, Provider, SendRing, SendSlot, SlotPayload};
use crate::error::Error;
use crate::memory::RemoteMemory;
use crate::request::SendOperation;
use crate::uverbs::Uverbs;

/// A file that is mapped as a driver's memory. A test reads and writes it as the driver does.
pub(super) struct RingMemory {
    file: File,
    pub(super) uverbs: Uverbs,
}

impl RingMemory {
    /// Zeroed memory.
    pub(super) fn new(length: usize, provider: impl Provider + 'static) -> Self {
        let file = tempfile::tempfile().unwrap();
        file.set_len(length as u64).unwrap();
        let mapped = file.try_clone().unwrap();
        let uverbs = Uverbs::with_file(mapped, Arc::new(provider));
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

/// The driver's description of a queue was refused.
#[track_caller]
pub(super) fn assert_invalid_queue<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Answer { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("impossible size or offset"), "{text}");
}

/// Memory of a peer.
pub(super) fn remote() -> RemoteMemory {
    RemoteMemory::new(0x1000, 64, 0x77).unwrap()
}

/// A request without options.
pub(super) fn slot<'a>(operation: &'a SendOperation, payload: SlotPayload<'a>) -> SendSlot<'a> {
    SendSlot {
        number: 0x1_0000_0002,
        operation,
        flags: SendFlags::empty(),
        payload,
        destination: None,
    }
}

pub(super) fn sge(address: u64, length: u32) -> AbiSge {
    AbiSge {
        address,
        length,
        lkey: 3,
    }
}

/// Posts a short message with this number.
pub(super) fn push(ring: &mut impl SendRing, number: u64) {
    ring.push(&SendSlot {
        number,
        operation: &SendOperation::Send,
        flags: SendFlags::SIGNALED,
        payload: SlotPayload::Inline(b"hi"),
        destination: None,
    });
}

/// Polls all completions; at most as many as the ring holds.
pub(super) fn poll_all(ring: &mut impl CompletionRing) -> Vec<WorkCompletion> {
    let mut all = Vec::new();
    while let Some(completion) = ring.pop() {
        all.push(completion);
        assert!(
            all.len() <= ring.capacity() as usize + 1,
            "more completions than the ring holds"
        );
    }
    all
}

/// Closes the context while a thread polls: it reads only completions that were written, or
/// zeros, and polling ends.
pub(super) fn poll_while_closing(
    ring_memory: &RingMemory,
    mut ring: impl CompletionRing + Send,
    is_written: impl Fn(&WorkCompletion) -> bool + Sync,
) {
    let most = 2 * ring.capacity() as usize;
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut read = 0;
            // The last poll begins after the context was closed.
            loop {
                let is_closed = ring_memory.uverbs.is_unusable();
                while let Some(completion) = ring.pop() {
                    assert!(
                        is_written(&completion) || completion.id == 0,
                        "{completion:?}"
                    );
                    read += 1;
                    assert!(read <= most, "more completions than the ring holds");
                }
                if is_closed {
                    return;
                }
            }
        });
        ring_memory.uverbs.close();
        reader.join().unwrap();
    });
}
