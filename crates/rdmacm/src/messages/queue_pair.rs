//! A queue pair that carries messages, and its memory.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use rdmacm_core::{DepthLimits, QpAttr, QpAttrMask, QpType, QueuePair as _, Transport};
use rdmacm_verbs::{
    AddressHandle, Buffer, CompletionQueue, Error, PostError, ProtectionDomain, QpCaps, QueuePair,
    RemoteMemory, Result, SendOperation, SendRequest, SgList, WorkId,
};

use super::device::OpenDevice;
use super::failure::Failure;
use super::keep_alive::KeepAlive;
use super::options::MessageOptions;
use super::state::{Deferred, InFlight, State};
use super::waiters::Interest;

/// Messages of up to this many bytes are posted inline, which all soft devices support.
pub(super) const MAX_INLINE: usize = 64;

/// The number of retries that means no limit on rxe (`rxe_completer`).
pub(crate) const ENDLESS_RETRIES: u8 = 7;

/// A queue pair that carries messages, with registered memory to send from and to receive
/// into.
///
/// The caller that waits polls the completion queue, hands all completions to those who
/// wait for them, and wakes them.
#[derive(Debug)]
pub(crate) struct MessageQueuePair {
    queue_pair: QueuePair,
    completions: CompletionQueue,
    device: Arc<OpenDevice>,
    options: MessageOptions,
    state: Mutex<State>,
}

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
    pub(crate) fn new(
        device: &Arc<OpenDevice>,
        qp_type: QpType,
        options: MessageOptions,
        now: Instant,
    ) -> Result<Arc<Self>> {
        let context = device.context();
        let (receives, sends) = (options.receives, options.sends);
        let completions = CompletionQueue::options(receives.saturating_add(sends))
            .channel(device.channel())
            .create(context)?;
        let domain = match &options.protection_domain {
            Some(domain) => domain.clone(),
            None => context.create_protection_domain()?,
        };
        let memory = domain.allocate(options.memory().unwrap_or_default())?;
        let pool = memory.into_chunks(options.size.max(1));
        let queue_pair = QueuePair::options(qp_type)
            .caps(QpCaps {
                max_send_wr: sends,
                max_recv_wr: receives,
                max_inline_data: u32::try_from(MAX_INLINE).unwrap_or_default(),
                ..QpCaps::default()
            })
            .protection_domain(&domain)
            .send_queue(&completions)
            .receive_queue(&completions)
            .create(context)?;
        let keep_alive = KeepAlive::new(options.keep_alive, now);
        let max_sends = usize::try_from(sends).unwrap_or(usize::MAX);
        let state = State::new(pool, max_sends, queue_pair.transport(), keep_alive);
        let this = Arc::new(Self {
            queue_pair,
            completions,
            device: Arc::clone(device),
            options,
            state: Mutex::new(state),
        });
        device.add_queue_pair(this.completions.token(), &this);
        Ok(this)
    }

    pub(crate) fn queue_pair(&self) -> &QueuePair {
        &self.queue_pair
    }

    pub(crate) fn device(&self) -> &Arc<OpenDevice> {
        &self.device
    }

    pub(crate) fn protection_domain(&self) -> &ProtectionDomain {
        self.queue_pair.protection_domain()
    }

    pub(crate) fn options(&self) -> &MessageOptions {
        &self.options
    }

    /// Posts all receive requests.
    pub(crate) fn post_receives(&self) -> Result<()> {
        for _ in 0..self.options.receives {
            let buffer = self.state().pool.pop();
            if let Some(buffer) = buffer {
                self.queue_pair.post_receive(buffer)?;
            }
        }
        Ok(())
    }

    /// Posts a receive request for one more message. Once the connection is closed, its
    /// memory is freed instead.
    pub(crate) fn post_receive(&self, buffer: Buffer) {
        drop(self.queue_pair.post_receive(buffer));
    }

    /// Each statement leaves the state consistent, so it is after a panic as well.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles all completions that there are.
    pub(crate) fn poll(&self) {
        self.poll_with(|_| ());
    }

    /// Handles all completions that there are, and looks at the state then.
    pub(crate) fn poll_with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        let mut deferred = Deferred::default();
        let mut state = self.state();
        self.complete_all(&mut state, &mut deferred);
        let outcome = look(&mut state);
        drop(state);
        deferred.run();
        outcome
    }

    fn complete_all(&self, state: &mut State, deferred: &mut Deferred) {
        loop {
            match self.completions.poll() {
                Ok(Some(completion)) => state.complete(completion, deferred),
                Ok(None) => return,
                // It was completed before; there may be more completions.
                Err(Error::Stray { .. }) if state.may_complete_twice() => {}
                Err(error) => return state.fail(Failure::Device(error), deferred),
            }
        }
    }

    /// Nothing more can be transferred.
    pub(crate) fn fail(&self, failure: Failure) {
        let mut deferred = Deferred::default();
        self.state().fail(failure, &mut deferred);
        deferred.run();
    }

    /// The completion queue has notified.
    pub(super) fn notified(&self) {
        let has_waiters = self.poll_with(|state| {
            state.is_armed = false;
            !state.waiters.is_empty()
        });
        if has_waiters {
            self.arm();
            self.poll();
        }
    }

    /// Requests a notification of the next completion. Completions that are there already
    /// do not notify: the caller polls afterwards.
    fn arm(&self) {
        if std::mem::replace(&mut self.state().is_armed, true) {
            return;
        }
        if let Err(error) = self.completions.arm(false) {
            self.fail(Failure::Device(error));
        }
    }

    pub(crate) fn register(&self, interest: Interest, key: u64, waker: &Waker) {
        let replaced = self.state().waiters.add(interest, key, waker);
        drop(replaced);
        self.arm();
    }

    /// Removes a waiter. If it was woken for something, another one is woken instead.
    pub(crate) fn deregister(&self, interest: Interest, key: u64) {
        let mut state = self.state();
        let waiter = state.waiters.remove(interest, key);
        let is_ready = match interest {
            Interest::Arrival => !state.arrived.is_empty(),
            Interest::Room => state.has_room(),
            Interest::Flushed(_) | Interest::Completion(_) | Interest::Closed => false,
        };
        let next = state.waiters.first(interest).filter(|_| is_ready);
        drop(state);
        drop(waiter);
        if let Some(next) = next {
            next.wake();
        }
    }

    /// Whether a request was refused because the connection is closed: by siw, or because
    /// another request has failed meanwhile. The event that says why may not have been read
    /// yet.
    pub(super) fn is_refused_closed(&self, error: &Error) -> bool {
        match error {
            Error::Command(_) => {
                matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTCONN))
            }
            Error::InvalidInput { .. } => self.queue_pair.is_broken(),
            _ => false,
        }
    }

    /// Whether the queue pair must be moved to ERR now that its connection is closed: siw
    /// does not complete requests that were posted after the end.
    pub(super) fn needs_flush(&self) -> bool {
        self.queue_pair.transport() == Transport::IWarp && !self.state().is_idle()
    }

    /// Reserves room for a message of `length` bytes that is copied.
    pub(crate) fn reserve_copy(state: &mut State, length: usize) -> Option<Reservation> {
        if !state.has_room() {
            return None;
        }
        let buffer = if length <= MAX_INLINE {
            None
        } else {
            Some(state.pool.pop()?)
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
        let mut inline = [0; MAX_INLINE];
        let request = match reservation.0 {
            None => match gather(slices, &mut inline) {
                0 => SendRequest::new(operation, SgList::NONE),
                length => {
                    let bytes = inline.get(..length).unwrap_or_default();
                    SendRequest::inline(operation, bytes)
                }
            },
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
        match self.post(request, InFlight::Copied) {
            Ok(_) => Ok(()),
            Err(PostError { error, returned }) => {
                self.state().pool.extend(returned.into_buffer());
                Err(error)
            }
        }
    }

    /// Posts a request in the room that was reserved for it.
    pub(super) fn post_reserved(
        &self,
        operation: SendOperation,
        sg_list: SgList,
    ) -> Result<WorkId, PostError<SgList>> {
        self.post(SendRequest::new(operation, sg_list), InFlight::Awaited)
    }

    fn post(
        &self,
        request: SendRequest<'_>,
        waiter: InFlight,
    ) -> Result<WorkId, PostError<SgList>> {
        // Without the lock: other callers go on while the kernel is called.
        let posted = self.queue_pair.post_send(request);
        let work = posted.as_ref().ok().copied();
        let mut deferred = Deferred::default();
        self.state().posted(work, waiter, &mut deferred);
        deferred.run();
        posted.map_err(|refused| {
            let returned = refused.returned.map(SendRequest::into_sg_list);
            PostError {
                error: refused.error,
                returned: returned.unwrap_or_default(),
            }
        })
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
    pub(super) fn abandon(&self, work: WorkId) {
        let mut deferred = Deferred::default();
        self.state().abandon(work, &mut deferred);
        deferred.run();
    }

    /// Posts an empty write, which needs no memory, unless the last one is under way: that
    /// one detects a dead peer as well.
    pub(crate) fn send_keep_alive(&self, now: Instant) {
        let is_reserved = {
            let mut state = self.state();
            state.keep_alive.advance(now);
            let last = state.keep_alive.work;
            let is_under_way = last.is_some_and(|work| state.is_in_flight(work));
            !is_under_way && state.reserve()
        };
        if !is_reserved {
            return;
        }
        let nothing = SendOperation::Write(RemoteMemory::NONE);
        let request = SendRequest::new(nothing, SgList::NONE);
        if let Ok(work) = self.post(request, InFlight::Abandoned) {
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

impl rdmacm_core::QueuePair for MessageQueuePair {
    fn number(&self) -> u32 {
        self.queue_pair.number()
    }

    fn transport(&self) -> Transport {
        self.queue_pair.transport()
    }

    fn depth_limits(&self) -> DepthLimits {
        self.queue_pair.depth_limits()
    }

    /// With keep-alives, requests to a dead peer must fail at some time: on the accepting
    /// side too, whose retries the connecting side chooses.
    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        let mut attr = *attr;
        if self.options.has_keep_alive() && attr.retry_count == ENDLESS_RETRIES {
            attr.retry_count = ENDLESS_RETRIES - 1;
        }
        rdmacm_core::QueuePair::modify(&self.queue_pair, &attr, mask)
    }
}

impl Drop for MessageQueuePair {
    fn drop(&mut self) {
        self.device.remove_queue_pair(self.completions.token());
    }
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
