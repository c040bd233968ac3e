//! Send queues.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdmacm_abi::uverbs::{QueryQp, Sge as AbiSge, WcStatus, WorkCompletion, WrOpcode};
use rdmacm_core::QpType;

use super::receive::NO_ROOM;
use super::{QpStatus, WorkQueue, flushed, gone, take_flushed, take_forgotten};
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

pub(super) use check::LONGEST;

/// A send queue and what the device has of it.
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
    pub(crate) health: Arc<QpStatus>,
}

#[derive(Debug)]
struct State {
    ring: Box<dyn SendRing>,
    posted: InFlightRing<Posted>,
    /// What the device had when it forgot its requests, and may yet be using.
    forgotten: Vec<(u32, Posted)>,
    /// What was reported as flushed, and of which the device may yet tell: room for that
    /// stays set aside.
    flushed: Vec<u32>,
    signaled: usize,
    /// Whether the device has ever looked at this queue when told to: it does not
    /// before the queue pair is ready to send.
    ready: bool,
    /// Whether the connection is known to allow reads and atomics.
    reads: bool,
}

/// What the device has of a request.
#[derive(Debug)]
struct Posted {
    opcode: WrOpcode,
    signaled: bool,
    /// Whether nothing but its own completion says that it is done.
    apart: bool,
    told: Option<WorkCompletion>,
    sg_list: SgList,
    /// By which way it goes: not to be destroyed before.
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
                forgotten: Vec::new(),
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

    /// Gives the device one request.
    #[expect(
        clippy::result_large_err,
        reason = "a request that comes back is moved, as it came"
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
        match self.ring() {
            Ok(()) => Ok(work),
            Err(error) => Err(self.stuck(error, None)),
        }
    }

    /// Gives the device several requests and tells it once; all or none.
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
        match self.ring() {
            Ok(()) => Ok(works),
            Err(error) => Err(self.stuck(error, Vec::new())),
        }
    }

    /// Requests are in the queue and the device will not look: none behind them
    /// would go either.
    fn stuck<T>(&self, error: Error, returned: T) -> PostError<T> {
        self.parts.health.set_broken();
        PostError::new(error, returned)
    }

    /// Everything that can be refused, before anything changes; sets room aside
    /// for the completions.
    fn prepare(&self, state: &mut State, requests: &[SendRequest<'_>]) -> Result<()> {
        let uverbs = self.parts.domain.context().uverbs();
        if uverbs.is_elsewhere() {
            return Err(uverbs.gone());
        }
        for request in requests {
            check::check(&self.parts, request).map_err(invalid)?;
        }
        self.has_room(state, requests).map_err(invalid)?;
        if !state.ready {
            // Nothing is in the queue yet. So the device's refusal can be told
            // while the request is still this side's.
            self.ring()?;
            state.ready = true;
        }
        if !state.reads && requests.iter().any(|request| request.operation.fetches()) {
            self.allows_reads()?;
            state.reads = true;
        }
        // One that is signalled, which brings the others back, must find room.
        let left = usize::from(!self.will_report(state, requests));
        if self.parts.completions.reserve(requests.len(), left) {
            Ok(())
        } else {
            Err(invalid(NO_ROOM))
        }
    }

    /// Where a connection allows none, siw's queue would stop at a read and rxe's
    /// wait for ever.
    fn allows_reads(&self) -> Result<()> {
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
            Err(FULL)
        } else if filled == self.capacity && !self.will_report(state, requests) {
            Err("the send queue would be full of requests without a completion")
        } else {
            Ok(())
        }
    }

    /// Whether one that is signalled is among these or those before them.
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
                // siw takes empty ones amiss (`siw_tx_hdt`).
                let sg_list = sg_list.iter().filter(|sge| !sge.is_empty());
                many = sg_list.map(Sge::sge).collect();
                &many
            }),
        };
        let signaled = self.is_signaled(&request);
        let provider = self.parts.domain.context().uverbs().provider();
        let apart = provider.completes_individually();
        let slot = SendSlot {
            number: work.to_number(),
            operation: request.operation,
            signaled: signaled || apart,
            solicited: request.solicited,
            fence: request.fence,
            payload,
            destination: request.destination.as_ref().map(|to| UdDestination {
                address_handle: to.address.driver_number(),
                queue_pair: to.queue_pair,
                queue_key: to.queue_key,
            }),
        };
        state.ring.push(&slot);
        state.signaled += usize::from(signaled);
        state.posted.push(Posted {
            opcode: request.operation.opcode(),
            signaled,
            apart,
            told: None,
            _address: request.destination.as_ref().map(|to| to.address.clone()),
            sg_list: request.into_sg_list(),
        });
        work
    }

    /// Tells the device to look.
    fn ring(&self) -> Result<()> {
        let uverbs = self.parts.domain.context().uverbs();
        uverbs
            .provider()
            .ring_doorbell(uverbs, Operation::Send, self.parts.handle)
    }

    /// Forgets what the device has forgotten. The memory stays.
    pub(crate) fn reset(&self) {
        let mut state = self.state();
        let taken = self.take_posted(&mut state);
        state.forgotten.extend(taken);
        (state.ready, state.reads) = (false, false);
    }

    /// What the device had, when the queue pair is gone in the kernel.
    pub(crate) fn take_all(&self) -> Vec<(WorkId, SgList)> {
        let mut state = self.state();
        let flushed = std::mem::take(&mut state.flushed);
        self.parts.completions.release(flushed.len());
        let mut all = std::mem::take(&mut state.forgotten);
        all.extend(self.take_posted(&mut state));
        self.named(all)
            .map(|(work, posted)| (work, posted.sg_list))
            .collect()
    }

    fn take_posted(&self, state: &mut State) -> Vec<(u32, Posted)> {
        state.signaled = 0;
        let taken = state.posted.take_all();
        self.parts.completions.release(taken.len());
        taken
    }

    /// Reports all that is to be reported.
    fn report_all(&self, state: &mut State, ready: &mut VecDeque<Completion>) {
        while let Some((number, told)) = state.next_reported() {
            ready.extend(self.report(state, number, &told));
        }
    }

    fn report(&self, state: &mut State, number: u32, told: &WorkCompletion) -> Option<Completion> {
        let before = state.posted.take_before(number);
        let posted = state.posted.take(number)?;
        let earlier_signaled = before.iter().filter(|(_, posted)| posted.signaled).count();
        state.signaled -= earlier_signaled + usize::from(posted.signaled);
        let numbers = before.iter().map(|(number, _)| *number).chain([number]);
        let told_of = numbers.filter(|number| !state.flushed.contains(number));
        self.parts.completions.release(told_of.count());
        let work = WorkId {
            queue: self.parts.token,
            number,
        };
        Some(Completion {
            work,
            queue_pair: told.qp_number,
            result: result(WorkKind::Send(posted.opcode), work, told),
            sg_list: posted.sg_list,
            earlier: self
                .named(before)
                .map(|(work, posted)| (work, posted.sg_list))
                .collect(),
        })
    }

    fn named<T>(&self, taken: Vec<(u32, T)>) -> impl Iterator<Item = (WorkId, T)> {
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

const FULL: &str = "the send queue is full: take completions first";

impl Posted {
    /// Whether it is to be reported, with those before it.
    fn is_reported(&self) -> bool {
        let told = self.told.as_ref();
        told.is_some_and(|told| self.signaled || told.status != WcStatus::SUCCESS)
    }
}

impl State {
    /// The oldest request to report. Requests are reported in order, whatever the
    /// device's is.
    fn next_reported(&self) -> Option<(u32, WorkCompletion)> {
        for (number, posted) in self.posted.iter() {
            match posted.told {
                Some(told) if posted.is_reported() => return Some((number, told)),
                None if posted.apart => return None,
                // Done too once a later one is.
                _ => {}
            }
        }
        None
    }
}

impl WorkQueue for SendQueue {
    fn complete(
        &self,
        number: u32,
        told: &WorkCompletion,
        ready: &mut VecDeque<Completion>,
    ) -> bool {
        let mut state = self.state();
        let State {
            posted,
            flushed,
            forgotten,
            ..
        } = &mut *state;
        match posted.get_mut(number) {
            Some(posted) if posted.told.is_none() => posted.told = Some(*told),
            Some(_) => return false,
            None if take_flushed(flushed, number) => {
                self.parts.completions.release(1);
                return true;
            }
            None => return take_forgotten(forgotten, number).is_some(),
        }
        if told.status != WcStatus::SUCCESS {
            self.parts.health.set_broken();
        }
        self.report_all(&mut state, ready);
        true
    }

    fn flush(&self, ready: &mut VecDeque<Completion>) {
        let told = flushed(self.parts.number);
        let mut state = self.state();
        let State {
            posted,
            flushed,
            signaled,
            ..
        } = &mut *state;
        for (number, one) in posted.iter_mut().filter(|(_, one)| one.told.is_none()) {
            one.told = Some(told);
            flushed.push(number);
        }
        // No later one brings those back that are silent.
        if let Some((_, last)) = posted.iter_mut().next_back() {
            *signaled += usize::from(!std::mem::replace(&mut last.signaled, true));
        }
        self.report_all(&mut state, ready);
    }

    fn give_up(&self) -> Vec<Completion> {
        self.parts.health.set_broken();
        let told = gone(self.parts.number);
        let taken = self.take_posted(&mut self.state());
        let failed = self.named(taken).map(|(work, posted)| Completion {
            work,
            queue_pair: told.qp_number,
            result: result(WorkKind::Send(posted.opcode), work, &told),
            sg_list: posted.sg_list,
            earlier: Vec::new(),
        });
        failed.collect()
    }
}
