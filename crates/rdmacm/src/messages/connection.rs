//! A connection that carries messages.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rdmacm_core::{AccessFlags, Deadline};
use rdmacm_verbs::{Buffer, RemoteAccessRegion, SendOperation};

use super::message::Message;
use super::queue_pair::{MessageQueuePair, Reservation};
use super::state::{Arrival, State};
use super::status::{Status, ends_connection};
use super::try_sent::TrySent;
use super::wait::{self, wait_after_check};
use super::waiters::Interest;
use crate::attempt::Attempt;
use crate::close_reason::CloseReason;
use crate::data::{Failure, flush_closed, note_closed};
use crate::error::{Cause, Error, Result};
use crate::established::Established;
use crate::event_loop::{EventLoop, ManagedId, PollSlot, is_iwarp};
use crate::stage::Stage;

/// An established connection, and the queue pair that carries its messages.
#[derive(Debug)]
pub(crate) struct MessageConnection {
    // Before the id: where destroying the id blocks, its executor drops the queue pair last.
    queue_pair: Arc<MessageQueuePair>,
    established: Established,
    receive_slot: PollSlot,
    send_slot: PollSlot,
    /// Whether waits end. The deadline is in the state, whose lock a message that has come spares.
    has_deadline: AtomicBool,
}

/// How long after a device has gone the kernel may take to report that, at most.
const REMOVAL_TIME: Duration = Duration::from_secs(10);

impl MessageConnection {
    pub(crate) fn new(established: Established, queue_pair: Arc<MessageQueuePair>) -> Self {
        let queue = established.id.queue();
        queue.wake_connection(queue_pair.waker());
        Self {
            queue_pair,
            established,
            receive_slot: PollSlot::default(),
            send_slot: PollSlot::default(),
            has_deadline: AtomicBool::new(false),
        }
    }

    /// After connecting: wakes up a peer on siw.
    pub(crate) fn wake_up_peer(&self) {
        if is_iwarp(self.queue_pair.as_ref()) {
            let now = self.event_loop().now();
            self.queue_pair.state().keep_alive.wake_up_peer(now);
        }
    }

    pub(crate) fn event_loop(&self) -> &Arc<EventLoop> {
        self.established.id.event_loop()
    }

    pub(crate) fn established(&self) -> &Established {
        &self.established
    }

    pub(crate) fn queue_pair(&self) -> &Arc<MessageQueuePair> {
        &self.queue_pair
    }

    pub(super) fn id(&self) -> &ManagedId {
        &self.established.id
    }

    pub(crate) fn migrate(&mut self, to: &Arc<EventLoop>) -> Result<()> {
        let attempt = self.established.attempt(Deadline::Never);
        let id = self.established.id.id().clone();
        let failed = |cause| attempt.fail_on(&id, Stage::Migrate, cause);
        // A task that has polled waits on the former event loop.
        self.queue_pair.wake_all();
        self.queue_pair.state().spare_thread = None;
        self.end_polling(Interest::ReceiveReady);
        self.end_polling(Interest::SendReady);
        let watched = self.queue_pair.device().watch_on(to);
        watched.map_err(|error| failed(Cause::device(error)))?;
        let migrated = self.established.id.migrate(to);
        migrated.map_err(|error| failed(error.into()))
    }

    pub(crate) fn set_deadline(&self, deadline: Deadline) {
        let has_deadline = deadline.until(self.event_loop().now()).is_some();
        self.has_deadline.store(has_deadline, Ordering::Relaxed);
        self.queue_pair.state().set_deadline(deadline);
    }

    /// An attempt with the deadline for transfers.
    pub(super) fn transfer_attempt(&self) -> Attempt {
        let deadline = self.queue_pair.state().deadline();
        self.established.attempt(deadline)
    }

    pub(super) fn fail(&self, attempt: &Attempt, stage: Stage, cause: Cause) -> Error {
        self.established.fail(attempt, stage, cause)
    }

    /// Handles what has completed, and looks at the state and at whether the connection can
    /// transfer. What arrived before the connection closed is in the state by then.
    pub(super) fn poll_with<T>(&self, look: impl FnOnce(&mut State, Status) -> T) -> T {
        // Before the reason is looked for, with which another caller may close it.
        let was_closed = self.id().queue().is_closed();
        let closed = self.established.close_reason();
        if let Some(reason) = closed {
            self.check_device(reason);
        }
        let is_stopped = was_closed && closed.is_none();
        let mut ends = false;
        let outcome = self.queue_pair.poll_with(|state| {
            let now = || self.event_loop().now();
            let failure = state.failure.check(now, closed.is_some());
            ends = ends_connection(failure.as_ref(), closed.is_some());
            let status = Status::of(failure, closed, is_stopped);
            look(state, status)
        });
        if ends {
            self.id().abandon();
        }
        outcome
    }

    /// Whether a waiter for messages may have to know more than what has arrived.
    pub(super) fn may_be_closed(&self) -> bool {
        let state = self.queue_pair.state();
        state.failure().is_some() || state.armed.sends || self.id().queue().is_ready()
    }

    /// The connection has closed.
    fn check_device(&self, reason: CloseReason) {
        note_closed(self.queue_pair.device().context(), reason.kind());
        self.queue_pair.poll();
        let is_idle = || self.queue_pair.state().is_idle();
        flush_closed(
            self.id().id(),
            self.queue_pair.queue_pair(),
            reason,
            is_idle,
        );
    }

    /// The times at which a wait must look again: to send a keep-alive, and when a failure
    /// becomes final.
    #[inline]
    pub(super) fn timers(&self) -> (Option<Instant>, Option<Instant>) {
        let state = self.queue_pair.state();
        let disconnect_wait = match state.failure() {
            None => None,
            Some(_) => self.disconnect_wait(&state),
        };
        (state.keep_alive.next(), disconnect_wait)
    }

    /// When a failure becomes final, if there is one.
    pub(super) fn disconnect_wait(&self, state: &State) -> Option<Instant> {
        state.failure()?;
        state.failure.disconnect_wait(self.event_loop().now())
    }

    /// Ends the wait of the last caller that polls for the same, before a future waits. It may
    /// have gone, and would be woken in the future's place.
    pub(super) fn end_polling(&self, interest: Interest) {
        let slot = match interest {
            Interest::ReceiveReady => &self.receive_slot,
            Interest::SendReady => &self.send_slot,
            _ => return,
        };
        slot.end(self.event_loop(), |key| {
            self.queue_pair.deregister(interest, key);
        });
    }

    /// Waits until `take` returns something.
    #[expect(
        clippy::manual_async_fn,
        reason = "the future of an `async fn` holds each argument twice"
    )]
    pub(super) fn wait<T>(
        &self,
        until: Option<Instant>,
        interest: Interest,
        mut take: impl FnMut(&mut State, Status) -> Option<T>,
    ) -> impl Future<Output = Result<T, Cause>> {
        async move {
            // Mostly there is nothing to wait for.
            if let Some(item) = self.poll_with(&mut take) {
                return Ok(item);
            }
            Ok(wait_after_check(self, interest, until, &mut take).await?)
        }
    }

    /// The next message that has come or comes while the caller polls, or on a thread that needs
    /// no more of the event loop than to sleep; `None` if there is more to it.
    pub(crate) fn receive_now(&self) -> Option<Result<Option<Message>>> {
        let queue_pair = &self.queue_pair;
        let look = || queue_pair.next_arrival();
        if let Some(arrival) = queue_pair.may_have_arrivals().then(look).flatten() {
            return Some(Ok(Some(self.message(arrival))));
        }
        // It begins with this call, so `receive` polls.
        if self.has_deadline.load(Ordering::Relaxed) {
            return None;
        }
        let arrival = self.receive_busily(self.busy_poll_time()).map(Ok);
        let arrival = if self.event_loop().is_blocking() {
            arrival.or_else(|| self.sleep_on_thread())
        } else {
            arrival
        }?;
        let failed =
            |error: rdmacm_core::Error| self.established.fail_at_once(Stage::Receive, error);
        Some(
            arrival
                .map(|arrival| Some(self.message(arrival)))
                .map_err(failed),
        )
    }

    /// Waits for the next message, after [`receive_now`](Self::receive_now); `None` after the
    /// orderly end of the connection.
    pub(crate) async fn receive(&self) -> Result<Option<Message>> {
        let attempt = self.transfer_attempt();
        if let Some(limit) = attempt.time_limit() {
            let arrival = self.receive_busily(self.busy_poll_time().min(limit));
            if let Some(arrival) = arrival {
                return Ok(Some(self.message(arrival)));
            }
        }
        let take = |state: &mut State, status| self.take_message(state, status);
        let received = wait_after_check(self, Interest::ReceiveReady, attempt.until, take).await;
        self.received(&attempt, received.map_err(Cause::from))
    }

    /// How long a caller polls before it sleeps.
    fn busy_poll_time(&self) -> Duration {
        let time = self.queue_pair.options().busy_poll;
        if self.event_loop().is_blocking() {
            time.of_thread()
        } else {
            time.of_task()
        }
    }

    pub(crate) fn poll_receive(&self, context: &mut Context<'_>) -> Poll<Result<Option<Message>>> {
        let (slot, interest) = (&self.receive_slot, Interest::ReceiveReady);
        let received = wait::poll(slot, self, interest, context, |state, status| {
            self.take_message(state, status)
        });
        received.map(|received| self.received(&self.established.attempt(Deadline::Never), received))
    }

    /// The next message, if one has arrived.
    pub(crate) fn try_receive(&self) -> Result<Option<Message>> {
        let received = self.poll_with(|state, status| self.take_message(state, status));
        match received {
            None => Ok(None),
            Some(received) => {
                self.received(&self.established.attempt(Deadline::Never), Ok(received))
            }
        }
    }

    #[inline]
    fn message(&self, arrival: Arrival) -> Message {
        Message::new(arrival, self.queue_pair.returned_memory())
    }

    fn take_message(&self, state: &mut State, status: Status) -> Option<Result<Message, Cause>> {
        if let Some(arrival) = state.take_arrival() {
            return Some(Ok(self.message(arrival)));
        }
        match status {
            Status::Closed(cause) => Some(Err(cause)),
            Status::Open | Status::Failing => None,
        }
    }

    fn received(
        &self,
        attempt: &Attempt,
        received: Result<Result<Message, Cause>, Cause>,
    ) -> Result<Option<Message>> {
        match received.and_then(|received| received) {
            Ok(message) => Ok(Some(message)),
            Err(Cause::Stopped) => Ok(None),
            Err(Cause::Closed(reason)) if reason.is_orderly() => Ok(None),
            Err(cause) => Err(self.fail(attempt, Stage::Receive, cause)),
        }
    }

    /// Sends a copy of a message, once there is room for it, after
    /// [`send_now`](Self::send_now).
    pub(crate) async fn send(&self, slices: &[IoSlice<'_>]) -> Result<()> {
        let attempt = self.transfer_attempt();
        let failed = |cause| self.fail(&attempt, Stage::Send, cause);
        let length = self.check_length(slices).map_err(failed)?;
        loop {
            let reserved = self.wait(attempt.until, Interest::SendReady, |state, status| {
                reserve_copy(state, status, length)
            });
            let reservation = reserved.await.and_then(|reserved| reserved);
            if self
                .post_copy(reservation.map_err(failed)?, slices)
                .map_err(failed)?
            {
                return Ok(());
            }
        }
    }

    /// Sends a copy of a message without the event loop, if there is room for it now;
    /// `None` if there is none, or something is wrong.
    pub(crate) fn send_now(&self, slices: &[IoSlice<'_>]) -> Option<Result<()>> {
        let length = self.check_length(slices).ok()?;
        if self.id().queue().is_ready() {
            return None;
        }
        match self.queue_pair.send_now(slices, length)? {
            Ok(()) => Some(Ok(())),
            Err(error) => {
                let cause = self.not_posted(error)?;
                Some(Err(self.established.fail_at_once(Stage::Send, cause)))
            }
        }
    }

    pub(crate) fn poll_send(
        &self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<()>> {
        let sent = self.check_length(slices).map(|length| {
            loop {
                let (slot, interest) = (&self.send_slot, Interest::SendReady);
                let reserved = wait::poll(slot, self, interest, context, |state, status| {
                    reserve_copy(state, status, length)
                });
                let Poll::Ready(reserved) = reserved else {
                    return Poll::Pending;
                };
                let posted = reserved
                    .and_then(|reserved| reserved)
                    .and_then(|reservation| self.post_copy(reservation, slices));
                match posted {
                    Ok(true) => return Poll::Ready(Ok(())),
                    Ok(false) => {}
                    Err(cause) => return Poll::Ready(Err(cause)),
                }
            }
        });
        let sent = sent.unwrap_or_else(|cause| Poll::Ready(Err(cause)));
        sent.map_err(|cause| self.established.fail_at_once(Stage::Send, cause))
    }

    /// Sends a copy of a message if there is room for it now.
    pub(crate) fn try_send(&self, slices: &[IoSlice<'_>]) -> Result<TrySent> {
        let failed = |cause| self.established.fail_at_once(Stage::Send, cause);
        let length = self.check_length(slices).map_err(failed)?;
        let reserve = || self.poll_with(|state, status| reserve_copy(state, status, length));
        let reserved = reserve().or_else(|| {
            // Perhaps nobody else reads why there is none any more.
            self.event_loop().run_without_waiting();
            reserve()
        });
        let Some(reserved) = reserved else {
            return Ok(TrySent::Full);
        };
        let reservation = reserved.map_err(failed)?;
        let is_sent = self.post_copy(reservation, slices).map_err(failed)?;
        Ok(if is_sent {
            TrySent::Sent
        } else {
            TrySent::Full
        })
    }

    fn check_length(&self, slices: &[IoSlice<'_>]) -> Result<usize, Cause> {
        let length = match slices {
            [slice] => slice.len(),
            _ => (slices.iter().map(|slice| slice.len())).fold(0, usize::saturating_add),
        };
        if length > self.queue_pair.options().message_size() {
            return Err(Cause::MessageTooLong(length));
        }
        Ok(length)
    }

    /// `false` if the connection has closed meanwhile: the next status says why.
    fn post_copy(&self, reservation: Reservation, slices: &[IoSlice<'_>]) -> Result<bool, Cause> {
        let operation = SendOperation::Send;
        let posted = self
            .queue_pair
            .post_copy(reservation, operation, slices, None);
        match posted.map_err(|error| self.not_posted(error)) {
            Ok(()) => Ok(true),
            Err(None) => Ok(false),
            Err(Some(cause)) => Err(cause),
        }
    }

    /// Why a request was not posted; `None` if the connection has closed meanwhile: the next
    /// status says why.
    #[cold]
    pub(super) fn not_posted(&self, error: rdmacm_verbs::Error) -> Option<Cause> {
        if !self.queue_pair.is_refused_closed(&error) {
            return Some(Cause::device(error));
        }
        self.queue_pair.fail(Failure::Refused(error));
        None
    }

    /// Waits until everything that was sent before has arrived.
    pub(crate) async fn flush(&self) -> Result<()> {
        let attempt = self.transfer_attempt();
        self.flush_in(&attempt, Stage::Send).await
    }

    async fn flush_in(&self, attempt: &Attempt, stage: Stage) -> Result<()> {
        let last = self.queue_pair.state().last_posted();
        let flushed = self.wait(attempt.until, Interest::Flushed(last), |state, status| {
            if state.is_flushed(last) && !state.has_request_failed {
                return Some(Ok(()));
            }
            match (state.failure(), status) {
                (Some(Failure::Device(error)), _) => Some(Err(Cause::device(error.clone()))),
                (_, Status::Closed(cause)) if state.is_flushed(last) => Some(Err(cause)),
                _ => None,
            }
        });
        let flushed = flushed.await.and_then(|flushed| flushed);
        flushed.map_err(|cause| self.fail(attempt, stage, cause))
    }

    /// Waits until the connection is closed.
    pub(crate) async fn closed(&self, deadline: Deadline) -> Result<CloseReason> {
        let attempt = self.established.attempt(deadline);
        let closed = self.wait_closed(&attempt).await;
        closed.map_err(|cause| self.fail(&attempt, Stage::Closed, cause))
    }

    async fn wait_closed(&self, attempt: &Attempt) -> Result<CloseReason, Cause> {
        let closed = self.wait(attempt.until, Interest::Closed, |_, status| match status {
            Status::Closed(Cause::Closed(reason)) => Some(Ok(reason)),
            Status::Closed(Cause::Request(request)) => {
                Some(Ok(CloseReason::with_failed_request(None, request)))
            }
            Status::Closed(Cause::Stopped) | Status::Open | Status::Failing => None,
            Status::Closed(cause) => Some(Err(cause)),
        });
        match closed.await? {
            Err(cause) if is_context_closed(&cause) => self.wait_removed(attempt, cause).await,
            closed => closed,
        }
    }

    /// Waits for the event that the device was removed, for a while: the program may have closed
    /// its context instead, or inherited it.
    async fn wait_removed(&self, attempt: &Attempt, gone: Cause) -> Result<CloseReason, Cause> {
        if self.queue_pair.device().context().is_in_child() {
            return Err(gone);
        }
        let failed_at = self.queue_pair.state().failure.failed_at();
        let end = failed_at.and_then(|failed_at| failed_at.checked_add(REMOVAL_TIME));
        let until = [attempt.until, end].into_iter().flatten().min();
        let take = |_: &mut State, _| self.id().queue().close_reason();
        let closed = self.wait(until, Interest::Closed, take).await;
        let is_over = end.is_none_or(|end| self.event_loop().now() >= end);
        closed.map_err(|failed| if is_over { gone } else { failed })
    }

    /// Waits until everything that was sent has arrived, disconnects, and waits until the
    /// peer has replied. From then on no caller waits for a message.
    pub(crate) async fn close(&self, deadline: Deadline) -> Result<()> {
        let attempt = self.established.attempt(deadline);
        let flushed = self.flush_in(&attempt, Stage::Close).await;
        self.stop();
        flushed?;
        // Without the device there is no peer to disconnect from. A child is refused.
        let device = self.queue_pair.device();
        if device.is_closed() && !device.context().is_in_child() {
            return Ok(());
        }
        self.established.close(&attempt).await
    }

    /// Wakes all callers that wait for messages, or for room to send.
    pub(crate) fn stop(&self) {
        self.id().queue().close();
    }

    /// Registers memory for transfers.
    pub(crate) fn allocate(&self, length: usize) -> Result<Buffer> {
        let allocated = self.queue_pair.protection_domain().allocate(length);
        allocated.map_err(|error| self.unregistered(error))
    }

    /// Registers memory that the peer may access.
    pub(crate) fn expose(&self, length: usize, access: AccessFlags) -> Result<RemoteAccessRegion> {
        let domain = self.queue_pair.protection_domain();
        let exposed = domain.expose(length, access);
        exposed.map_err(|error| self.unregistered(error))
    }

    fn unregistered(&self, error: rdmacm_verbs::Error) -> Error {
        let cause = Cause::device(error);
        self.established.fail_at_once(Stage::Register, cause)
    }
}

impl Drop for MessageConnection {
    fn drop(&mut self) {
        if self.queue_pair.device().context().is_in_child() {
            // A thread of the parent may have held a lock at the fork.
            return;
        }
        self.end_polling(Interest::ReceiveReady);
        self.end_polling(Interest::SendReady);
        let reason = self.id().queue().close_reason();
        let counts = self.queue_pair.state().counts;
        self.id()
            .queue()
            .trace()
            .closed(reason, counts.sent, counts.received);
    }
}

fn reserve_copy(
    state: &mut State,
    status: Status,
    length: usize,
) -> Option<Result<Reservation, Cause>> {
    match status {
        Status::Open => MessageQueuePair::reserve_copy(state, length).map(Ok),
        Status::Failing => None,
        Status::Closed(cause) => Some(Err(cause)),
    }
}

fn is_context_closed(cause: &Cause) -> bool {
    let Cause::Device { error, .. } = cause else {
        return false;
    };
    error.kind() == std::io::ErrorKind::NotConnected
}
