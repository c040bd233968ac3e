//! Posting requests to send.

use std::io;
use std::time::Instant;

use rdmacm_verbs::{
    AddressHandle, Buffer, PostError, RemoteMemory, Result, SendOperation, SendRequest, SgList,
    WorkId,
};

use super::MessageQueuePair;
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
pub(crate) struct Reservation(Option<Buffer>);

impl MessageQueuePair {
    /// Reserves room for a copy of a message, if there is room now and nothing has failed.
    pub(in crate::messages) fn reserve_now(&self, length: usize) -> Option<Reservation> {
        self.reserve_by(|state| Self::reserve_copy(state, length))
    }

    /// Reserves room for a request with the caller's memory, if there is room now and nothing
    /// has failed.
    pub(in crate::messages) fn reserve_request_now(&self) -> bool {
        let reserved = self.reserve_by(|state| state.reserve().then_some(()));
        reserved.is_some()
    }

    #[inline]
    fn reserve_by<T>(&self, reserve: impl FnOnce(&mut State) -> Option<T>) -> Option<T> {
        let mut deferred = Deferred::default();
        let mut state = self.state();
        self.complete_sends(&mut state, &mut deferred);
        let reserved = match state.failure() {
            None => reserve(&mut state),
            Some(_) => None,
        };
        drop(state);
        deferred.run();
        reserved
    }

    /// Reserves room for a message of `length` bytes that is copied.
    pub(crate) fn reserve_copy(state: &mut State, length: usize) -> Option<Reservation> {
        if !state.has_room() {
            return None;
        }
        let buffer = match length {
            0 => None,
            _ => Some(state.pool.pop()?),
        };
        state.reserve().then_some(Reservation(buffer))
    }

    /// Copies a message and posts it: where there is room for it, and to the destination of
    /// a datagram.
    pub(crate) fn post_copy(
        &self,
        reservation: Reservation,
        operation: SendOperation,
        slices: &[io::IoSlice<'_>],
        to: Option<&Destination>,
    ) -> Result<()> {
        let request = match reservation.0 {
            None => SendRequest::new(operation, SgList::NONE),
            Some(mut buffer) => {
                let length = gather(slices, &mut buffer);
                match buffer.part(0..length) {
                    Ok(sge) => SendRequest::new(operation, sge),
                    Err(refused) => {
                        self.unreserve(Some(refused.returned));
                        return Err(refused.error);
                    }
                }
            }
        };
        let request = match to {
            Some(to) => request.to(&to.address, to.qp_number, to.qkey),
            None => request,
        };
        let posted = self.post(request, InFlight::Copied);
        posted.map(drop).map_err(|refused| refused.error)
    }

    /// Posts a request in the room that was reserved for it.
    pub(in crate::messages) fn post_reserved(
        &self,
        operation: SendOperation,
        sg_list: SgList,
    ) -> Result<WorkId, PostError<SgList>> {
        self.post(SendRequest::new(operation, sg_list), InFlight::Awaited)
    }

    #[inline]
    fn post(
        &self,
        request: SendRequest<'_>,
        waiter: InFlight,
    ) -> Result<WorkId, PostError<SgList>> {
        // Without the lock: other callers go on while the kernel is called.
        let posted = self.queue_pair.post_send(request).map_err(|refused| {
            let returned = refused.returned.map(SendRequest::into_sg_list);
            PostError {
                error: refused.error,
                returned: returned.unwrap_or_default(),
            }
        });
        self.posted(posted, waiter)
    }

    /// A request was posted in the room that was reserved for it, or refused.
    fn posted(
        &self,
        mut posted: Result<WorkId, PostError<SgList>>,
        waiter: InFlight,
    ) -> Result<WorkId, PostError<SgList>> {
        let mut deferred = Deferred::default();
        let mut state = self.state();
        if let (Err(refused), InFlight::Copied) = (&mut posted, waiter) {
            // Before another caller is woken for the room, who needs the memory.
            let memory = std::mem::take(&mut refused.returned);
            state.pool.extend(memory.into_buffer());
        }
        state.posted(posted.as_ref().ok().copied(), waiter, &mut deferred);
        drop(state);
        deferred.run();
        posted
    }

    fn unreserve(&self, buffer: Option<Buffer>) {
        let mut deferred = Deferred::default();
        let mut state = self.state();
        state.pool.extend(buffer);
        state.posted(None, InFlight::Copied, &mut deferred);
        drop(state);
        deferred.run();
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
        let is_reserved = {
            let mut state = self.state();
            state.keep_alive.advance(now);
            let last = state.keep_alive.work;
            let is_in_flight = last.is_some_and(|work| state.is_in_flight(work));
            !is_in_flight && state.reserve()
        };
        if !is_reserved {
            return;
        }
        let nothing = SendOperation::Write(RemoteMemory::NONE);
        let request = SendRequest::new(nothing, SgList::NONE);
        if let Ok(work) = self.post(request, InFlight::KeepAlive) {
            self.state().keep_alive.work = Some(work);
        }
    }
}

/// Copies the slices one after the other, as far as they fit; how many bytes.
fn gather(slices: &[io::IoSlice<'_>], mut into: &mut [u8]) -> usize {
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
