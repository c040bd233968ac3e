//! Send queues.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdmacm_abi::uverbs::{QueryQp, Sge as AbiSge, WcStatus, WorkCompletion};
use rdmacm_core::QpType;

use super::receive::COMPLETION_QUEUE_FULL;
use super::send_slots::{Outcome, Posted, SendSlots};
use super::{QpStatus, Reported, WorkQueue, flushed, gone, take_discarded, take_flushed};
use crate::completion::{Completion, WorkId, WorkIds, WorkKind};
use crate::completion_queue::CompletionQueue;
use crate::error::{Error, PostError, Result};
use crate::memory::{SgList, Sge};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::provider::{SendRing, SendSlot, SlotPayload, UdDestination};
use crate::queue_pair::from_query;
use crate::request::{Payload, SendRequest};
use crate::request_id::{QueueIndex, RequestId};

mod check;

pub(super) use check::MAX_MESSAGE;

/// A send queue and its posted requests.
#[derive(Debug)]
pub(crate) struct SendQueue {
    parts: SendParts,
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
    slots: SendSlots,
    /// The requests that a reset has discarded. The device may still use their memory.
    discarded: Vec<(u32, Posted)>,
    /// The requests that were completed as flushed. The device may still complete them.
    flushed: Vec<u32>,
}

impl SendQueue {
    pub(crate) fn new(parts: SendParts, ring: Box<dyn SendRing>) -> Self {
        let capacity = parts.max_requests.min(ring.capacity()) as usize;
        let provider = parts.domain.context().uverbs().provider();
        let individually = provider.completes_individually();
        Self {
            capacity,
            individually,
            parts: SendParts {
                max_sges: parts.max_sges.min(ring.max_sges()),
                max_inline: parts.max_inline.min(ring.max_inline()),
                ..parts
            },
            ready: AtomicBool::new(false),
            reads: AtomicBool::new(false),
            state: Mutex::new(State {
                ring,
                slots: SendSlots::new(capacity, individually),
                discarded: Vec::new(),
                flushed: Vec::new(),
            }),
        }
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
        let one = std::slice::from_ref(&request);
        if let Err(error) = self.check(one) {
            return Err(PostError::new(error, Some(request)));
        }
        let mut state = self.state();
        if let Err(reason) = self.reserve(&state, one) {
            return Err(PostError::new(invalid(reason), Some(request)));
        }
        let number = self.push(&mut state, request);
        drop(state);
        match self.ring_doorbell() {
            Ok(()) => Ok(self.work(number)),
            Err(error) => Err(PostError::new(self.broken(error), None)),
        }
    }

    /// Posts several requests with one doorbell; all or none.
    pub(crate) fn post_all(&self, requests: &mut Vec<SendRequest<'_>>) -> Result<WorkIds> {
        self.check(requests)?;
        let mut state = self.state();
        self.reserve(&state, requests).map_err(invalid)?;
        let first = state.slots.next();
        for request in requests.drain(..) {
            self.push(&mut state, request);
        }
        let next = state.slots.next();
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
    fn check(&self, requests: &[SendRequest<'_>]) -> Result<()> {
        let uverbs = self.parts.domain.context().uverbs();
        if uverbs.is_in_child() {
            return Err(uverbs.gone());
        }
        for request in requests {
            check::check(&self.parts, request).map_err(invalid)?;
        }
        if !self.ready.load(Ordering::Acquire) {
            // The requests are not in the queue yet, so the caller gets them back if the
            // device refuses the doorbell.
            self.ring_doorbell()?;
            self.ready.store(true, Ordering::Release);
        }
        if requests.iter().any(|request| request.operation.fetches()) {
            self.check_reads()?;
        }
        Ok(())
    }

    /// Checks that the connection allows reads. Otherwise siw's queue would stop at a read, and
    /// rxe's would wait forever.
    fn check_reads(&self) -> Result<()> {
        if self.reads.load(Ordering::Acquire) {
            return Ok(());
        }
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

    /// Does the checks that need the lock, and reserves completion queue entries.
    fn reserve(&self, state: &State, requests: &[SendRequest<'_>]) -> Result<(), &'static str> {
        // Checked under the lock, so that no request is added after a flush.
        if self.parts.qp_status.is_broken() {
            return Err(BROKEN);
        }
        let filled = state.slots.len() + requests.len();
        if filled > self.capacity || !state.ring.has_room(requests.len()) {
            return Err(QUEUE_FULL);
        }
        let will_report =
            state.slots.has_signaled() || requests.iter().any(|one| self.is_signaled(one));
        if filled == self.capacity && !will_report {
            return Err("the send queue would be full of requests without a completion");
        }
        // One entry stays free for a signalled request, which completes the others.
        let count = u32::try_from(requests.len()).unwrap_or(u32::MAX);
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

    /// Adds a request, and returns its number.
    fn push(&self, state: &mut State, request: SendRequest<'_>) -> u32 {
        let number = state.slots.next();
        let id = RequestId {
            queue: self.parts.index,
            number,
        };
        let one: [AbiSge; 1];
        let many: Vec<AbiSge>;
        let payload = match &request.payload {
            Payload::Inline(bytes) => SlotPayload::Inline(bytes),
            Payload::SgList(sg_list) => SlotPayload::SgList(if let [sge] = &**sg_list {
                one = [sge.sge()];
                &one
            } else {
                // siw fails on empty entries (`siw_tx_hdt`).
                let sg_list = sg_list.iter().filter(|sge| !sge.is_empty());
                many = sg_list.map(Sge::sge).collect();
                &many
            }),
        };
        let signaled = self.is_signaled(&request);
        let slot = SendSlot {
            number: id.to_device(),
            operation: request.operation,
            signaled: signaled || self.individually,
            solicited: request.solicited,
            fence: request.fence,
            payload,
            destination: request
                .destination
                .as_ref()
                .map(|destination| UdDestination {
                    address_handle: destination.address.driver_number(),
                    queue_pair: destination.queue_pair,
                    queue_key: destination.queue_key,
                }),
        };
        state.ring.push(&slot);
        state.slots.push(Posted {
            opcode: request.operation.opcode(),
            signaled,
            _address: request
                .destination
                .as_ref()
                .map(|destination| destination.address.clone()),
            sg_list: request.into_sg_list(),
        });
        number
    }

    /// Makes the device process the requests.
    fn ring_doorbell(&self) -> Result<()> {
        let uverbs = self.parts.domain.context().uverbs();
        uverbs.ring_doorbell(self.parts.handle)
    }

    /// Discards the requests, as the device does. Keeps their memory.
    pub(crate) fn reset(&self) {
        let mut state = self.state();
        let taken = self.take_posted(&mut state);
        state.discarded.extend(taken);
        self.ready.store(false, Ordering::Release);
        self.reads.store(false, Ordering::Release);
    }

    /// The memory of all requests, after the kernel has destroyed the queue pair.
    pub(crate) fn take_all(&self) -> Vec<(WorkId, SgList)> {
        let mut state = self.state();
        let flushed = std::mem::take(&mut state.flushed);
        self.release(flushed.len());
        let mut all = std::mem::take(&mut state.discarded);
        all.extend(self.take_posted(&mut state));
        let all = all.into_iter();
        all.map(|(number, posted)| (self.work(number), posted.sg_list))
            .collect()
    }

    fn take_posted(&self, state: &mut State) -> Vec<(u32, Posted)> {
        let taken = state.slots.take_all();
        let released = taken.iter().filter(|(_, _, outcome)| !outcome.keeps_entry);
        self.release(released.count());
        let taken = taken.into_iter();
        taken.map(|(number, posted, _)| (number, posted)).collect()
    }

    /// Releases the completion queue entries of requests.
    fn release(&self, requests: usize) {
        // No more than the capacity of the queue.
        let requests = u32::try_from(requests).unwrap_or(u32::MAX);
        self.parts.completions.release(requests);
    }

    /// Takes note of a completion. Returns `false` if no request has this number.
    fn record_in(&self, state: &mut State, number: u32, wc: &WorkCompletion) -> bool {
        if !state.slots.complete(number, Outcome::of(wc)) {
            return self.record_late(state, number);
        }
        if wc.status != WcStatus::SUCCESS {
            self.parts.qp_status.set_broken();
        }
        true
    }

    /// A completion of a request that was flushed or discarded.
    #[cold]
    fn record_late(&self, state: &mut State, number: u32) -> bool {
        if take_flushed(&mut state.flushed, number) {
            self.release(1);
            return true;
        }
        take_discarded(&mut state.discarded, number).is_some()
    }

    fn report_in(&self, state: &mut State, report: &mut Option<Completion>) -> Reported {
        let Some((number, posted, outcome)) = state.slots.report() else {
            return Reported::All;
        };
        if !outcome.keeps_entry {
            self.parts.completions.release(1);
        }
        let work = self.work(number);
        *report = Some(Completion {
            work,
            queue_pair: self.parts.number,
            result: outcome.result(WorkKind::Send(posted.opcode), work, self.parts.number),
            sg_list: posted.sg_list,
        });
        if state.slots.has_report() {
            Reported::More
        } else {
            Reported::All
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn invalid(reason: &'static str) -> Error {
    Error::invalid(Operation::Send, reason)
}

const BROKEN: &str = "the queue pair is in the error state";
const QUEUE_FULL: &str = "the send queue is full: poll completions first";

impl WorkQueue for SendQueue {
    fn complete(
        &self,
        number: u32,
        wc: &WorkCompletion,
        report: &mut Option<Completion>,
    ) -> Reported {
        let mut state = self.state();
        if self.record_in(&mut state, number, wc) {
            self.report_in(&mut state, report)
        } else {
            Reported::NoRequest
        }
    }

    fn record(&self, number: u32, wc: &WorkCompletion) -> bool {
        self.record_in(&mut self.state(), number, wc)
    }

    fn report(&self, report: &mut Option<Completion>) -> Reported {
        self.report_in(&mut self.state(), report)
    }

    fn flush(&self) {
        let outcome = Outcome {
            keeps_entry: true,
            ..Outcome::of(&flushed(self.parts.number))
        };
        let mut state = self.state();
        let numbers = state.slots.complete_rest(outcome);
        state.flushed.extend(numbers);
    }

    fn fail_all(&self) {
        self.parts.qp_status.set_broken();
        let outcome = Outcome::of(&gone(self.parts.number));
        self.state().slots.complete_rest(outcome);
    }
}
