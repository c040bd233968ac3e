//! Posting requests to send.

use std::io;
use std::time::Instant;

use parking_lot::MutexGuard;
use rdmacm_verbs::{
    AddressHandle, Buffer, Error, PostError, RemoteMemory, Result, SendOperation, SendRequest,
    SgList, WorkId,
};

use super::MessageQueuePair;
use crate::data::Failure;
use crate::messages::deferred::Deferred;
use crate::messages::in_flight::InFlight;
use crate::messages::state::State;

/// Where a datagram is sent.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) address: AddressHandle,
    pub(crate) qp_number: u32,
    pub(crate) qkey: u32,
}

/// Room for one message to be copied, which is posted next. See [`State::reserve`].
#[derive(Debug)]
pub(crate) struct Reservation(Memory);

/// Memory for the copy of a message.
#[derive(Debug)]
enum Memory {
    /// An empty message needs none.
    None,
    Buffer(Buffer),
}

impl Memory {
    /// Memory for `length` bytes, if there is any.
    #[inline]
    fn take(state: &mut State, length: usize) -> Option<Self> {
        match length {
            0 => Some(Self::None),
            _ => state.pool.pop().map(Self::Buffer),
        }
    }

    /// Copies the slices into it, as far as they fit.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each message")]
    fn filled(self, slices: &[io::IoSlice<'_>]) -> Result<SgList, PostError<SgList>> {
        let Self::Buffer(mut buffer) = self else {
            return Ok(SgList::NONE);
        };
        let length = gather(slices, &mut buffer);
        match buffer.slice(0..length) {
            Ok(sge) => Ok(sge.into()),
            Err(PostError { error, returned }) => {
                let returned = returned.into();
                Err(PostError { error, returned })
            }
        }
    }
}

/// The longest message that is copied under the lock, which costs less than taking it twice.
const COPIED_UNDER_LOCK: usize = 4096;

impl MessageQueuePair {
    /// Copies a message of `length` bytes and posts it, if there is room now and nothing has
    /// failed.
    pub(in crate::messages) fn send_now(
        &self,
        slices: &[io::IoSlice<'_>],
        length: usize,
    ) -> Option<Result<()>> {
        let mut state = self.state_with_room()?;
        let memory = Memory::take(&mut state, length)?;
        let operation = SendOperation::Send;
        if length > COPIED_UNDER_LOCK {
            let reservation = state.reserve().then_some(Reservation(memory))?;
            drop(state);
            return Some(self.post_copy(reservation, operation, slices, None));
        }
        Some(self.post_copied(state, memory.filled(slices), operation, None))
    }

    /// Posts a request with the caller's memory, if there is room now and nothing has failed. The
    /// memory comes back otherwise.
    pub(in crate::messages) fn post_now(
        &self,
        operation: SendOperation,
        sg_list: SgList,
    ) -> Result<Result<WorkId, PostError<SgList>>, SgList> {
        match self.state_with_room() {
            Some(state) => Ok(self.post_awaited(state, operation, sg_list)),
            None => Err(sg_list),
        }
    }

    /// The state, if there is room for a request and nothing has failed.
    #[inline]
    fn state_with_room(&self) -> Option<MutexGuard<'_, State>> {
        let mut state = self.state();
        if self.is_due(&state) {
            state = self.complete_sends(state);
        }
        (state.failure().is_none() && state.has_room()).then_some(state)
    }

    /// Reserves room for a message of `length` bytes that is copied.
    pub(crate) fn reserve_copy(state: &mut State, length: usize) -> Option<Reservation> {
        if !state.has_room() {
            return None;
        }
        let memory = Memory::take(state, length)?;
        state.reserve().then_some(Reservation(memory))
    }

    /// Copies a message into the memory that was reserved for it and posts it; a datagram to its
    /// destination.
    pub(crate) fn post_copy(
        &self,
        reservation: Reservation,
        operation: SendOperation,
        slices: &[io::IoSlice<'_>],
        to: Option<&Destination>,
    ) -> Result<()> {
        // Without the lock: it may take a while, and pages of the caller may not be in memory.
        let copied = reservation.0.filled(slices);
        let mut state = self.state();
        state.end_reservation();
        self.post_copied(state, copied, operation, to)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each message")]
    fn post_copied(
        &self,
        state: MutexGuard<'_, State>,
        copied: Result<SgList, PostError<SgList>>,
        operation: SendOperation,
        to: Option<&Destination>,
    ) -> Result<()> {
        let request = match copied {
            Ok(memory) => SendRequest::new(operation, memory),
            Err(PostError { error, returned }) => {
                let refused = Self::refused(state, error, returned, InFlight::Copied);
                return Err(refused.error);
            }
        };
        let request = match to {
            Some(to) => request.destination(&to.address, to.qp_number, to.qkey),
            None => request,
        };
        match self.post(state, request, InFlight::Copied) {
            Ok(_) => Ok(()),
            Err(refused) => Err(refused.error),
        }
    }

    /// Posts a request in the room that was reserved for it.
    pub(in crate::messages) fn post_reserved(
        &self,
        operation: SendOperation,
        sg_list: SgList,
    ) -> Result<WorkId, PostError<SgList>> {
        let mut state = self.state();
        state.end_reservation();
        self.post_awaited(state, operation, sg_list)
    }

    fn post_awaited(
        &self,
        state: MutexGuard<'_, State>,
        operation: SendOperation,
        sg_list: SgList,
    ) -> Result<WorkId, PostError<SgList>> {
        let request = SendRequest::new(operation, sg_list);
        self.post(state, request, InFlight::Awaited)
    }

    /// Posts a request there is room for.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each message")]
    fn post(
        &self,
        mut state: MutexGuard<'_, State>,
        request: SendRequest<'_>,
        waiter: InFlight,
    ) -> Result<WorkId, PostError<SgList>> {
        let queued = match self.queue_pair.queue_send(request) {
            Ok(queued) => queued,
            Err(PostError { error, returned }) => {
                let memory = returned.into_sg_list();
                return Err(Self::refused(state, error, memory, waiter));
            }
        };
        let work = queued.work();
        // Whoever polls for it needs the lock to do so.
        state.posted(work, waiter);
        drop(state);
        // Without the lock: other callers go on while the kernel is called.
        match queued.ring_doorbell() {
            Ok(()) => Ok(work),
            Err(error) => Err(self.not_processed(work, waiter, error)),
        }
    }

    /// A request was refused for which there was room.
    #[cold]
    fn refused(
        mut state: MutexGuard<'_, State>,
        error: Error,
        mut returned: SgList,
        waiter: InFlight,
    ) -> PostError<SgList> {
        if waiter == InFlight::Copied {
            // Before another caller is woken for the room, who needs the memory.
            let memory = std::mem::take(&mut returned);
            state.pool.extend(memory.into_buffer());
        }
        let mut deferred = Deferred::default();
        state.refused(&mut deferred);
        drop(state);
        deferred.run();
        PostError { error, returned }
    }

    /// A request is in the queue, but the kernel has refused to process it.
    #[cold]
    fn not_processed(&self, work: WorkId, waiter: InFlight, error: Error) -> PostError<SgList> {
        let mut deferred = Deferred::default();
        let mut state = self.state();
        state.not_processed(work, waiter, &mut deferred);
        if self.queue_pair.is_broken() {
            // Callers that wait for room would wait for its memory, which stays with the device.
            state.fail(Failure::Refused(error.clone()), &mut deferred);
        }
        drop(state);
        deferred.run();
        let returned = SgList::NONE;
        PostError { error, returned }
    }

    /// No one waits for a request any more.
    pub(in crate::messages) fn abandon(&self, work: WorkId) {
        let mut deferred = Deferred::default();
        self.state().abandon(work, &mut deferred);
        deferred.run();
    }

    /// Posts an empty write, which needs no memory, unless the last one is in flight: that
    /// one detects a dead peer as well.
    pub(crate) fn send_keep_alive(&self, now: Instant) {
        let mut state = self.state();
        state.keep_alive.advance(now);
        let last = state.keep_alive.work;
        let is_in_flight = last.is_some_and(|work| state.is_in_flight(work));
        if is_in_flight || !state.has_room() {
            return;
        }
        let nothing = SendOperation::Write(RemoteMemory::NONE);
        let request = SendRequest::new(nothing, SgList::NONE);
        // If it is refused, the connection has ended, which whoever waits learns by itself.
        let _ = self.post(state, request, InFlight::KeepAlive);
    }
}

/// Copies the slices one after the other, as far as they fit; how many bytes.
#[inline]
fn gather(slices: &[io::IoSlice<'_>], into: &mut [u8]) -> usize {
    match (
        slices,
        into.get_mut(..slices.first().map_or(0, |slice| slice.len())),
    ) {
        ([slice], Some(room)) => {
            room.copy_from_slice(slice);
            room.len()
        }
        _ => gather_many(slices, into),
    }
}

fn gather_many(slices: &[io::IoSlice<'_>], mut into: &mut [u8]) -> usize {
    let mut length = 0;
    for slice in slices {
        let fits = slice.len().min(into.len());
        let (room, rest) = into.split_at_mut(fits);
        room.copy_from_slice(slice.get(..fits).unwrap_or_default());
        into = rest;
        length += fits;
    }
    length
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use super::*;

    #[test]
    fn slices_are_copied_one_after_the_other() {
        let mut into = [0; 6];
        let slices = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cde")];
        assert_eq!(gather(&slices, &mut into), 5);
        assert_eq!(&into, b"abcde\0");
        assert_eq!(gather(&slices, &mut into[..3]), 3);
    }
}
