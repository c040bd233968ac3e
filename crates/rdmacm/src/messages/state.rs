//! The requests of a queue pair that carries messages, and what has arrived.

use std::collections::{HashMap, VecDeque};
use std::task::Waker;
use std::time::Instant;

use rdmacm_core::{Deadline, Transport};
use rdmacm_verbs::{
    Buffer, Completion, CompletionError, DatagramSource, Done, SgList, WcOpcode, WorkId, WorkKind,
};

use super::failure::Failure;
use super::keep_alive::KeepAlive;
use super::waiters::{Interest, Waiters};

/// The result of a request, and its memory.
pub(crate) type Completed = (Result<Done, CompletionError>, SgList);

/// A message that has arrived.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) buffer: Option<Buffer>,
    pub(crate) length: usize,
    pub(crate) immediate: Option<u32>,
    /// Of a datagram.
    pub(crate) source: Option<DatagramSource>,
}

/// A request that the device has, by who waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InFlight {
    /// No one. Its memory, if it has any, belongs to the pool.
    Copied,
    /// A caller, for its result and its memory.
    Awaited,
    /// No one any more.
    Abandoned,
}

#[derive(Debug)]
pub(crate) struct State {
    transport: Transport,
    pub(super) max_sends: usize,
    pub(super) arrived: VecDeque<Arrival>,
    /// Buffers for messages that are copied.
    pub(super) pool: Vec<Buffer>,
    in_flight: HashMap<WorkId, InFlight>,
    /// Requests that are being posted.
    reserved: usize,
    /// Requests that have completed, or were refused.
    finished: u64,
    /// Completions of requests that are being posted.
    early: Vec<(WorkId, Completed)>,
    completed: HashMap<WorkId, Completed>,
    pub(super) waiters: Waiters,
    failure: Option<Failure>,
    /// When a caller first learned of the failure.
    failed_at: Option<Instant>,
    /// Whether the failure is what callers receive, whatever comes later.
    is_final: bool,
    /// A message that was sent has failed.
    pub(super) lost_message: bool,
    /// The completion queue notifies of the next completion.
    pub(super) is_armed: bool,
    deadline: Deadline,
    pub(super) keep_alive: KeepAlive,
    /// Messages sent and received so far.
    pub(super) counts: Counts,
}

/// How many messages a connection has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// What is done without the lock: dropping the last waker of a task ends the task, and
/// dropping the last reference to memory is a system call.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    wakers: Vec<Waker>,
    garbage: Vec<SgList>,
}

impl Deferred {
    pub(super) fn run(self) {
        self.wakers.into_iter().for_each(Waker::wake);
        drop(self.garbage);
    }
}

impl State {
    pub(super) fn new(
        pool: Vec<Buffer>,
        max_sends: usize,
        transport: Transport,
        keep_alive: KeepAlive,
    ) -> Self {
        Self {
            transport,
            max_sends,
            arrived: VecDeque::new(),
            pool,
            in_flight: HashMap::new(),
            reserved: 0,
            finished: 0,
            early: Vec::new(),
            completed: HashMap::new(),
            waiters: Waiters::default(),
            failure: None,
            failed_at: None,
            is_final: false,
            lost_message: false,
            is_armed: false,
            deadline: Deadline::Never,
            keep_alive,
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

    fn under_way(&self) -> usize {
        self.in_flight.len() + self.reserved
    }

    /// Whether no request is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way() == 0
    }

    /// How many requests there were so far, those under way included.
    pub(crate) fn started(&self) -> u64 {
        self.finished + self.under_way() as u64
    }

    /// Whether at least this many requests have finished. Requests complete in the order in
    /// which they were posted, so all that were posted when `requests` had
    /// [started](Self::started) are among them.
    pub(crate) fn is_flushed(&self, requests: u64) -> bool {
        self.finished >= requests
    }

    pub(super) fn has_room(&self) -> bool {
        self.under_way() < self.max_sends
    }

    /// Reserves room for a request that is posted next, without the lock.
    pub(super) fn reserve(&mut self) -> bool {
        let has_room = self.has_room();
        self.reserved += usize::from(has_room);
        has_room
    }

    /// A reserved request was posted, or refused.
    pub(super) fn posted(
        &mut self,
        work: Option<WorkId>,
        waiter: InFlight,
        deferred: &mut Deferred,
    ) {
        self.reserved -= 1;
        let Some(work) = work else {
            self.finish(deferred);
            return self.drop_early(deferred);
        };
        self.in_flight.insert(work, waiter);
        self.counts.sent += u64::from(waiter == InFlight::Copied);
        let early = self.early.iter().position(|(early, _)| *early == work);
        if let Some(index) = early {
            let (_, (result, sg_list)) = self.early.swap_remove(index);
            self.complete_request(work, result, sg_list, deferred);
        }
        self.drop_early(deferred);
    }

    /// What is left belongs to no request: siw may complete one twice.
    fn drop_early(&mut self, deferred: &mut Deferred) {
        if self.reserved == 0 {
            let early = self.early.drain(..);
            deferred
                .garbage
                .extend(early.map(|(_, (_, sg_list))| sg_list));
        }
    }

    /// Handles a completion.
    pub(super) fn complete(&mut self, completion: Completion, deferred: &mut Deferred) {
        let Completion {
            work,
            result,
            sg_list,
            ..
        } = completion;
        if is_receive(&result) {
            self.complete_receive(&result, sg_list, deferred);
        } else if self.in_flight.contains_key(&work) {
            self.complete_request(work, result, sg_list, deferred);
        } else if self.reserved > 0 {
            self.early.push((work, (result, sg_list)));
        } else {
            // siw may complete a request twice.
            deferred.garbage.push(sg_list);
        }
        if let Err(error) = result {
            let failure = Failure::from_completion(error, self.transport);
            self.fail(failure, deferred);
        }
    }

    fn complete_request(
        &mut self,
        work: WorkId,
        result: Result<Done, CompletionError>,
        sg_list: SgList,
        deferred: &mut Deferred,
    ) {
        let Some(waiter) = self.in_flight.remove(&work) else {
            return deferred.garbage.push(sg_list);
        };
        match waiter {
            InFlight::Copied => {
                self.lost_message |= result.is_err();
                self.pool.extend(sg_list.into_buffer());
            }
            InFlight::Awaited => {
                self.completed.insert(work, (result, sg_list));
                let waiter = self.waiters.first(Interest::Completion(work));
                deferred.wakers.extend(waiter);
            }
            InFlight::Abandoned => deferred.garbage.push(sg_list),
        }
        self.finish(deferred);
    }

    /// A request has finished, and has left `in_flight` or `reserved`.
    fn finish(&mut self, deferred: &mut Deferred) {
        self.finished += 1;
        deferred.wakers.extend(self.waiters.first(Interest::Room));
        deferred.wakers.extend(self.waiters.flushed(self.finished));
    }

    fn complete_receive(
        &mut self,
        result: &Result<Done, CompletionError>,
        sg_list: SgList,
        deferred: &mut Deferred,
    ) {
        let length = match result {
            // The bytes of a write are in the memory that it names.
            Ok(done) if done.opcode == WcOpcode::RECV_RDMA_WITH_IMM => 0,
            Ok(done) => done.bytes as usize,
            Err(_) => return deferred.garbage.push(sg_list),
        };
        self.arrived.push_back(Arrival {
            buffer: sg_list.into_buffer(),
            length,
            immediate: result.ok().and_then(|done| done.immediate),
            source: result.ok().map(|done| done.source),
        });
        self.counts.received += 1;
        deferred
            .wakers
            .extend(self.waiters.first(Interest::Arrival));
    }

    /// The result of a request that a caller waits for.
    pub(super) fn take_completed(&mut self, work: WorkId) -> Option<Completed> {
        self.completed.remove(&work)
    }

    /// No one waits for a request any more: its memory is freed when it completes.
    pub(super) fn abandon(&mut self, work: WorkId, deferred: &mut Deferred) {
        if let Some(waiter) = self.in_flight.get_mut(&work) {
            *waiter = InFlight::Abandoned;
        }
        let completed = self.completed.remove(&work);
        deferred
            .garbage
            .extend(completed.map(|(_, sg_list)| sg_list));
    }

    pub(super) fn is_in_flight(&self, work: WorkId) -> bool {
        self.in_flight.contains_key(&work)
    }

    /// Nothing more can be transferred. The first reason is kept; consequences are replaced
    /// by a reason.
    pub(super) fn fail(&mut self, failure: Failure, deferred: &mut Deferred) {
        let known = self.failure.as_ref();
        if known.is_some_and(|known| known.is_reason() || !failure.is_reason()) {
            return;
        }
        self.failure = Some(failure);
        self.failed_at = None;
        self.is_final = false;
        deferred.wakers.extend(self.waiters.all());
    }

    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Whether siw may complete a request twice: it has done so with a read during which
    /// the connection was closed.
    pub(super) fn may_complete_twice(&self) -> bool {
        self.transport == Transport::IWarp && self.failure.is_some()
    }

    /// The failure, and whether it is final: it is not a consequence of the peer's
    /// disconnecting, or the event that says so has not come in time.
    pub(super) fn check_failure(
        &mut self,
        now: impl FnOnce() -> Instant,
        is_closed: bool,
    ) -> Option<(Failure, bool)> {
        let failure = self.failure.clone()?;
        let wait = failure.disconnect_wait();
        let now = now();
        let since = *self.failed_at.get_or_insert(now);
        let has_waited = now.saturating_duration_since(since) >= wait;
        self.is_final |= wait.is_zero() || (has_waited && !is_closed);
        Some((failure, self.is_final))
    }

    /// How long to wait for the event that the peer has disconnected, if that is awaited.
    pub(super) fn disconnect_wait(&self, now: Instant) -> Option<Instant> {
        let wait = self.failure.as_ref()?.disconnect_wait();
        let until = self.failed_at?.checked_add(wait)?;
        (!self.is_final && until > now).then_some(until)
    }
}

fn is_receive(result: &Result<Done, CompletionError>) -> bool {
    match result {
        Ok(done) => matches!(done.opcode, WcOpcode::RECV | WcOpcode::RECV_RDMA_WITH_IMM),
        Err(error) => error.kind == WorkKind::Receive,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn gone() -> rdmacm_verbs::Error {
        let device = String::from("rxe0");
        rdmacm_verbs::Error::Gone { device }
    }

    fn state(failure: Failure, now: Instant) -> State {
        let keep_alive = KeepAlive::new(None, now);
        let mut state = State::new(Vec::new(), 1, Transport::InfiniBand, keep_alive);
        state.fail(failure, &mut Deferred::default());
        state
    }

    fn is_final(state: &mut State, now: Instant, is_closed: bool) -> bool {
        let failure = state.check_failure(|| now, is_closed);
        failure.is_some_and(|(_, is_final)| is_final)
    }

    #[test]
    fn a_failure_waits_for_a_disconnect_and_is_final_then() {
        let now = Instant::now();
        for (failure, wait) in [
            (Failure::Flushed, SECOND * 2),
            (Failure::Refused(gone()), SECOND),
        ] {
            let mut state = state(failure, now);
            // The wait begins when a caller learns of the failure.
            assert_eq!(state.disconnect_wait(now), None);
            assert!(!is_final(&mut state, now, false));
            assert_eq!(state.disconnect_wait(now), Some(now + wait));
            assert!(!is_final(&mut state, now + wait / 2, false));
            assert!(is_final(&mut state, now + wait, false));
            assert_eq!(state.disconnect_wait(now), None);
            // All callers receive the same.
            assert!(is_final(&mut state, now + wait, true));
        }
    }

    #[test]
    fn a_disconnect_in_time_outranks_a_failure() {
        let now = Instant::now();
        let mut state = state(Failure::Refused(gone()), now);
        assert!(!is_final(&mut state, now, false));
        assert!(!is_final(&mut state, now + SECOND / 2, true));
        assert!(!is_final(&mut state, now + SECOND * 2, true));
    }

    #[test]
    fn a_reason_replaces_a_consequence() {
        let now = Instant::now();
        let mut state = state(Failure::Flushed, now);
        assert!(!is_final(&mut state, now, false));
        state.fail(Failure::Device(gone()), &mut Deferred::default());
        assert!(is_final(&mut state, now, true));
        assert_eq!(state.disconnect_wait(now), None);
        state.fail(Failure::Flushed, &mut Deferred::default());
        assert!(matches!(state.failure(), Some(Failure::Device(_))));
    }

    #[test]
    fn reserved_requests_count_as_under_way() {
        let now = Instant::now();
        let keep_alive = KeepAlive::new(None, now);
        let mut state = State::new(Vec::new(), 1, Transport::InfiniBand, keep_alive);
        assert!(state.is_idle() && state.reserve());
        assert!(!state.is_idle() && !state.reserve());
        state.posted(None, InFlight::Copied, &mut Deferred::default());
        assert!(state.is_idle() && state.has_room());
    }

    #[test]
    fn later_requests_do_not_delay_a_flush() {
        let now = Instant::now();
        let keep_alive = KeepAlive::new(None, now);
        let mut state = State::new(Vec::new(), 2, Transport::InfiniBand, keep_alive);
        assert!(state.reserve());
        let flush = state.started();
        assert!(state.reserve() && !state.is_flushed(flush));
        state.posted(None, InFlight::Copied, &mut Deferred::default());
        assert!(!state.is_idle() && state.is_flushed(flush));
        assert!(!state.is_flushed(state.started()));
    }
}
