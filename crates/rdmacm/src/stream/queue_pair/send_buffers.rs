//! Writes from memory that a caller has filled in place.

use rdmacm_verbs::{Buffer, Error};

use super::StreamQueuePair;
use crate::stream::refusal::Refusal;
use crate::stream::send_state::MAX_WRITE;

impl StreamQueuePair {
    /// Registers the buffers, if there are none.
    pub(in crate::stream) fn make_send_buffers(&self) -> Result<(), Error> {
        if self.send.lock().buffers.are_made() {
            return Ok(());
        }
        let bytes = self.options.send_buffer;
        let memory = self
            .queue_pair
            .protection_domain()
            .allocate(bytes as usize)?;
        let buffers = memory.into_chunks(buffer_size(bytes) as usize);
        self.send.lock().buffers.fill(buffers);
        Ok(())
    }

    /// Takes a buffer for up to this many bytes, and returns for how many; `None` if that must
    /// wait.
    pub(in crate::stream) fn reserve(
        &self,
        buffer: &mut Option<Buffer>,
        bytes: usize,
    ) -> Option<Result<usize, Refusal>> {
        self.post(|send| {
            let max_write = send.max_write();
            if max_write == 0 {
                return Ok(None);
            }
            *buffer = send.buffers.take();
            let size = buffer.as_ref().map(|buffer| buffer.len());
            Ok(size.map(|size| bytes.min(size).min(max_write)))
        })
    }

    /// Sends the first bytes of a reserved buffer. Nobody else has written since.
    pub(in crate::stream) fn commit(
        &self,
        buffer: &mut Option<Buffer>,
        bytes: usize,
    ) -> Option<Result<usize, Refusal>> {
        self.post(|send| {
            if let Some(buffer) = buffer.take_if(|_| bytes > 0) {
                send.commit(&self.queue_pair, buffer, bytes)?;
            }
            Ok(Some(bytes))
        })
    }

    pub(in crate::stream) fn give_back(&self, buffer: Buffer) {
        if self.device.context().is_in_child() {
            // A thread of the parent may have held the lock at the fork.
            return;
        }
        self.send.lock().buffers.give_back(buffer);
    }
}

/// How large each buffer is if all of them have this many bytes: nearly equal, and two or more, so
/// that one is filled while another one is in flight.
fn buffer_size(bytes: u32) -> u32 {
    bytes.div_ceil(bytes.div_ceil(MAX_WRITE).max(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_buffer_is_small_among_large_ones() {
        for (bytes, expected) in [
            (1, 1),
            (1000, 500),
            (128 * 1024, MAX_WRITE),
            (128 * 1024 + 8, 43_694),
            (200_000, 50_000),
        ] {
            let size = buffer_size(bytes);
            assert_eq!(size, expected);
            let last = bytes - (bytes.div_ceil(size) - 1) * size;
            assert!(last >= size - size / 2, "{bytes}");
        }
    }
}
