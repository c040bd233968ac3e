//! What is under way on a queue pair.

use std::collections::{HashMap, VecDeque};
use std::task::Waker;
use std::time::{Duration, Instant};

use rdmacm_core::{Deadline, Transport};
use rdmacm_verbs::{Buffer, Completion, CompletionError, Done, Pieces, WcOpcode, WorkId};

use super::fault::Fault;
use super::waiters::{Interest, Waiters};

/// What became of a request, and its memory.
pub(crate) type Settled = (Result<Done, CompletionError>, Pieces);

/// A message that arrived and was not received yet.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) buffer: Option<Buffer>,
    pub(super) length: usize,
    pub(super) immediate: Option<u32>,
}

/// Whose a request is that the device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Posted {
    /// Nobody waits for it; its memory, if it has any, is the pool's.
    Copied,
    /// Somebody waits for it and its memory.
    Awaited,
    /// Nobody waits for it any more.
    Abandoned,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) arrived: VecDeque<Arrival>,
    transport: Transport,
    /// To copy messages into.
    pub(super) pool: Vec<Buffer>,
    pub(super) posted: HashMap<WorkId, Posted>,
    pub(super) settled: HashMap<WorkId, Settled>,
    pub(super) waiters: Waiters,
    pub(super) fault: Option<Fault>,
    /// Since when somebody knows of it.
    fault_since: Option<Instant>,
    /// It is what is told, whatever happens later.
    fault_stands: bool,
    /// A message that was sent has not arrived.
    pub(super) lost: bool,
    /// The next completion tells.
    pub(super) armed: bool,
    pub(super) deadline: Deadline,
    /// The last sign of life, and when it was given.
    pub(super) beat: Option<WorkId>,
    pub(super) beaten: Instant,
    /// A first sign of life is owed, after so long.
    pub(super) nudge: Option<Duration>,
}

/// What is to be done without the lock: the last to know a task ends it, and the
/// last to have memory asks the kernel.
#[derive(Debug, Default)]
pub(super) struct Aftermath {
    pub(super) wakers: Vec<Waker>,
    pub(super) garbage: Vec<Pieces>,
}

impl Aftermath {
    pub(super) fn settle(self) {
        self.wakers.into_iter().for_each(Waker::wake);
    }
}

impl State {
    pub(super) fn new(pool: Vec<Buffer>, transport: Transport, now: Instant) -> Self {
        Self {
            transport,
            arrived: VecDeque::new(),
            pool,
            posted: HashMap::new(),
            settled: HashMap::new(),
            waiters: Waiters::default(),
            fault: None,
            fault_since: None,
            fault_stands: false,
            lost: false,
            armed: false,
            deadline: Deadline::Never,
            beat: None,
            beaten: now,
            nudge: None,
        }
    }

    /// Sorts a completion, and those that it stands for as well.
    pub(super) fn sort(&mut self, completion: Completion, after: &mut Aftermath) {
        let result = completion.result;
        for (work, pieces) in completion.earlier {
            self.sort_one(work, result, pieces, after);
        }
        self.sort_one(completion.work, result, completion.pieces, after);
    }

    fn sort_one(
        &mut self,
        work: WorkId,
        result: Result<Done, CompletionError>,
        pieces: Pieces,
        after: &mut Aftermath,
    ) {
        match self.posted.remove(&work) {
            Some(Posted::Copied) => {
                self.lost |= result.is_err();
                self.pool.extend(pieces.into_buffer());
            }
            Some(Posted::Awaited) => {
                self.settled.insert(work, (result, pieces));
                after
                    .wakers
                    .extend(self.waiters.first(Interest::Done(work)));
            }
            Some(Posted::Abandoned) => after.garbage.push(pieces),
            None => self.receive(&result, pieces, after),
        }
        after.wakers.extend(self.waiters.first(Interest::Room));
        if self.posted.is_empty() {
            after.wakers.extend(self.waiters.first(Interest::Quiet));
        }
        if let Err(error) = result {
            self.fail(Fault::of(error, self.transport), after);
        }
    }

    fn receive(
        &mut self,
        result: &Result<Done, CompletionError>,
        pieces: Pieces,
        after: &mut Aftermath,
    ) {
        let length = match result {
            // The bytes of a write are where it was told to put them.
            Ok(done) if done.opcode == WcOpcode::RECV_RDMA_WITH_IMM => 0,
            Ok(done) if done.opcode == WcOpcode::RECV => done.bytes as usize,
            // A send that the device completes though it could not be told of it.
            _ => return after.garbage.push(pieces),
        };
        self.arrived.push_back(Arrival {
            buffer: pieces.into_buffer(),
            length,
            immediate: result.ok().and_then(|done| done.immediate),
        });
        after.wakers.extend(self.waiters.first(Interest::Arrival));
    }

    /// Nothing more is carried; the first reason counts, but for those that say
    /// only that there is another.
    pub(super) fn fail(&mut self, fault: Fault, after: &mut Aftermath) {
        let known = self.fault.as_ref();
        if known.is_some_and(|known| known.is_reason() || !fault.is_reason()) {
            return;
        }
        self.fault = Some(fault);
        self.fault_since = None;
        self.fault_stands = false;
        after.wakers.extend(self.waiters.all());
    }

    /// Whether siw may complete a request once more: it has been seen to do so with a
    /// read during which the connection ended.
    pub(super) fn may_repeat_itself(&self) -> bool {
        self.transport == Transport::IWarp && self.fault.is_some()
    }

    /// Whether the fault is what is told: it cannot be the peer's departure, or that was
    /// waited for in vain.
    pub(super) fn fault_stands(&mut self, now: Instant, has_ended: bool) -> bool {
        let Some(fault) = &self.fault else {
            return false;
        };
        let patience = fault.patience();
        let since = *self.fault_since.get_or_insert(now);
        let is_over = now.saturating_duration_since(since) >= patience;
        self.fault_stands |= patience.is_zero() || (is_over && !has_ended);
        self.fault_stands
    }

    /// Until when the peer's departure is waited for, if it is.
    pub(super) fn waits_for_departure(&self, now: Instant) -> Option<Instant> {
        let until = self
            .fault_since?
            .checked_add(self.fault.as_ref()?.patience())?;
        (!self.fault_stands && until > now).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn gone() -> rdmacm_verbs::Error {
        let device = String::from("rxe0");
        rdmacm_verbs::Error::Gone { device }
    }

    fn state(fault: Fault, now: Instant) -> State {
        let mut state = State::new(Vec::new(), Transport::InfiniBand, now);
        state.fail(fault, &mut Aftermath::default());
        state
    }

    #[test]
    fn a_fault_waits_for_the_departure_and_stands_after() {
        let now = Instant::now();
        for (fault, wait) in [
            (Fault::Flushed, SECOND * 2),
            (Fault::Refused(gone()), SECOND),
        ] {
            let mut state = state(fault, now);
            // It is waited for from the moment on at which somebody knows.
            assert_eq!(state.waits_for_departure(now), None);
            assert!(!state.fault_stands(now, false));
            assert_eq!(state.waits_for_departure(now), Some(now + wait));
            assert!(!state.fault_stands(now + wait / 2, false));
            assert!(state.fault_stands(now + wait, false));
            assert_eq!(state.waits_for_departure(now), None);
            // What was told once is told again.
            assert!(state.fault_stands(now + wait, true));
        }
    }

    #[test]
    fn a_departure_in_time_outranks_a_fault() {
        let now = Instant::now();
        let mut state = state(Fault::Refused(gone()), now);
        assert!(!state.fault_stands(now, false));
        assert!(!state.fault_stands(now + SECOND / 2, true));
        assert!(!state.fault_stands(now + SECOND * 2, true));
    }

    #[test]
    fn a_reason_replaces_what_only_says_that_there_is_one() {
        let now = Instant::now();
        let mut state = state(Fault::Flushed, now);
        assert!(!state.fault_stands(now, false));
        state.fail(Fault::Device(gone()), &mut Aftermath::default());
        assert!(state.fault_stands(now, true));
        assert_eq!(state.waits_for_departure(now), None);
        state.fail(Fault::Flushed, &mut Aftermath::default());
        assert!(matches!(state.fault, Some(Fault::Device(_))));
    }
}
