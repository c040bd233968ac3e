//! What is under way on a queue pair.

use std::collections::{HashMap, VecDeque};
use std::task::Waker;
use std::time::{Duration, Instant};

use rdmacm_core::{Deadline, Transport};
use rdmacm_verbs::{
    Buffer, Completion, CompletionError, DatagramSource, Done, Error, Pieces, WcOpcode, WcStatus,
    WorkId,
};

use super::waiters::{Interest, Waiters};

/// What became of a request, and its memory.
pub(crate) type Settled = (Result<Done, CompletionError>, Pieces);

/// A message that arrived and was not received yet.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) buffer: Option<Buffer>,
    pub(crate) length: usize,
    pub(crate) immediate: Option<u32>,
    /// Of a datagram.
    pub(crate) source: Option<DatagramSource>,
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

/// Why nothing more is carried.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The connection has ended, and something else says why.
    Flushed,
    /// A request failed.
    Failed(CompletionError),
    /// The device has gone, or talks nonsense.
    Device(Error),
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
            source: result.ok().map(|done| done.source),
        });
        after.wakers.extend(self.waiters.first(Interest::Arrival));
    }

    /// Nothing more is carried; the first reason counts, but for those that say
    /// only that there is another.
    pub(super) fn fail(&mut self, fault: Fault, after: &mut Aftermath) {
        let known = match self.fault {
            None => false,
            Some(Fault::Flushed) => matches!(fault, Fault::Flushed),
            Some(_) => true,
        };
        if !known {
            self.fault = Some(fault);
            after.wakers.extend(self.waiters.all());
        }
    }
}

impl Fault {
    fn of(error: CompletionError, transport: Transport) -> Self {
        if is_aftermath(&error, transport) {
            Self::Flushed
        } else {
            Self::Failed(error)
        }
    }
}

/// Whether it says no more than that something else ended the connection.
///
/// With the device gone, the queue says so when it is asked next. siw fails a message
/// that it has sent to its last byte if the peer parts before it is told of that
/// (`siw_qp_sq_proc_tx`), in the words for memory that is not registered: none of that is
/// posted here.
pub(super) fn is_aftermath(error: &CompletionError, transport: Transport) -> bool {
    let is_cut_short = error.status == WcStatus::LOC_QP_OP_ERR && transport == Transport::IWarp;
    error.is_flush() || error.is_device_gone() || is_cut_short
}
