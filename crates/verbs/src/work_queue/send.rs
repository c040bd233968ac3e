//! The posting half of a send queue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdmacm_abi::uverbs::QueryQp;
use rdmacm_core::QpType;
use rtrb::{Producer, RingBuffer};

use super::entries::{Entries, MAX_SGES};
use super::receive::COMPLETION_QUEUE_FULL;
use super::send_completions::{Posted, SendCompletions};
use super::{QpStatus, WorkQueue};
use crate::completion::{WorkId, WorkIds};
use crate::completion_queue::CompletionQueue;
use crate::error::{Error, PostError, Result};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::provider::{SendRing, SendSlot, SlotPayload};
use crate::queue_pair::from_query;
use crate::request::{Destination, Payload, SendRequest};
use crate::request_id::{QueueIndex, RequestId};

mod check;

pub(super) use check::MAX_MESSAGE;
use check::Rules;

/// The posting half of a send queue.
#[derive(Debug)]
pub(crate) struct SendQueue {
    parts: SendParts,
    rules: Rules,
    capacity: usize,
    /// Whether only its own completion shows that a request is complete.
    individually: bool,
    /// Whether the device has accepted a doorbell of this queue, which it does once the queue
    /// pair is ready to send.
    ready: AtomicBool,
    /// Whether the connection is known to allow reads and atomics.
    reads: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct SendParts {
    pub(crate) token: u32,
    /// Its index in the completion queue.
    pub(crate) index: QueueIndex,
    /// The kernel's handle of the queue pair.
    pub(crate) handle: u32,
    /// The queue pair's number.
    pub(crate) number: u32,
    pub(crate) qp_type: QpType,
    pub(crate) signal_all: bool,
    pub(crate) max_requests: u32,
    pub(crate) max_sges: u32,
    pub(crate) max_inline: u32,
    pub(crate) domain: ProtectionDomain,
    pub(crate) completions: CompletionQueue,
    pub(crate) qp_status: Arc<QpStatus>,
}

#[derive(Debug)]
struct State {
    ring: Box<dyn SendRing>,
    posted: Producer<Posted>,
    /// The number of the next request.
    next: u32,
    /// How many requests were posted after the last signalled one.
    unsignaled: usize,
}

impl SendQueue {
    /// Both halves.
    pub(crate) fn new(parts: SendParts, ring: Box<dyn SendRing>) -> (Self, Box<dyn WorkQueue>) {
        let capacity = parts.max_requests.min(ring.capacity()) as usize;
        let provider = parts.domain.context().uverbs().provider();
        let individually = provider.completes_individually();
        let (producer, consumer) = RingBuffer::new(capacity);
        let completions = SendCompletions::new(
            parts.token,
            parts.number,
            individually,
            Arc::clone(&parts.qp_status),
            consumer,
        );
        let parts = SendParts {
            max_sges: parts.max_sges.min(ring.max_sges()).min(MAX_SGES),
            max_inline: parts.max_inline.min(ring.max_inline()),
            ..parts
        };
        let queue = Self {
            rules: Rules::of(&parts),
            parts,
            capacity,
            individually,
            ready: AtomicBool::new(false),
            reads: AtomicBool::new(false),
            state: Mutex::new(State {
                ring,
                posted: producer,
                next: 0,
                unsignaled: capacity,
            }),
        };
        (queue, Box::new(completions))
    }

    pub(crate) fn index(&self) -> QueueIndex {
        self.parts.index
    }

    /// Posts one request.
    #[expect(
        clippy::result_large_err,
        reason = "a refused request is moved back, as it was passed"
    )]
    pub(crate) fn post<'a>(
        &self,
        request: SendRequest<'a>,
    ) -> Result<WorkId, PostError<Option<SendRequest<'a>>>> {
        if let Err(error) = self.check(&request) {
            return Err(PostError::new(error, Some(request)));
        }
        let is_signaled = self.is_signaled(&request);
        let mut state = self.state();
        if let Err(reason) = self.reserve_one(&mut state, is_signaled) {
            drop(state);
            return Err(PostError::new(invalid(reason), Some(request)));
        }
        let number = state.next;
        self.push(&mut state, request);
        drop(state);
        match self.ring_doorbell() {
            Ok(()) => Ok(self.work(number)),
            Err(error) => Err(PostError::new(self.broken(error), None)),
        }
    }

    /// Posts several requests with one doorbell; all or none.
    pub(crate) fn post_all(&self, requests: &mut Vec<SendRequest<'_>>) -> Result<WorkIds> {
        for request in &*requests {
            self.check(request)?;
        }
        let is_any_signaled = requests.iter().any(|one| self.is_signaled(one));
        let mut state = self.state();
        self.reserve(&state, requests.len(), is_any_signaled)
            .map_err(invalid)?;
        let first = state.next;
        for request in requests.drain(..) {
            self.push(&mut state, request);
        }
        let next = state.next;
        drop(state);
        match self.ring_doorbell() {
            Ok(()) => Ok(WorkIds::new(self.parts.token, first, next)),
            Err(error) => Err(self.broken(error)),
        }
    }

    /// The device refused the doorbell of requests that are in the queue: it would not
    /// process later ones either.
    #[cold]
    fn broken(&self, error: Error) -> Error {
        self.parts.qp_status.set_broken();
        error
    }

    /// Does the checks that need no lock.
    #[inline]
    fn check(&self, request: &SendRequest<'_>) -> Result<()> {
        if let Err(reason) = self.rules.check(&self.parts, request) {
            return Err(invalid(reason));
        }
        let uverbs = self.parts.domain.context().uverbs();
        if uverbs.is_in_child() {
            return Err(uverbs.gone());
        }
        if !self.ready.load(Ordering::Acquire) {
            self.first_doorbell()?;
        }
        if request.operation.fetches() && !self.reads.load(Ordering::Acquire) {
            self.check_reads()?;
        }
        Ok(())
    }

    /// Rings the doorbell before there are requests, so that the caller gets the first ones back
    /// if the device refuses it.
    #[cold]
    fn first_doorbell(&self) -> Result<()> {
        if self.parts.qp_status.is_broken() {
            return Err(invalid(BROKEN));
        }
        self.ring_doorbell()?;
        self.ready.store(true, Ordering::Release);
        Ok(())
    }

    /// Checks that the connection allows reads. Otherwise siw's queue would stop at a read, and
    /// rxe's would wait forever.
    #[cold]
    fn check_reads(&self) -> Result<()> {
        let uverbs = self.parts.domain.context().uverbs();
        let provider = uverbs.provider();
        let queryable = provider.queryable_attributes();
        let request = QueryQp::new(self.parts.handle, queryable);
        let answer = uverbs.ask(Operation::Send, &request)?;
        if provider.initiator_depth(&from_query(queryable, answer)) == 0 {
            return Err(invalid("the connection allows no reads and atomics"));
        }
        self.reads.store(true, Ordering::Release);
        Ok(())
    }

    /// As [`reserve`](Self::reserve), for one request.
    #[inline]
    fn reserve_one(&self, state: &mut State, is_signaled: bool) -> Result<(), &'static str> {
        if !is_signaled || state.posted.is_full() {
            return self.reserve(state, 1, is_signaled);
        }
        if self.parts.qp_status.is_broken() {
            return Err(BROKEN);
        }
        if !state.ring.has_room(1) {
            return Err(QUEUE_FULL);
        }
        if self.parts.completions.reserve(1, 0) {
            Ok(())
        } else {
            Err(COMPLETION_QUEUE_FULL)
        }
    }

    /// Does the checks that need the lock, and reserves completion queue entries.
    fn reserve(
        &self,
        state: &State,
        requests: usize,
        is_signaled: bool,
    ) -> Result<(), &'static str> {
        // Checked under the lock, so that no request is added after a flush.
        if self.parts.qp_status.is_broken() {
            return Err(BROKEN);
        }
        let free = state.posted.slots();
        if requests > free || !state.ring.has_room(requests) {
            return Err(QUEUE_FULL);
        }
        let will_report = is_signaled || state.unsignaled < self.capacity - free;
        if requests == free && !will_report {
            return Err("the send queue would be full of requests without a completion");
        }
        // One entry stays free for a signalled request, which completes the others.
        let count = u32::try_from(requests).unwrap_or(u32::MAX);
        if self
            .parts
            .completions
            .reserve(count, u32::from(!will_report))
        {
            Ok(())
        } else {
            Err(COMPLETION_QUEUE_FULL)
        }
    }

    fn is_signaled(&self, request: &SendRequest<'_>) -> bool {
        request.signaled || self.parts.signal_all
    }

    fn work(&self, number: u32) -> WorkId {
        let queue = self.parts.token;
        WorkId { queue, number }
    }

    /// Adds a request.
    fn push(&self, state: &mut State, request: SendRequest<'_>) {
        let id = RequestId {
            queue: self.parts.index,
            number: state.next,
        };
        let signaled = self.is_signaled(&request);
        let mut entries = Entries::new();
        let slot = SendSlot {
            number: id.to_device(),
            operation: &request.operation,
            signaled: signaled || self.individually,
            solicited: request.solicited,
            fence: request.fence,
            payload: match &request.payload {
                Payload::SgList(sg_list) => SlotPayload::SgList(entries.of(sg_list)),
                Payload::Inline(bytes) => SlotPayload::Inline(bytes),
            },
            destination: request.destination.as_ref().map(Destination::for_device),
        };
        let posted = Posted {
            opcode: request.operation.opcode(),
            signaled,
            sg_list: request.payload.into_sg_list(),
            _address: request.destination.map(|destination| destination.address),
        };
        // First: the device may complete the request as soon as it is in its queue. There is
        // space, as `reserve` has checked.
        if state.posted.push(posted).is_ok() {
            state.ring.push(&slot);
        }
        state.next = state.next.wrapping_add(1);
        state.unsignaled = if signaled { 0 } else { state.unsignaled + 1 };
    }

    /// Makes the device process the requests.
    fn ring_doorbell(&self) -> Result<()> {
        let uverbs = self.parts.domain.context().uverbs();
        uverbs.ring_doorbell(self.parts.handle)
    }

    /// After a reset.
    pub(crate) fn reset(&self) {
        self.ready.store(false, Ordering::Release);
        self.reads.store(false, Ordering::Release);
    }

    /// Waits until all callers that post have added their requests, or will find the queue pair
    /// in the error state.
    pub(crate) fn wait_for_posters(&self) {
        drop(self.state());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cold]
fn invalid(reason: &'static str) -> Error {
    Error::invalid(Operation::Send, reason)
}

const BROKEN: &str = "the queue pair is in the error state";
const QUEUE_FULL: &str = "the send queue is full: poll completions first";
