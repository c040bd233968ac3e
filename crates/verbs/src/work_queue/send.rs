//! The posting half of a send queue.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rdmacm_abi::uverbs::{QueryQp, SendFlags, WrOpcode};
use rdmacm_core::QpType;

use super::entries::{Entries, MAX_SGES};
use super::posted_ring::{Producer, posted_ring};
use super::receive::COMPLETION_QUEUE_FULL;
use super::send_completions::{PostedSend, SendCompletions};
use super::{AnyWorkQueue, QpStatus};
use crate::completion::{WorkId, WorkIds};
use crate::completion_queue::CompletionQueue;
use crate::error::{Error, PostError, Result};
use crate::fork_detector::ForkDetector;
use crate::memory::SgList;
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::provider::{SendRing, SendRings, SendSlot, SlotPayload};
use crate::queue_pair::from_query;
use crate::request::{Destination, SendRequest};
use crate::request_id::{QueueIndex, RequestId};

mod check;

pub(super) use check::MAX_MESSAGE;
use check::Rules;

/// A refused request, moved back as it was passed; `None` if the queue has it.
pub(crate) type Refused<'a> = Box<PostError<Option<SendRequest<'a>>>>;

/// A request that was not added to the queue, moved back as it was passed.
pub(crate) type NotQueued<'a> = Box<PostError<SendRequest<'a>>>;

/// The number of a posted request, as wide as what else posting returns: a result of both is
/// returned in registers.
pub(super) type Number = u64;

/// The posting half of a send queue.
#[derive(Debug)]
pub(crate) struct SendQueue {
    parts: SendParts,
    rules: Rules,
    fork_detector: ForkDetector,
    capacity: u32,
    /// Whether only its own completion shows that a request is complete.
    individually: bool,
    /// Whether the connection is known to allow reads and atomics.
    reads: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct SendParts {
    pub(crate) queue: u32,
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
    ring: SendRings,
    posted: Producer<PostedSend>,
    /// How many requests were posted after the last signalled one.
    unsignaled: u32,
}

impl SendQueue {
    /// Both halves.
    pub(crate) fn new(parts: SendParts, ring: SendRings) -> (Self, AnyWorkQueue) {
        let capacity = parts.max_requests.min(ring.capacity());
        let provider = parts.domain.context().uverbs().provider();
        let individually = provider.completes_individually();
        let (producer, consumer) = posted_ring(capacity);
        let completions = SendCompletions::new(
            parts.queue,
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
            fork_detector: parts.domain.context().uverbs().fork_detector(),
            parts,
            capacity,
            individually,
            reads: AtomicBool::new(false),
            state: Mutex::new(State {
                ring,
                posted: producer,
                unsignaled: capacity,
            }),
        };
        (queue, AnyWorkQueue::Send(completions))
    }

    pub(crate) fn index(&self) -> QueueIndex {
        self.parts.index
    }

    /// Posts one request.
    #[inline]
    pub(crate) fn post<'a>(&self, request: SendRequest<'a>) -> Result<WorkId, Refused<'a>> {
        let posted = match request.inline {
            Some(bytes) => self.post_inline(request, bytes),
            None => self.post_one(request),
        };
        posted.map(|number| self.work(number))
    }

    /// Adds one request to the queue, and returns its number. The device processes it after the
    /// next doorbell at the latest.
    #[inline]
    pub(crate) fn queue<'a>(&self, request: SendRequest<'a>) -> Result<Number, NotQueued<'a>> {
        match request.inline {
            Some(bytes) => self.queue_inline(request, bytes),
            None => self.queue_one(request),
        }
    }

    /// Adds one request without inline data to the queue, and returns its number.
    #[inline(never)]
    fn queue_one<'a>(&self, request: SendRequest<'a>) -> Result<Number, NotQueued<'a>> {
        self.queue_fast_path(request, Self::queue_after_refresh)
    }

    /// Adds one request with inline data to the queue, and returns its number.
    #[inline(never)]
    fn queue_inline<'a>(
        &self,
        request: SendRequest<'a>,
        bytes: &'a [u8],
    ) -> Result<Number, NotQueued<'a>> {
        self.queue_bytes(request, bytes)
    }

    /// Posts one request without inline data, and returns its number.
    #[inline(never)]
    fn post_one<'a>(&self, request: SendRequest<'a>) -> Result<Number, Refused<'a>> {
        self.posted(self.queue_fast_path(request, Self::queue_after_refresh))
    }

    /// Adds a request if it is a signalled SEND of a part of a buffer and there is known to be
    /// room for it. Adds it by `otherwise` if not. Calls nothing else, so that few registers are
    /// saved.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn queue_fast_path<'a>(
        &self,
        request: SendRequest<'a>,
        otherwise: impl FnOnce(
            &Self,
            Option<MutexGuard<'_, State>>,
            SendRequest<'a>,
        ) -> Result<Number, NotQueued<'a>>,
    ) -> Result<Number, NotQueued<'a>> {
        if !self.rules.is_fast_path(&request) || !self.fork_detector.is_same_process() {
            return otherwise(self, None, request);
        }
        let Some(mut state) = self.state.try_lock() else {
            return otherwise(self, None, request);
        };
        let State {
            ring,
            posted,
            unsignaled,
        } = &mut *state;
        let (vacancy, sge) = match (posted.known_vacancy(), request.sg_list.as_buffer()) {
            // Checked under the lock, so that no request is added after a flush.
            (Some(vacancy), Some(sge))
                if self.parts.qp_status.is_ready() && self.parts.completions.reserve_one() =>
            {
                (vacancy, sge.sge())
            }
            _ => return otherwise(self, Some(state), request),
        };
        let number = vacancy.number();
        let SendRequest {
            sg_list,
            flags,
            destination,
            ..
        } = request;
        // A plain request has none.
        std::mem::forget(destination);
        let rest = PostedSend::new(WrOpcode::SEND, true, None);
        // First: the device may complete the request as soon as it is in its queue.
        ring.push_send(self.id(number), flags, sge, || vacancy.fill(sg_list, rest));
        *unsignaled = 0;
        Ok(number.into())
    }

    /// Posts one request with inline data, and returns its number.
    #[inline(never)]
    fn post_inline<'a>(
        &self,
        request: SendRequest<'a>,
        bytes: &'a [u8],
    ) -> Result<Number, Refused<'a>> {
        self.posted(self.queue_bytes(request, bytes))
    }

    /// Adds a request with inline data: without further ado if it is signalled and valid.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn queue_bytes<'a>(
        &self,
        request: SendRequest<'a>,
        bytes: &'a [u8],
    ) -> Result<Number, NotQueued<'a>> {
        if !self.rules.is_inline(&self.parts, &request, bytes)
            || !self.fork_detector.is_same_process()
        {
            return self.queue_any(request);
        }
        let Some(mut state) = self.state.try_lock() else {
            return self.queue_any(request);
        };
        let State {
            ring,
            posted,
            unsignaled,
        } = &mut *state;
        let vacancy = match posted.vacancy(|| ring.room(1)) {
            // Checked under the lock, so that no request is added after a flush.
            Some(vacancy)
                if self.parts.qp_status.is_ready() && self.parts.completions.reserve_one() =>
            {
                vacancy
            }
            _ => {
                drop(state);
                return self.queue_any(request);
            }
        };
        let number = vacancy.number();
        let rest = PostedSend::new(request.operation.opcode(), true, None);
        // First: the device may complete the request as soon as it is in its queue.
        vacancy.fill(SgList::NONE, rest);
        ring.push_inline(self.id(number), &request.operation, request.flags, bytes);
        *unsignaled = 0;
        drop(state);
        // It has neither memory nor a destination.
        std::mem::forget(request);
        Ok(number.into())
    }

    /// Adds one request that is not plain, or after it has looked for room.
    #[cold]
    #[inline(never)]
    fn queue_after_refresh<'a>(
        &self,
        state: Option<MutexGuard<'_, State>>,
        request: SendRequest<'a>,
    ) -> Result<Number, NotQueued<'a>> {
        let Some(mut state) = state else {
            return self.queue_any(request);
        };
        let State { ring, posted, .. } = &mut *state;
        posted.has_room(1, || ring.room(1));
        drop(state);
        self.queue_fast_path(request, |this, state, request| {
            drop(state);
            this.queue_any(request)
        })
    }

    /// Adds one request of any kind.
    #[inline(never)]
    fn queue_any<'a>(&self, request: SendRequest<'a>) -> Result<Number, NotQueued<'a>> {
        if let Err(error) = self.check(&request) {
            return Err(Box::new(PostError::new(error, request)));
        }
        let is_signaled = self.is_signaled(&request);
        let mut state = self.state.lock();
        if let Err(reason) = self.reserve(&mut state, 1, is_signaled) {
            drop(state);
            return Err(Box::new(PostError::new(invalid(reason), request)));
        }
        let number = state.posted.next();
        self.push(&mut state, request);
        Ok(number.into())
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "it was widened")]
    pub(crate) fn work(&self, number: Number) -> WorkId {
        WorkId {
            queue: self.parts.queue,
            number: number as u32,
        }
    }

    /// Has the device process a request that was queued.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn posted<'a>(&self, queued: Result<Number, NotQueued<'a>>) -> Result<Number, Refused<'a>> {
        let number = queued.map_err(|refused| not_queued(*refused))?;
        let uverbs = self.parts.domain.context().uverbs();
        // What it returns fits into registers.
        match uverbs.try_doorbell(self.parts.handle) {
            Some(Ok(())) => Ok(number),
            failed => Err(self.refused_post(number, failed)),
        }
    }

    #[cold]
    #[inline(never)]
    fn refused_post<'a>(&self, number: Number, failed: Option<io::Result<()>>) -> Refused<'a> {
        let error = self.refused_doorbell(self.work(number).number, failed);
        Box::new(PostError::new(error, None))
    }

    /// Has the device process the queued request with this number.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    pub(crate) fn ring_doorbell_of(&self, number: u32) -> Result<()> {
        if !self.fork_detector.is_same_process() {
            return Err(self.parts.domain.context().closed_error());
        }
        let uverbs = self.parts.domain.context().uverbs();
        match uverbs.try_doorbell(self.parts.handle) {
            Some(Ok(())) => Ok(()),
            failed => Err(self.refused_doorbell(number, failed)),
        }
    }

    #[cold]
    #[inline(never)]
    fn refused_doorbell(&self, number: u32, failed: Option<io::Result<()>>) -> Error {
        let uverbs = self.parts.domain.context().uverbs();
        let error = uverbs.doorbell_failed(failed);
        self.note_refused_doorbell(number);
        error
    }

    /// Posts several requests with one doorbell; all or none.
    pub(crate) fn post_all(&self, requests: &mut [Option<SendRequest<'_>>]) -> Result<WorkIds> {
        if requests.iter().all(Option::is_none) {
            // Without a doorbell: the device refuses it before the queue pair is connected, which
            // would break the queue pair for later requests.
            return Ok(WorkIds::new(self.parts.queue, 0, 0));
        }
        let (mut count, mut is_any_signaled) = (0, false);
        for request in requests.iter().flatten() {
            self.check(request)?;
            count += 1;
            is_any_signaled |= self.is_signaled(request);
        }
        let mut state = self.state.lock();
        self.reserve(&mut state, count, is_any_signaled)
            .map_err(invalid)?;
        let first = state.posted.next();
        for request in requests.iter_mut().filter_map(Option::take) {
            self.push(&mut state, request);
        }
        let next = state.posted.next();
        drop(state);
        match self.ring_doorbell() {
            Ok(()) => Ok(WorkIds::new(self.parts.queue, first, next)),
            Err(error) => {
                self.note_refused_doorbell(next.wrapping_sub(1));
                Err(error)
            }
        }
    }

    /// The device has refused the doorbell of the request with this number: it would not process
    /// later ones either. A request that is not in the queue any more has completed, or was discarded by
    /// a reset.
    #[cold]
    pub(crate) fn note_refused_doorbell(&self, number: u32) {
        let state = self.state.lock();
        if state.posted.holds(number) {
            self.parts.qp_status.set_unusable();
        }
    }

    /// Does the checks that need no lock.
    #[inline]
    fn check(&self, request: &SendRequest<'_>) -> Result<()> {
        if let Err(reason) = self.rules.check(&self.parts, request) {
            return Err(invalid(reason));
        }
        if !self.fork_detector.is_same_process() {
            return Err(self.parts.domain.context().closed_error());
        }
        if !self.parts.qp_status.is_ready() {
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
        // A reset waits for this, so that its end is not taken for a queue pair that is ready.
        let _posting = self.state.lock();
        if self.parts.qp_status.is_broken() {
            return Err(invalid(BROKEN));
        }
        self.ring_doorbell()?;
        self.parts.qp_status.set_ready();
        Ok(())
    }

    /// Checks that the connection allows reads. Otherwise siw's queue would stop at a read, and
    /// rxe's would wait forever.
    #[cold]
    fn check_reads(&self) -> Result<()> {
        // A reset waits for this, so that what it forgets is not noted afterwards.
        let _posting = self.state.lock();
        if !self.parts.qp_status.is_ready() {
            return Err(invalid(self.why_not_ready()));
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
    fn reserve(
        &self,
        state: &mut State,
        requests: usize,
        is_signaled: bool,
    ) -> Result<(), &'static str> {
        // Checked under the lock, so that no request is added after a flush.
        if !self.parts.qp_status.is_ready() {
            return Err(self.why_not_ready());
        }
        let Ok(count) = u32::try_from(requests) else {
            return Err(QUEUE_FULL);
        };
        let State { ring, posted, .. } = state;
        if !posted.has_room(count, || ring.room(requests)) {
            return Err(QUEUE_FULL);
        }
        let mut will_report = is_signaled;
        if !is_signaled {
            let free = posted.free();
            will_report = state.unsignaled < self.capacity - free;
            if count == free && !will_report {
                return Err("a full send queue needs at least one signalled request");
            }
        }
        // One entry stays free for a signalled request, which completes the others, unless a receive
        // request takes it.
        let spare = u32::from(!will_report);
        if self.parts.completions.reserve(count, spare) {
            Ok(())
        } else {
            Err(COMPLETION_QUEUE_FULL)
        }
    }

    /// Why requests are refused that were checked before the lock was taken.
    #[cold]
    fn why_not_ready(&self) -> &'static str {
        if self.parts.qp_status.is_broken() {
            BROKEN
        } else {
            WAS_RESET
        }
    }

    fn is_signaled(&self, request: &SendRequest<'_>) -> bool {
        request.flags.contains(SendFlags::SIGNALED) || self.parts.signal_all
    }

    #[inline]
    fn id(&self, number: u32) -> u64 {
        let queue = self.parts.index;
        RequestId { queue, number }.to_device()
    }

    /// Adds a request. There is room for it, as [`reserve`](Self::reserve) has checked.
    fn push(&self, state: &mut State, request: SendRequest<'_>) {
        let signaled = self.is_signaled(&request);
        let State { ring, posted, .. } = state;
        let Some(vacancy) = posted.vacancy(|| 0) else {
            return;
        };
        let mut entries = Entries::new();
        let mut flags = request.flags;
        flags.set(SendFlags::SIGNALED, signaled || self.individually);
        let slot = SendSlot {
            number: self.id(vacancy.number()),
            operation: &request.operation,
            flags,
            payload: match request.inline {
                None => SlotPayload::SgList(entries.of(&request.sg_list)),
                Some(bytes) => SlotPayload::Inline(bytes),
            },
            destination: request.destination.as_ref().map(Destination::for_device),
        };
        let address = request.destination.map(|destination| destination.address);
        let opcode = request.operation.opcode();
        // First: the device may complete the request as soon as it is in its queue.
        vacancy.fill(request.sg_list, PostedSend::new(opcode, signaled, address));
        ring.push(&slot);
        state.unsignaled = if signaled {
            0
        } else {
            state.unsignaled.saturating_add(1)
        };
    }

    /// Makes the device process the requests.
    #[inline]
    fn ring_doorbell(&self) -> Result<()> {
        let uverbs = self.parts.domain.context().uverbs();
        uverbs.ring_doorbell(self.parts.handle)
    }

    /// How many requests will be reported as complete, but were not yet.
    pub(crate) fn outstanding(&self) -> u32 {
        if !self.fork_detector.is_same_process() {
            return 0;
        }
        let state = self.state.lock();
        // Those after the last signalled one may be complete without a report.
        let silent = if self.individually {
            0
        } else {
            state.unsignaled
        };
        state.posted.len().saturating_sub(silent)
    }

    /// After a reset.
    pub(crate) fn reset(&self) {
        self.reads.store(false, Ordering::Release);
    }

    /// As a caller that posts does.
    #[cfg(test)]
    pub(crate) fn lock(&self) -> impl Sized + use<'_> {
        self.state.lock()
    }

    /// Waits until all callers that post have added their requests, or will find that requests
    /// are refused.
    pub(crate) fn wait_for_posters(&self) {
        drop(self.state.lock());
    }

    /// What a caller that posts does after it has checked its request.
    #[cfg(test)]
    pub(crate) fn reserve_after_check(&self) -> Result<(), &'static str> {
        self.reserve(&mut self.state.lock(), 1, true)
    }
}

#[cold]
fn not_queued(refused: PostError<SendRequest<'_>>) -> Refused<'_> {
    let PostError { error, returned } = refused;
    Box::new(PostError::new(error, Some(returned)))
}

#[cold]
fn invalid(reason: &'static str) -> Error {
    Error::invalid(Operation::Send, reason)
}

const BROKEN: &str = "the queue pair is in the error state";
const WAS_RESET: &str = "the queue pair was reset meanwhile";
const QUEUE_FULL: &str = "the send queue is full: poll completions first";
