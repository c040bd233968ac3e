//! Reading what has arrived.

use std::io::IoSliceMut;
use std::ops::Range;

use rdmacm_verbs::RemoteAccessRegion;

use super::StreamQueuePair;
use crate::event_loop::Wakers;
use crate::stream::failure::StreamFailure;
use crate::stream::receive_state::{Reading, ReceiveState};
use crate::stream::refusal::Refusal;
use crate::stream::status::StreamInterest;

impl StreamQueuePair {
    /// Whether a read would return nothing, of a caller that perhaps has checked for completions
    /// just now. It costs less than the read.
    pub(in crate::stream) fn has_nothing_to_read(&self, has_checked: bool) -> bool {
        let may_have_come = !has_checked && self.has_completions(StreamInterest::Readable);
        if may_have_come || !self.status.is_open() {
            return false;
        }
        let receiver = &self.receive.lock().receiver;
        receiver.readable() == 0 && !receiver.is_update_due()
    }

    /// Whether a read would return bytes that have arrived, or an end.
    pub(in crate::stream) fn may_read(&self) -> bool {
        if self.has_completions(StreamInterest::Readable) {
            return true;
        }
        let has_bytes = self.receive.lock().receiver.readable() > 0;
        if self.status.is_open() {
            return has_bytes;
        }
        let status = self.status();
        let has_ended = status.shutdown.peer_finished() || status.failure().is_some();
        status.shutdown.can_read() && (has_bytes || has_ended)
    }

    /// Reads what has arrived; `None` if nothing has. No bytes are the end of the stream.
    pub(in crate::stream) fn read(
        &self,
        reading: Reading,
        into: &mut [IoSliceMut<'_>],
    ) -> Option<Result<usize, Refusal>> {
        let mut receive = self.receive.lock();
        let readable = receive.receiver.readable() as usize;
        let has_bytes = readable > 0;
        let has_come = self.has_completions(StreamInterest::Readable);
        let is_idle = !has_come && !receive.receiver.is_update_due();
        if !has_bytes && is_idle && self.status.is_open() {
            return None;
        }
        let mut wakers = Wakers::default();
        // What is peeked at stays, so what comes behind it must be found too.
        let peeks_further = reading == Reading::Peek && has_come && readable < reading.wanted(into);
        if !has_bytes || peeks_further {
            let wanted = reading.wanted(into);
            self.poll_receives(&mut receive, wanted, &mut wakers);
            if self.receives.is_shared() {
                self.poll_sends(&mut self.send.lock(), &mut wakers);
            }
        }
        let outcome = self.read_in(&mut receive, reading, into);
        if receive.receiver.is_update_due() {
            self.update_peer(&mut receive, &mut wakers);
        }
        drop(receive);
        wakers.wake();
        outcome
    }

    fn read_in(
        &self,
        receive: &mut ReceiveState,
        reading: Reading,
        into: &mut [IoSliceMut<'_>],
    ) -> Option<Result<usize, Refusal>> {
        let has_bytes = receive.receiver.readable() > 0;
        if self.status.is_open() {
            return has_bytes.then(|| Ok(receive.read(reading, into)));
        }
        let status = self.status();
        if let Some(failure @ StreamFailure::Aborted) = status.failure() {
            return Some(Err(failure.clone().into()));
        }
        if !status.shutdown.can_read() {
            return Some(Ok(0));
        }
        if has_bytes {
            drop(status);
            return Some(Ok(receive.read(reading, into)));
        }
        match status.failure() {
            // What the peer has said is not to be trusted.
            Some(failure @ StreamFailure::Protocol(_)) => Some(Err(failure.clone().into())),
            _ if status.shutdown.peer_finished() => Some(Ok(0)),
            failure => Some(Err(failure?.clone().into())),
        }
    }

    /// Where the bytes are that have arrived and follow each other in memory.
    pub(in crate::stream) fn received_part(&self) -> (&RemoteAccessRegion, Range<usize>) {
        let (offset, length) = self.receive.lock().receiver.next_bytes();
        self.peer_memory.ring_part(offset, length)
    }

    /// Frees the memory of the first bytes of those that have arrived, and tells the peer when
    /// enough of it is free.
    pub(in crate::stream) fn consume(&self, bytes: usize) {
        let mut wakers = Wakers::default();
        let mut receive = self.receive.lock();
        // No more than have arrived, which is 32 bits.
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        receive.receiver.consume(bytes);
        self.update_peer(&mut receive, &mut wakers);
        drop(receive);
        wakers.wake();
    }
}
