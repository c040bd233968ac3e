//! What is waited for of a queue pair that carries messages.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use rdmacm_core::EventKind;
use rdmacm_verbs::{Pieces, Refused, SendOperation, WorkId};

use super::fault::Fault;
use super::message::Message;
use super::state::Settled;
use super::traffic::Traffic;
use super::waiters::Interest;
use crate::ending::Ending;
use crate::error::Cause;
use crate::hub::{Place, Tracked};

/// A connection, and what moves through it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) tracked: &'a Tracked,
    pub(crate) traffic: &'a Arc<Traffic>,
}

impl Line<'_> {
    /// Both may tell of the end.
    fn wait(self, interest: Interest, key: u64, waker: &Waker) {
        self.tracked.mailbox().wait(key, waker);
        self.traffic.wait(interest, key, waker);
    }

    fn leave(self, interest: Interest, key: u64) {
        self.traffic.leave(interest, key);
        self.tracked.mailbox().leave(key);
    }

    /// Why nothing more is carried, once that is known. What came before the end
    /// has been sorted by then.
    fn trouble(self) -> Option<Cause> {
        let ended = self.tracked.mailbox().ended();
        // Nobody need wait here any more who would hear that the device waits for its
        // context to be closed.
        match ended.map(|ended| ended.kind()) {
            None => {}
            Some(EventKind::DeviceRemoval) => self.traffic.device().close(),
            // A peer on the same device may have heard of its removal first.
            Some(_) => self.traffic.device().heed_removal(),
        }
        self.traffic.pump();
        if ended.is_some() && self.traffic.is_to_be_flushed() {
            // Where that fails the device has gone, which is told of next.
            let _ = self
                .tracked
                .id()
                .with_queue_pair(self.traffic.queue_pair())
                .fail();
            self.traffic.pump();
        }
        let Some(fault) = self.traffic.fault() else {
            return ended.map(Cause::Ended);
        };
        let now = self.tracked.hub().now();
        let stands = self.traffic.fault_stands(now, ended.is_some());
        match (fault, ended) {
            (Fault::Device(error), _) => Some(Cause::Verbs(error)),
            (Fault::Failed(error), _) if stands => {
                self.tracked.give_up();
                Some(Cause::Completion(error))
            }
            (Fault::Failed(error), Some(ended)) => Some(Cause::Ended(ended.after(error))),
            (_, Some(ended)) => Some(Cause::Ended(ended)),
            (Fault::Refused(error), None) if stands => Some(Cause::Verbs(error)),
            (Fault::Flushed, None) if stands => {
                // The peer need not know of it yet.
                self.tracked.give_up();
                None
            }
            (_, None) => None,
        }
    }

    /// Until when the peer's departure is waited for, if it is.
    pub(crate) fn waits_for_departure(self) -> Option<Instant> {
        self.traffic.waits_for_departure(self.tracked.hub().now())
    }
}

/// A place that is left also when the moment changes until which the peer's departure is
/// waited for.
#[derive(Debug)]
pub(crate) struct UntilDeparture<'a, P> {
    pub(crate) place: P,
    pub(crate) line: Line<'a>,
    pub(crate) until: Option<Instant>,
}

impl<P: Place> Place for UntilDeparture<'_, P> {
    /// What came to the place; `None` where the moment is another.
    type Item = Option<P::Item>;

    fn take(&mut self) -> Option<Self::Item> {
        let item = self.place.take();
        let is_other = self.line.waits_for_departure() != self.until;
        item.map(Some).or_else(|| is_other.then_some(None))
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        self.place.wait(key, waker);
    }

    fn leave(&mut self, key: u64) {
        self.place.leave(key);
    }
}

/// Messages of the peer: those that have arrived first, then why no more do.
#[derive(Debug)]
pub(crate) struct Arrivals<'a>(pub(crate) Line<'a>);

impl Place for Arrivals<'_> {
    type Item = Result<Message, Cause>;

    fn take(&mut self) -> Option<Self::Item> {
        let trouble = self.0.trouble();
        match self.0.traffic.receive() {
            Some(message) => Some(Ok(message)),
            None => trouble.map(Err),
        }
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        self.0.wait(Interest::Arrival, key, waker);
    }

    fn leave(&mut self, key: u64) {
        self.0.leave(Interest::Arrival, key);
    }
}

/// What is to be posted once there is room.
#[derive(Debug)]
pub(crate) enum Load<'a> {
    /// A message to copy.
    Bytes(&'a [u8]),
    /// A request with memory of the caller's.
    Lent(SendOperation, Option<Pieces>),
}

/// Room for one more request, which is posted there.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    pub(crate) line: Line<'a>,
    pub(crate) load: Load<'a>,
}

impl Place for Room<'_> {
    /// The request, if it is one that is waited for.
    type Item = Result<Option<WorkId>, (Cause, Pieces)>;

    fn take(&mut self) -> Option<Self::Item> {
        let trouble = self.line.trouble();
        let traffic = self.line.traffic;
        if let Some(cause) = trouble {
            return Some(Err((cause, self.load.unload())));
        }
        if traffic.fault().is_some() {
            // What it was is about to be known.
            return None;
        }
        match &mut self.load {
            Load::Bytes(bytes) => match traffic.send(SendOperation::Send, bytes, None)? {
                Ok(()) => Some(Ok(None)),
                Err(error) if traffic.is_over(&error) => {
                    traffic.refuse(error);
                    None
                }
                Err(error) => Some(Err((error.into(), Pieces::NONE))),
            },
            Load::Lent(operation, lent) => match traffic.request(*operation, lent.take()?) {
                Ok(Ok(work)) => Some(Ok(Some(work))),
                Ok(Err(Refused { error, returned })) if traffic.is_over(&error) => {
                    *lent = Some(returned);
                    traffic.refuse(error);
                    None
                }
                Ok(Err(Refused { error, returned })) => Some(Err((error.into(), returned))),
                Err(pieces) => {
                    *lent = Some(pieces);
                    None
                }
            },
        }
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        self.line.wait(Interest::Room, key, waker);
    }

    fn leave(&mut self, key: u64) {
        self.line.leave(Interest::Room, key);
    }
}

impl Load<'_> {
    pub(crate) fn unload(&mut self) -> Pieces {
        match self {
            Self::Bytes(_) => Pieces::NONE,
            Self::Lent(_, lent) => lent.take().unwrap_or_default(),
        }
    }
}

/// The end of a request. Dropped before, the request's memory stays with the queue
/// pair until it completes.
#[derive(Debug)]
pub(crate) struct Outcome<'a> {
    pub(crate) line: Line<'a>,
    pub(crate) work: WorkId,
}

impl Place for Outcome<'_> {
    type Item = Settled;

    fn take(&mut self) -> Option<Settled> {
        // Whoever waits sees to it that the queue pair learns of the end.
        let _ = self.line.trouble();
        self.line.traffic.settled(self.work)
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        self.line.wait(Interest::Done(self.work), key, waker);
    }

    fn leave(&mut self, key: u64) {
        self.line.leave(Interest::Done(self.work), key);
    }
}

impl Drop for Outcome<'_> {
    fn drop(&mut self) {
        self.line.traffic.abandon(self.work);
    }
}

/// The end of all requests.
#[derive(Debug)]
pub(crate) struct Quiet<'a>(pub(crate) Line<'a>);

impl Place for Quiet<'_> {
    type Item = Result<(), Cause>;

    fn take(&mut self) -> Option<Self::Item> {
        let trouble = self.0.trouble();
        let traffic = self.0.traffic;
        match traffic.fault() {
            _ if traffic.is_quiet() && !traffic.has_lost() => Some(Ok(())),
            Some(Fault::Device(error)) => Some(Err(error.into())),
            _ if traffic.is_quiet() => trouble.map(Err),
            _ => None,
        }
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        self.0.wait(Interest::Quiet, key, waker);
    }

    fn leave(&mut self, key: u64) {
        self.0.leave(Interest::Quiet, key);
    }
}

/// Why nothing more is carried.
#[derive(Debug)]
pub(crate) struct Trouble<'a>(pub(crate) Line<'a>);

impl Place for Trouble<'_> {
    type Item = Cause;

    fn take(&mut self) -> Option<Cause> {
        self.0.trouble()
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        self.0.wait(Interest::Trouble, key, waker);
    }

    fn leave(&mut self, key: u64) {
        self.0.leave(Interest::Trouble, key);
    }
}

/// How the connection ended.
#[derive(Debug)]
pub(crate) struct Over<'a>(pub(crate) Line<'a>);

impl Place for Over<'_> {
    type Item = Result<Ending, Cause>;

    fn take(&mut self) -> Option<Self::Item> {
        Some(match self.0.trouble()? {
            Cause::Ended(ending) => Ok(ending),
            Cause::Completion(error) => Ok(Ending::by(error)),
            // The event that says so follows.
            Cause::Verbs(error) if error.is_gone() => Ok(self.0.tracked.mailbox().ending()?),
            cause => Err(cause),
        })
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        self.0.wait(Interest::Trouble, key, waker);
    }

    fn leave(&mut self, key: u64) {
        self.0.leave(Interest::Trouble, key);
    }
}
