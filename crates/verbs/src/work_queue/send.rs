//! Send queues.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdmacm_abi::uverbs::{QueryQp, Sge as AbiSge, WcStatus, WorkCompletion, WrOpcode};
use rdmacm_core::QpType;

use super::receive::COMPLETION_QUEUE_FULL;
use super::{QpStatus, WorkQueue, flushed, gone, take_discarded, take_flushed};
use crate::address_handle::AddressHandle;
use crate::completion::{Completion, WorkId, WorkKind, result};
use crate::completion_queue::CompletionQueue;
use crate::error::{Error, PostError, Result};
use crate::in_flight_ring::InFlightRing;
use crate::memory::{SgList, Sge};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::provider::{SendRing, SendSlot, SlotPayload, UdDestination};
use crate::queue_pair::from_query;
use crate::request::{Payload, SendRequest};

mod check;

pub(super) use check::MAX_MESSAGE;

/// A send queue and its posted requests.
#[derive(Debug)]
pub(crate) struct SendQueue {
    parts: SendParts,
    capacity: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct SendParts {
    pub(crate) token: u32,
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
    posted: InFlightRing<Posted>,
    /// The requests that a reset has discarded. The device may still use their memory.
    discarded: Vec<(u32, Posted)>,
    /// The requests that were reported as flushed. The device may still complete them, so
    /// their completion queue entries stay reserved.
    flushed: Vec<u32>,
    signaled: usize,
    /// Whether the device has accepted a doorbell of this queue, which it does once the queue
    /// pair is ready to send.
    ready: bool,
    /// Whether the connection is known to allow reads and atomics.
    reads: bool,
}

/// A posted request.
#[derive(Debug)]
struct Posted {
    opcode: WrOpcode,
    signaled: bool,
    /// Whether only its own completion shows that it is complete.
    individually: bool,
    wc: Option<WorkCompletion>,
    sg_list: SgList,
    /// Keeps the address handle alive until the request is complete.
    _address: Option<AddressHandle>,
}

impl SendQueue {
    pub(crate) fn new(parts: SendParts, ring: Box<dyn SendRing>) -> Self {
        Self {
            capacity: parts.max_requests.min(ring.capacity()) as usize,
            parts: SendParts {
                max_sges: parts.max_sges.min(ring.max_sges()),
                max_inline: parts.max_inline.min(ring.max_inline()),
                ..parts
            },
            state: Mutex::new(State {
                ring,
                posted: InFlightRing::default(),
                discarded: Vec::new(),
                flushed: Vec::new(),
                signaled: 0,
                ready: false,
                reads: false,
            }),
        }
    }

    pub(crate) fn token(&self) -> u32 {
        self.parts.token
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
        let mut state = self.state();
        if let Err(error) = self.prepare(&mut state, std::slice::from_ref(&request)) {
            return Err(PostError::new(error, Some(request)));
        }
        let work = self.push(&mut state, request);
        match self.ring_doorbell() {
            Ok(()) => Ok(work),
            Err(error) => Err(self.broken(error, None)),
        }
    }

    /// Posts several requests with one doorbell; all or none.
    pub(crate) fn post_all<'a>(
        &self,
        requests: Vec<SendRequest<'a>>,
    ) -> Result<Vec<WorkId>, PostError<Vec<SendRequest<'a>>>> {
        let mut state = self.state();
        if let Err(error) = self.prepare(&mut state, &requests) {
            return Err(PostError::new(error, requests));
        }
        let works = requests
            .into_iter()
            .map(|request| self.push(&mut state, request))
            .collect();
        match self.ring_doorbell() {
            Ok(()) => Ok(works),
            Err(error) => Err(self.broken(error, Vec::new())),
        }
    }

    /// The device refused the doorbell of requests that are in the queue: it would not
    /// process later ones either.
    fn broken<T>(&self, error: Error, returned: T) -> PostError<T> {
        self.parts.qp_status.set_broken();
        PostError::new(error, returned)
    }

    /// Does all checks before anything changes, and reserves completion queue entries.
    fn prepare(&self, state: &mut State, requests: &[SendRequest<'_>]) -> Result<()> {
        let uverbs = self.parts.domain.context().uverbs();
        if uverbs.is_in_child() {
            return Err(uverbs.gone());
        }
        for request in requests {
            check::check(&self.parts, request).map_err(invalid)?;
        }
        self.has_room(state, requests).map_err(invalid)?;
        if !state.ready {
            // The queue is empty, so the caller gets the request back if the device
            // refuses the doorbell.
            self.ring_doorbell()?;
            state.ready = true;
        }
        if !state.reads && requests.iter().any(|request| request.operation.fetches()) {
            self.check_reads()?;
            state.reads = true;
        }
        // One entry stays free for a signalled request, which completes the others.
        let left = usize::from(!self.will_report(state, requests));
        if self.parts.completions.reserve(requests.len(), left) {
            Ok(())
        } else {
            Err(invalid(COMPLETION_QUEUE_FULL))
        }
    }

    /// Checks that the connection allows reads. Otherwise siw's queue would stop at a read, and
    /// rxe's would wait forever.
    fn check_reads(&self) -> Result<()> {
        let uverbs = self.parts.domain.context().uverbs();
        let provider = uverbs.provider();
        let queryable = provider.queryable_attributes();
        let request = QueryQp::new(self.parts.handle, queryable);
        let answer = uverbs.ask(Operation::Send, &request)?;
        match provider.initiator_depth(&from_query(queryable, answer)) {
            0 => Err(invalid("the connection allows no reads and atomics")),
            _ => Ok(()),
        }
    }

    fn has_room(&self, state: &State, requests: &[SendRequest<'_>]) -> Result<(), &'static str> {
        let filled = state.posted.len() + requests.len();
        if filled > self.capacity || !state.ring.has_room(requests.len()) {
            Err(QUEUE_FULL)
        } else if filled == self.capacity && !self.will_report(state, requests) {
            Err("the send queue would be full of requests without a completion")
        } else {
            Ok(())
        }
    }

    /// Whether any of these requests or of the posted ones is signalled.
    fn will_report(&self, state: &State, requests: &[SendRequest<'_>]) -> bool {
        state.signaled > 0 || requests.iter().any(|one| self.is_signaled(one))
    }

    fn is_signaled(&self, request: &SendRequest<'_>) -> bool {
        request.signaled || self.parts.signal_all
    }

    fn push(&self, state: &mut State, request: SendRequest<'_>) -> WorkId {
        let work = WorkId {
            queue: self.parts.token,
            number: state.posted.next(),
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
        let provider = self.parts.domain.context().uverbs().provider();
        let individually = provider.completes_individually();
        let slot = SendSlot {
            number: work.to_number(),
            operation: request.operation,
            signaled: signaled || individually,
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
        state.signaled += usize::from(signaled);
        state.posted.push(Posted {
            opcode: request.operation.opcode(),
            signaled,
            individually,
            wc: None,
            _address: request
                .destination
                .as_ref()
                .map(|destination| destination.address.clone()),
            sg_list: request.into_sg_list(),
        });
        work
    }

    /// Makes the device process the requests.
    fn ring_doorbell(&self) -> Result<()> {
        let uverbs = self.parts.domain.context().uverbs();
        uverbs
            .provider()
            .ring_doorbell(uverbs, Operation::Send, self.parts.handle)
    }

    /// Discards the requests, as the device does. Keeps their memory.
    pub(crate) fn reset(&self) {
        let mut state = self.state();
        let taken = self.take_posted(&mut state);
        state.discarded.extend(taken);
        (state.ready, state.reads) = (false, false);
    }

    /// The memory of all requests, after the kernel has destroyed the queue pair.
    pub(crate) fn take_all(&self) -> Vec<(WorkId, SgList)> {
        let mut state = self.state();
        let flushed = std::mem::take(&mut state.flushed);
        self.parts.completions.release(flushed.len());
        let mut all = std::mem::take(&mut state.discarded);
        all.extend(self.take_posted(&mut state));
        self.with_ids(all)
            .map(|(work, posted)| (work, posted.sg_list))
            .collect()
    }

    fn take_posted(&self, state: &mut State) -> Vec<(u32, Posted)> {
        state.signaled = 0;
        let taken = state.posted.take_all();
        self.parts.completions.release(taken.len());
        taken
    }

    /// Appends all completions to report.
    fn report_all(&self, state: &mut State, ready: &mut VecDeque<Completion>) {
        while let Some((number, wc)) = state.next_reported() {
            ready.extend(self.report(state, number, &wc));
        }
    }

    fn report(&self, state: &mut State, number: u32, wc: &WorkCompletion) -> Option<Completion> {
        let before = state.posted.take_before(number);
        let posted = state.posted.take(number)?;
        let earlier_signaled = before.iter().filter(|(_, posted)| posted.signaled).count();
        state.signaled -= earlier_signaled + usize::from(posted.signaled);
        let numbers = before.iter().map(|(number, _)| *number).chain([number]);
        let unreported = numbers.filter(|number| !state.flushed.contains(number));
        self.parts.completions.release(unreported.count());
        let work = WorkId {
            queue: self.parts.token,
            number,
        };
        Some(Completion {
            work,
            queue_pair: wc.qp_number,
            result: result(WorkKind::Send(posted.opcode), work, wc),
            sg_list: posted.sg_list,
            earlier: self
                .with_ids(before)
                .map(|(work, posted)| (work, posted.sg_list))
                .collect(),
        })
    }

    fn with_ids<T>(&self, taken: Vec<(u32, T)>) -> impl Iterator<Item = (WorkId, T)> {
        let queue = self.parts.token;
        taken
            .into_iter()
            .map(move |(number, entry)| (WorkId { queue, number }, entry))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn invalid(reason: &'static str) -> Error {
    Error::invalid(Operation::Send, reason)
}

const QUEUE_FULL: &str = "the send queue is full: poll completions first";

impl Posted {
    /// Whether its completion is reported, with those of earlier requests.
    fn is_reported(&self) -> bool {
        let wc = self.wc.as_ref();
        wc.is_some_and(|wc| self.signaled || wc.status != WcStatus::SUCCESS)
    }
}

impl State {
    /// The oldest request to report. Requests are reported in the order of posting, even if
    /// the device completes them in another order.
    fn next_reported(&self) -> Option<(u32, WorkCompletion)> {
        for (number, posted) in self.posted.iter() {
            match posted.wc {
                Some(wc) if posted.is_reported() => return Some((number, wc)),
                None if posted.individually => return None,
                // Complete once a later request is.
                _ => {}
            }
        }
        None
    }
}

impl WorkQueue for SendQueue {
    fn complete(&self, number: u32, wc: &WorkCompletion, ready: &mut VecDeque<Completion>) -> bool {
        let mut state = self.state();
        let State {
            posted,
            flushed,
            discarded,
            ..
        } = &mut *state;
        match posted.get_mut(number) {
            Some(posted) if posted.wc.is_none() => posted.wc = Some(*wc),
            Some(_) => return false,
            None if take_flushed(flushed, number) => {
                self.parts.completions.release(1);
                return true;
            }
            None => return take_discarded(discarded, number).is_some(),
        }
        if wc.status != WcStatus::SUCCESS {
            self.parts.qp_status.set_broken();
        }
        self.report_all(&mut state, ready);
        true
    }

    fn flush(&self, ready: &mut VecDeque<Completion>) {
        let wc = flushed(self.parts.number);
        let mut state = self.state();
        let State {
            posted,
            flushed,
            signaled,
            ..
        } = &mut *state;
        for (number, one) in posted.iter_mut().filter(|(_, one)| one.wc.is_none()) {
            one.wc = Some(wc);
            flushed.push(number);
        }
        // No later completion reports the unsignalled requests at the end.
        if let Some((_, last)) = posted.iter_mut().next_back() {
            *signaled += usize::from(!std::mem::replace(&mut last.signaled, true));
        }
        self.report_all(&mut state, ready);
    }

    fn fail_all(&self) -> Vec<Completion> {
        self.parts.qp_status.set_broken();
        let wc = gone(self.parts.number);
        let taken = self.take_posted(&mut self.state());
        let failed = self.with_ids(taken).map(|(work, posted)| Completion {
            work,
            queue_pair: wc.qp_number,
            result: result(WorkKind::Send(posted.opcode), work, &wc),
            sg_list: posted.sg_list,
            earlier: Vec::new(),
        });
        failed.collect()
    }
}
