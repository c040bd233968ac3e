//! The requests of a queue pair that carries messages, and what has arrived.

use std::collections::VecDeque;

use rdmacm_core::{Deadline, Transport};
use rdmacm_verbs::{
    Buffer, Completion, CompletionError, CompletionInfo, DatagramSource, SgList, WcOpcode, WorkId,
};

use super::deferred::Deferred;
use super::in_flight::{InFlight, InFlightRequests};
use super::pending_failure::PendingFailure;
use super::waiters::{Interest, Waiters};
use crate::data::{Failure, KeepAlive};
use crate::event_loop::WaitingThread;

/// How many completions are polled for together, at most.
const MAX_COMPLETIONS: usize = 16;

/// The result of a request, and its memory.
pub(crate) type Completed = (Result<CompletionInfo, CompletionError>, SgList);

/// A message that has arrived.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) buffer: Option<Buffer>,
    pub(crate) length: usize,
    pub(crate) immediate: Option<u32>,
    /// Of a datagram.
    pub(crate) source: DatagramSource,
}

#[derive(Debug)]
pub(crate) struct State {
    transport: Transport,
    pub(super) max_sends: usize,
    pub(super) arrived: VecDeque<Arrival>,
    /// Buffers for messages that are copied.
    pub(super) pool: Vec<Buffer>,
    in_flight: InFlightRequests,
    /// Requests that are posted next.
    reserved: usize,
    completed: VecDeque<(WorkId, Completed)>,
    /// Room for completions that are polled for together.
    pub(super) completions: Vec<Completion>,
    pub(super) waiters: Waiters,
    pub(super) failure: PendingFailure,
    /// A receive request has failed. The device flushes all that follow it.
    has_receive_failed: bool,
    /// A request has failed.
    pub(super) has_request_failed: bool,
    /// Which completion queues notify of their next completion.
    pub(super) armed: Armed,
    deadline: Deadline,
    pub(super) keep_alive: KeepAlive,
    /// Of a thread that has waited for a message, for the next one.
    pub(super) spare_thread: Option<WaitingThread>,
    /// Messages sent and received so far.
    pub(super) counts: Counts,
}

/// How many messages a connection has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// Completion queues that notify of their next completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Armed {
    pub(super) sends: bool,
    pub(super) receives: bool,
}

impl State {
    pub(super) fn new(
        pool: Vec<Buffer>,
        max_receives: usize,
        max_sends: usize,
        transport: Transport,
        keep_alive: KeepAlive,
    ) -> Self {
        Self {
            transport,
            max_sends,
            arrived: VecDeque::with_capacity(max_receives),
            pool,
            in_flight: InFlightRequests::with_capacity(max_sends),
            reserved: 0,
            completed: VecDeque::new(),
            completions: Vec::with_capacity((max_sends / 2).clamp(1, MAX_COMPLETIONS)),
            waiters: Waiters::default(),
            failure: PendingFailure::default(),
            has_receive_failed: false,
            has_request_failed: false,
            armed: Armed::default(),
            deadline: Deadline::Never,
            keep_alive,
            spare_thread: None,
            counts: Counts::default(),
        }
    }

    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline
    }

    pub(crate) fn set_deadline(&mut self, deadline: Deadline) {
        self.deadline = deadline;
    }

    pub(crate) fn take_arrival(&mut self) -> Option<Arrival> {
        self.arrived.pop_front()
    }

    /// The notifications that the waiters need. One that waits for a message learns of a
    /// failed request by the receive requests, which are flushed then: unless there are none
    /// any more, or it is the keep-alive that may fail.
    pub(super) fn notifications(&self, has_receives: bool) -> Armed {
        let waiters = &self.waiters;
        let is_endangered =
            !has_receives || self.failure().is_some() || self.is_keep_alive_in_flight();
        Armed {
            sends: waiters.wait_for_requests() || (!waiters.is_empty() && is_endangered),
            receives: waiters.wait_for_peer(),
        }
    }

    fn is_keep_alive_in_flight(&self) -> bool {
        (self.keep_alive.work).is_some_and(|work| self.is_in_flight(work))
    }

    /// Whether a caller that waits for a message waits for nothing but that and the end of
    /// the connection.
    pub(super) fn waits_only_for_peer(&self, has_receives: bool) -> bool {
        has_receives
            && self.failure().is_none()
            && matches!(self.deadline, Deadline::Never)
            && self.keep_alive.next().is_none()
            && !self.is_keep_alive_in_flight()
            && !self.waiters.wait_for_requests()
    }

    /// Wakes all waiters.
    pub(super) fn wake_all(&self, deferred: &mut Deferred) {
        for waker in self.waiters.all() {
            deferred.wake(Some(waker));
        }
    }

    fn in_flight_count(&self) -> usize {
        self.in_flight.len() + self.reserved
    }

    /// Whether no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight_count() == 0
    }

    /// The request that was posted last, of those in flight.
    pub(crate) fn last_posted(&self) -> Option<WorkId> {
        self.in_flight.last()
    }

    /// Whether all requests have completed of which this one was [posted
    /// last](Self::last_posted).
    pub(crate) fn is_flushed(&self, last: Option<WorkId>) -> bool {
        last.is_none_or(|last| self.in_flight.are_all_after(last))
    }

    /// Whether more than half of the room for requests is taken.
    pub(super) fn is_half_full(&self) -> bool {
        self.in_flight_count() > self.max_sends / 2
    }

    pub(super) fn has_room(&self) -> bool {
        self.in_flight_count() < self.max_sends
    }

    /// Reserves room for a request that is posted next.
    pub(super) fn reserve(&mut self) -> bool {
        let has_room = self.has_room();
        self.reserved += usize::from(has_room);
        has_room
    }

    /// A reserved request is posted now.
    pub(super) fn end_reservation(&mut self) {
        self.reserved -= 1;
    }

    /// A request was refused that there was room for: another one can be posted.
    pub(super) fn refused(&self, deferred: &mut Deferred) {
        self.finish(deferred);
    }

    /// A request is in the queue, but the kernel has refused to process it. It completes when the
    /// connection ends, if it does.
    pub(super) fn not_processed(
        &mut self,
        work: WorkId,
        waiter: InFlight,
        deferred: &mut Deferred,
    ) {
        self.counts.sent -= u64::from(waiter == InFlight::Copied);
        self.abandon(work, deferred);
        if self.in_flight.remove(work).is_some() {
            self.finish(deferred);
        }
    }

    /// A request is in the queue.
    #[inline]
    pub(super) fn posted(&mut self, work: WorkId, waiter: InFlight) {
        self.in_flight.add(work, waiter);
        match waiter {
            InFlight::Copied => self.counts.sent += 1,
            InFlight::KeepAlive => self.keep_alive.work = Some(work),
            InFlight::Awaited | InFlight::Abandoned => {}
        }
        if self.counts.received > 0 {
            self.keep_alive.peer_is_awake();
        }
    }

    /// Handles the completion of a request of the send queue, whose memory it takes.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each message")]
    pub(super) fn complete_request(
        &mut self,
        completion: &mut Completion,
        deferred: &mut Deferred,
    ) {
        let result = completion.result();
        let waiter = self.in_flight.remove(completion.work);
        if waiter == Some(InFlight::Copied) && result.is_ok() {
            // Mostly.
            let memory = std::mem::take(&mut completion.sg_list);
            if let Some(buffer) = memory.into_buffer() {
                self.pool.push(buffer);
            }
            return self.finish(deferred);
        }
        self.complete_other(waiter, completion, deferred);
    }

    #[inline(never)]
    fn complete_other(
        &mut self,
        waiter: Option<InFlight>,
        completion: &mut Completion,
        deferred: &mut Deferred,
    ) {
        let (work, result) = (completion.work, completion.result());
        let sg_list = std::mem::take(&mut completion.sg_list);
        match waiter {
            Some(waiter) => self.finish_request(waiter, work, result, sg_list, deferred),
            // siw may complete a request twice.
            None => deferred.discard([sg_list]),
        }
        if let Err(error) = result {
            self.fail_request(error, deferred);
        }
    }

    #[cold]
    fn fail_request(&mut self, error: CompletionError, deferred: &mut Deferred) {
        let failure = Failure::from_completion(error, self.transport);
        self.fail(failure, deferred);
    }

    fn finish_request(
        &mut self,
        waiter: InFlight,
        work: WorkId,
        result: Result<CompletionInfo, CompletionError>,
        sg_list: SgList,
        deferred: &mut Deferred,
    ) {
        self.has_request_failed |= result.is_err() && !matches!(waiter, InFlight::KeepAlive);
        match waiter {
            InFlight::Copied => {
                self.pool.extend(sg_list.into_buffer());
            }
            InFlight::Awaited => {
                self.completed.push_back((work, (result, sg_list)));
                deferred.wake(self.waiters.first(Interest::Completion(work)));
            }
            InFlight::Abandoned => deferred.discard([sg_list]),
            InFlight::KeepAlive => {
                self.keep_alive.completed(work);
                deferred.discard([sg_list]);
            }
        }
        self.finish(deferred);
    }

    /// A request has completed or was refused, and has left `in_flight` or `reserved`.
    #[inline]
    fn finish(&self, deferred: &mut Deferred) {
        if self.waiters.wait_for_requests() {
            self.wake_for_requests(deferred);
        }
    }

    fn wake_for_requests(&self, deferred: &mut Deferred) {
        deferred.wake(self.waiters.first(Interest::SendReady));
        for waker in self.waiters.flushed(|last| self.is_flushed(last)) {
            deferred.wake(Some(waker));
        }
    }

    /// The message of a receive request that has completed.
    ///
    /// # Errors
    /// Why it has failed, which is to be [handled](Self::fail_receive).
    #[inline]
    pub(super) fn receive(
        &mut self,
        completion: &mut Completion,
    ) -> Result<Arrival, CompletionError> {
        let done = completion.result()?;
        self.counts.received += 1;
        Ok(Arrival {
            buffer: std::mem::take(&mut completion.sg_list).into_buffer(),
            // The bytes of a write are in the memory that it names.
            length: match done.opcode {
                WcOpcode::RECV_RDMA_WITH_IMM => 0,
                _ => done.bytes as usize,
            },
            immediate: done.immediate,
            source: done.source,
        })
    }

    /// Handles the completion of a receive request. Drops the memory of one that has failed.
    #[inline]
    pub(super) fn complete_receive(
        &mut self,
        completion: &mut Completion,
        deferred: &mut Deferred,
    ) {
        match self.receive(completion) {
            Ok(arrival) => {
                self.arrived.push_back(arrival);
                deferred.wake(self.waiters.first(Interest::ReceiveReady));
            }
            Err(error) => {
                deferred.discard([std::mem::take(&mut completion.sg_list)]);
                self.fail_receive(error, deferred);
            }
        }
    }

    /// A receive request has failed.
    #[cold]
    pub(super) fn fail_receive(&mut self, error: CompletionError, deferred: &mut Deferred) {
        self.has_receive_failed = true;
        self.fail_request(error, deferred);
    }

    /// Whether no message arrives any more, because a receive request has failed. The memory of
    /// those that are left is freed with the queue pair, which takes less than polling for each.
    pub(super) fn has_receive_failed(&self) -> bool {
        self.has_receive_failed
    }

    /// The result of a request that a caller waits for.
    pub(super) fn take_completed(&mut self, work: WorkId) -> Option<Completed> {
        // Mostly the first one.
        let index = self.completed.iter().position(|(of, _)| *of == work)?;
        self.completed.remove(index).map(|(_, completed)| completed)
    }

    /// The memory of a request that a caller waits for, if it has succeeded.
    pub(super) fn take_success(&mut self, work: WorkId) -> Option<SgList> {
        let succeeded = |(of, (result, _)): &(WorkId, Completed)| *of == work && result.is_ok();
        // Mostly the first one.
        let index = self.completed.iter().position(succeeded)?;
        self.completed
            .remove(index)
            .map(|(_, (_, sg_list))| sg_list)
    }

    /// No one waits for a request any more: its memory is freed when it completes.
    pub(super) fn abandon(&mut self, work: WorkId, deferred: &mut Deferred) {
        self.in_flight.abandon(work);
        if let Some((_, sg_list)) = self.take_completed(work) {
            deferred.discard([sg_list]);
        }
    }

    pub(super) fn is_in_flight(&self, work: WorkId) -> bool {
        self.in_flight.contains(work)
    }

    /// Nothing more can be transferred.
    pub(super) fn fail(&mut self, failure: Failure, deferred: &mut Deferred) {
        if self.failure.record(failure) {
            self.wake_all(deferred);
        }
    }

    #[inline]
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.get()
    }

    /// Whether siw may complete a request twice: it has done so with a read during which
    /// the connection was closed.
    pub(super) fn may_complete_twice(&self) -> bool {
        self.transport == Transport::IWarp && self.failure().is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn reserved_requests_count_as_in_flight() {
        let now = Instant::now();
        let keep_alive = KeepAlive::new(None, now);
        let mut state = State::new(Vec::new(), 1, 1, Transport::InfiniBand, keep_alive);
        assert!(state.is_idle() && state.reserve());
        assert!(!state.is_idle() && !state.reserve());
        state.end_reservation();
        assert!(state.is_idle() && state.has_room());
    }
}
