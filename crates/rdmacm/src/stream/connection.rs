//! A connection that carries a byte stream.

use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::{CmAddr, Deadline};
use rdmacm_rsocket::How;
use rdmacm_verbs::RemoteAccessRegion;

use super::failure::StreamFailure;
use super::options::StreamOptions;
use super::queue_pair::StreamQueuePair;
use super::readiness::Readiness;
use super::receive_state::Reading;
use super::refusal::Refusal;
use super::status::StreamInterest;
use super::wait::{self, wait_after_check};
use crate::attempt::Attempt;
use crate::busy_polling::BusyPolling;
use crate::close_reason::CloseReason;
use crate::data::{CompletionHandler as _, Timeouts, flush_closed, note_closed};
use crate::error::{Cause, Error, Result};
use crate::established::Established;
use crate::event_loop::{EventLoop, PollSlot, Wakers, waker_fn};
use crate::stage::Stage;

/// An established connection, and the queue pair that carries its bytes.
#[derive(Debug)]
pub(crate) struct StreamConnection {
    // Before the id: where destroying the id blocks, its executor drops the queue pair last.
    queue_pair: Arc<StreamQueuePair>,
    established: Established,
    pub(super) read_slot: PollSlot,
    pub(super) write_slot: PollSlot,
    timeouts: Mutex<Timeouts>,
    /// Whether the caller has taken the failure.
    is_failure_taken: AtomicBool,
    /// Of calls that do not wait.
    pub(super) readiness: OnceLock<Arc<Readiness>>,
}

impl StreamConnection {
    /// A stream of the side that has connected, or accepted.
    pub(super) fn new(
        established: Established,
        queue_pair: Arc<StreamQueuePair>,
        has_connected: bool,
    ) -> Self {
        let queue = established.id.queue();
        let weak = Arc::downgrade(&queue_pair);
        queue.wake_connection(waker_fn(move || {
            if let Some(queue_pair) = weak.upgrade() {
                queue_pair.wake_all();
            }
        }));
        if has_connected && queue_pair.is_iwarp() {
            let now = established.id.event_loop().now();
            queue_pair.status().keep_alive.wake_up_peer(now);
        }
        queue_pair.established(has_connected);
        Self {
            queue_pair,
            established,
            read_slot: PollSlot::default(),
            write_slot: PollSlot::default(),
            timeouts: Mutex::default(),
            is_failure_taken: AtomicBool::new(false),
            readiness: OnceLock::new(),
        }
    }

    pub(crate) fn event_loop(&self) -> &Arc<EventLoop> {
        self.established.id.event_loop()
    }

    pub(super) fn queue_pair(&self) -> &StreamQueuePair {
        &self.queue_pair
    }

    pub(crate) fn options(&self) -> &StreamOptions {
        self.queue_pair.options()
    }

    pub(crate) fn timeouts(&self) -> MutexGuard<'_, Timeouts> {
        self.timeouts.lock()
    }

    pub(super) fn keep_alive_due(&self) -> Option<Instant> {
        self.queue_pair.status().keep_alive.next()
    }

    pub(crate) fn local_addr(&self) -> Result<SocketAddr> {
        self.ip_address(self.established.local_addr()?)
    }

    pub(crate) fn peer_addr(&self) -> Result<SocketAddr> {
        self.ip_address(self.established.peer_addr()?)
    }

    pub(crate) fn device_name(&self) -> &str {
        self.queue_pair.device().context().device_name()
    }

    fn ip_address(&self, address: CmAddr) -> Result<SocketAddr> {
        let address = address.socket_addr().ok_or(Cause::InvalidAddress);
        address.map_err(|cause| self.fail_at_once(Stage::Bind, cause))
    }

    pub(super) fn attempt(&self, deadline: Deadline) -> Attempt {
        self.established.attempt(deadline)
    }

    pub(super) fn fail(&self, attempt: &Attempt, stage: Stage, cause: Cause) -> Error {
        self.established.fail(attempt, stage, cause)
    }

    /// A failure of a step that has not waited.
    pub(super) fn fail_at_once(&self, stage: Stage, cause: Cause) -> Error {
        self.established.fail_at_once(stage, cause)
    }

    /// Whether there is an event.
    pub(super) fn may_be_closed(&self) -> bool {
        self.established.id.queue().is_ready()
    }

    /// Why the connection has closed, as far as events say so. What came before is in the
    /// completion queues by then.
    fn close_reason(&self) -> Option<CloseReason> {
        let reason = self.established.close_reason()?;
        note_closed(self.queue_pair.device().context(), reason.kind());
        self.queue_pair.poll();
        let queue_pair = self.queue_pair.queue_pair();
        // Otherwise a later write would be posted, on RoCE to a peer that may be there still.
        let is_over =
            || queue_pair.is_broken() || self.queue_pair.is_iwarp() && self.queue_pair.is_flushed();
        flush_closed(self.established.id.id(), queue_pair, reason, is_over);
        Some(reason)
    }

    fn with_queue_pair(&self) -> rdmacm_core::WithQueuePair<'_> {
        let id = self.established.id.id();
        id.with_queue_pair(self.queue_pair.queue_pair())
    }

    /// Ends a connection that has failed: the peer need not have noticed.
    fn abandon(&self) {
        self.established.id.abandon();
        // On iWARP the connection is closed with the queue pair.
        if self.queue_pair.is_iwarp() {
            let _ = self.with_queue_pair().move_to_error();
        }
    }

    /// Transfers what can be transferred; `None` if nothing can be. No bytes are the end of the
    /// stream.
    #[inline]
    pub(super) fn transfer(
        &self,
        transfer: impl FnOnce() -> Option<Result<usize, Refusal>>,
    ) -> Option<Result<usize, Cause>> {
        // Mostly there is no event. It is looked for first: what arrived before the connection
        // closed is transferred all the same.
        let closed = if self.may_be_closed() {
            self.close_reason()
        } else {
            None
        };
        match transfer() {
            Some(Ok(bytes)) => Some(Ok(bytes)),
            Some(Err(refusal)) => Some(Err(self.refused(&refusal, closed))),
            None => closed.map(|reason| Err(Cause::Closed(reason))),
        }
    }

    /// Why a transfer was refused, on a connection that has perhaps closed.
    #[cold]
    fn refused(&self, refusal: &Refusal, closed: Option<CloseReason>) -> Cause {
        match refusal {
            Refusal::ShutDown => Cause::ShutDown,
            Refusal::NotMapped => Cause::NotMapped,
            Refusal::NoMapEntry => Cause::NoMapEntry,
            Refusal::Failed(failure) => {
                self.abandon();
                self.cause(failure, closed)
            }
        }
    }

    /// Why a stream has failed: a consequence is replaced by its reason, as far as that is
    /// known.
    fn cause(&self, failure: &StreamFailure, closed: Option<CloseReason>) -> Cause {
        if failure.is_reason() {
            return failure.cause();
        }
        if let Some(reason) = closed {
            return Cause::Closed(reason);
        }
        self.queue_pair.device().context().check_removal();
        self.queue_pair.poll();
        let status = self.queue_pair.status();
        status.failure().unwrap_or(failure).cause()
    }

    fn read_with(
        &self,
        reading: Reading,
        into: &mut [IoSliceMut<'_>],
    ) -> Option<Result<usize, Cause>> {
        self.transfer(|| self.queue_pair.read(reading, into))
    }

    fn try_write_of(&self, slices: &[IoSlice<'_>]) -> Option<Result<usize, Cause>> {
        if slices.iter().all(|slice| slice.is_empty()) {
            return Some(Ok(0));
        }
        self.transfer(|| self.queue_pair.write(slices))
    }

    /// Ends the wait of the last caller that polls for the same, before a future waits. It may
    /// have gone, and would be woken in the future's place.
    pub(super) fn end_polling(&self, interest: StreamInterest) {
        let slot = match interest {
            StreamInterest::Readable => &self.read_slot,
            StreamInterest::Writable => &self.write_slot,
            StreamInterest::Flushed | StreamInterest::Progress => return,
        };
        slot.end(self.event_loop(), |key| {
            self.queue_pair().deregister(interest, key);
        });
    }

    /// Waits until `take` returns something, which it has not done just now.
    pub(super) async fn wait<T>(
        &self,
        attempt: &Attempt,
        interest: StreamInterest,
        take: &mut (dyn FnMut() -> Option<T> + Send),
    ) -> Result<T, Cause> {
        Ok(wait_after_check(self, interest, attempt.until, take).await?)
    }

    /// Transfers what can be transferred next, after `take` has found that nothing can be.
    pub(super) async fn transfer_next(
        &self,
        deadline: Deadline,
        interest: StreamInterest,
        stage: Stage,
        take: &mut (dyn FnMut() -> Option<Result<usize, Cause>> + Send),
    ) -> Result<usize> {
        let attempt = self.attempt(deadline);
        let transferred = self.wait(&attempt, interest, take).await;
        transferred
            .and_then(|transferred| transferred)
            .map_err(|cause| self.fail(&attempt, stage, cause))
    }

    fn read_result(&self, read: Result<usize, Cause>) -> Result<usize> {
        read.map_err(|cause| self.fail_at_once(Stage::Receive, cause))
    }

    fn write_result(&self, written: Result<usize, Cause>) -> Result<usize> {
        written.map_err(|cause| self.fail_at_once(Stage::Send, cause))
    }

    /// Reads what has arrived, if something has.
    pub(crate) fn try_read(
        &self,
        reading: Reading,
        into: &mut [IoSliceMut<'_>],
    ) -> Option<Result<usize>> {
        let read = self.read_with(reading, into)?;
        Some(self.read_result(read))
    }

    /// Reads what arrives next, after [`try_read`](Self::try_read).
    pub(crate) async fn read(
        &self,
        reading: Reading,
        into: &mut [IoSliceMut<'_>],
        deadline: Deadline,
    ) -> Result<usize> {
        let mut take = || self.read_with(reading, into);
        self.transfer_next(
            deadline,
            StreamInterest::Readable,
            Stage::Receive,
            &mut take,
        )
        .await
    }

    /// Reads what arrives while the thread polls, before it sleeps.
    pub(crate) fn read_busily(
        &self,
        reading: Reading,
        into: &mut [IoSliceMut<'_>],
    ) -> Option<Result<usize>> {
        self.read_while_polling(self.options().busy_poll.of_thread(), reading, into)
    }

    /// Reads what arrives while a task polls that does not wait yet, if tasks are to poll.
    fn read_busily_in_task(
        &self,
        reading: Reading,
        into: &mut [IoSliceMut<'_>],
    ) -> Option<Result<usize>> {
        let time = self.options().busy_poll.of_task();
        if time.is_zero() || reading == Reading::Peek || self.read_slot.is_waiting() {
            return None;
        }
        let read = self.try_read(reading, into);
        read.or_else(|| self.read_while_polling(time, reading, into))
    }

    /// Reads what arrives within this time.
    fn read_while_polling(
        &self,
        time: Duration,
        reading: Reading,
        into: &mut [IoSliceMut<'_>],
    ) -> Option<Result<usize>> {
        let busy = &self.queue_pair.busy_reads;
        let read = || self.try_read(reading, into);
        self.busily(busy, time, StreamInterest::Readable, read)
    }

    fn busily<T>(
        &self,
        busy: &BusyPolling,
        time: Duration,
        interest: StreamInterest,
        poll: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let is_over = || self.may_be_closed();
        let watch = || self.queue_pair.watch(interest);
        busy.poll(time, is_over, watch, poll)
    }

    /// Writes what there is room for, if there is any.
    pub(crate) fn try_write(&self, slices: &[IoSlice<'_>]) -> Option<Result<usize>> {
        let written = self.try_write_of(slices)?;
        Some(self.write_result(written))
    }

    /// Writes once there is room while the thread polls, before it sleeps.
    pub(crate) fn write_busily(&self, slices: &[IoSlice<'_>]) -> Option<Result<usize>> {
        let (busy, time) = (
            &self.queue_pair.busy_writes,
            self.options().busy_poll.of_thread(),
        );
        let write = || self.try_write(slices);
        self.busily(busy, time, StreamInterest::Writable, write)
    }

    /// Writes once there is room, after [`try_write`](Self::try_write).
    pub(crate) async fn write(&self, slices: &[IoSlice<'_>], deadline: Deadline) -> Result<usize> {
        let mut take = || self.try_write_of(slices);
        self.transfer_next(deadline, StreamInterest::Writable, Stage::Send, &mut take)
            .await
    }

    pub(crate) fn poll_read(
        &self,
        context: &mut Context<'_>,
        reading: Reading,
        into: &mut [IoSliceMut<'_>],
    ) -> Poll<Result<usize>> {
        if let Some(read) = self.read_busily_in_task(reading, into) {
            return Poll::Ready(read);
        }
        let mut take = || self.read_with(reading, into);
        let (slot, interest) = (&self.read_slot, StreamInterest::Readable);
        let read = wait::poll(slot, self, interest, context, &mut take);
        read.map(|read| self.read_result(read.and_then(|read| read)))
    }

    pub(crate) fn poll_write(
        &self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let mut take = || self.try_write_of(slices);
        let (slot, interest) = (&self.write_slot, StreamInterest::Writable);
        let written = wait::poll(slot, self, interest, context, &mut take);
        written.map(|written| self.write_result(written.and_then(|written| written)))
    }

    /// Where the bytes are that have arrived and follow each other in memory.
    pub(crate) fn received(&self) -> (&RemoteAccessRegion, Range<usize>) {
        self.queue_pair.received_part()
    }

    /// Frees the memory of the first bytes of those that have arrived.
    pub(crate) fn consume(&self, bytes: usize) {
        self.queue_pair.consume(bytes);
    }

    /// Closes one direction or both, and tells the peer.
    pub(crate) fn shut_down(&self, how: How) {
        self.queue_pair.shut_down(how);
        if how != How::Read {
            self.has_given_up_writing();
        }
    }

    /// Closes one direction or both, as [`shut_down`](Self::shut_down).
    ///
    /// # Errors
    /// Why the stream has failed, if it has.
    pub(crate) fn shut_down_or_fail(&self, how: How) -> Result<()> {
        let failure = self.failure();
        let has_peer_finished = self.queue_pair.status().shutdown.peer_finished();
        self.shut_down(how);
        // A connection that had ended before is an orderly end only if the peer had finished.
        let failure = failure.filter(|_| !has_peer_finished);
        failure.or_else(|| self.failure()).map_or(Ok(()), Err)
    }

    /// Why the stream has failed, if it has.
    pub(crate) fn failure(&self) -> Option<Error> {
        let closed = self.close_reason();
        let status = self.queue_pair.status();
        let shutdown = status.shutdown;
        let failure = status.failure().cloned();
        drop(status);
        let is_all_acknowledged = || self.queue_pair.unacknowledged() == 0;
        // Unless this side alone has ended it, and something was in flight.
        let is_orderly = || shutdown.peer_disconnected() || is_all_acknowledged();
        let cause = match (failure, closed) {
            // An update for a peer that has gone.
            (Some(failure), _)
                if failure.is_of_request()
                    && shutdown.peer_disconnected()
                    && is_all_acknowledged() =>
            {
                return None;
            }
            (Some(failure), _) if failure.is_reason() => failure.cause(),
            _ if shutdown.is_over() && is_orderly() => return None,
            (Some(failure), closed) => self.cause(&failure, closed),
            (None, Some(reason)) => Cause::Closed(reason),
            (None, None) => return None,
        };
        Some(self.fail_at_once(Stage::Receive, cause))
    }

    /// Why the stream has failed, the first time that somebody asks after it has.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        let failure = self.failure()?;
        let is_taken = self.is_failure_taken.swap(true, Ordering::Relaxed);
        (!is_taken).then_some(failure)
    }

    /// Disconnects without closing the stream.
    pub(crate) fn abort(&self) {
        let mut wakers = Wakers::default();
        self.queue_pair.fail(StreamFailure::Aborted, &mut wakers);
        wakers.wake();
        self.abandon();
    }

    /// Closes both directions, and waits until the peer's device has acknowledged all that
    /// was written.
    pub(crate) async fn close(&self, deadline: Deadline) -> Result<()> {
        self.shut_down(How::Both);
        let attempt = self.attempt(deadline);
        let mut take = || self.is_ended().then_some(());
        let ended = match take() {
            Some(()) => Ok(()),
            None => {
                self.wait(&attempt, StreamInterest::Flushed, &mut take)
                    .await
            }
        };
        // Perhaps only a failure has been seen that was a consequence of the peer's end.
        self.queue_pair.poll();
        let has_peer_closed = self.queue_pair.status().shutdown.peer_disconnected();
        let cause = match (ended, self.queue_pair.unacknowledged()) {
            (Ok(()), 0) => return Ok(()),
            (Err(_), 0) if has_peer_closed => return Ok(()),
            (Err(Cause::Deadline), bytes) if bytes > 0 => Cause::NotAcknowledged(bytes),
            _ if has_peer_closed => Cause::ShutDown,
            (Ok(()), _) => self.end_cause(),
            (Err(cause), _) => cause,
        };
        Err(self.fail(&attempt, Stage::Close, cause))
    }

    /// Why nothing that is in flight is acknowledged any more.
    fn end_cause(&self) -> Cause {
        let closed = self.close_reason();
        let failure = self.queue_pair.status().failure().cloned();
        match (failure, closed) {
            (Some(failure), closed) => self.cause(&failure, closed),
            (None, Some(reason)) => Cause::Closed(reason),
            (None, None) => Cause::Closed(CloseReason::UNREAD),
        }
    }

    /// Whether the peer has closed both directions and not disconnected yet: it may still wait
    /// for the acknowledgement of the message that says so. rxe hands a message over before it
    /// acknowledges it (`rxe_responder`), and a peer without an acknowledgement repeats it until
    /// its retries are used up. On iWARP the kernel's TCP acknowledges.
    pub(super) fn is_awaited(&self) -> bool {
        !self.queue_pair.is_iwarp()
            && self.queue_pair.status().shutdown.peer_disconnected()
            && !self.queue_pair.has_failed()
            && self.close_reason().is_none()
    }

    /// Waits until nothing is in flight in either direction any more.
    pub(super) async fn lingered(&self, deadline: Deadline) -> Result<(), Cause> {
        let attempt = self.attempt(deadline);
        let mut take = || (self.is_ended() && !self.is_awaited()).then_some(());
        match take() {
            Some(()) => Ok(()),
            None => {
                self.wait(&attempt, StreamInterest::Flushed, &mut take)
                    .await
            }
        }
    }

    /// Whether nothing that was written is in flight any more.
    pub(super) fn is_ended(&self) -> bool {
        let is_closed = self.close_reason().is_some();
        self.queue_pair.is_flushed() || is_closed || self.queue_pair.has_failed()
    }
}

/// How long a device has to acknowledge the peer's last message. It mostly takes microseconds, and
/// the peer disconnects after it; but of two that close at the same time, none disconnects first.
pub(super) const LAST_ACKNOWLEDGEMENT: Duration = Duration::from_millis(200);

impl Drop for StreamConnection {
    fn drop(&mut self) {
        if self.queue_pair.device().context().is_in_child() {
            // A thread of the parent may have held a lock at the fork.
            return;
        }
        self.end_polling(StreamInterest::Readable);
        self.end_polling(StreamInterest::Writable);
    }
}
