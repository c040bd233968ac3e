//! What is waited for at a socket.

use std::io;
use std::task::Waker;

use rdmacm_core::{EventKind, IdHandle};
use rdmacm_verbs::SendOperation;

use super::datagram::Datagram;
use super::open::Open;
use crate::error::{Cause, Error};
use crate::hub::{Letter, Place, next};
use crate::messages::{Destination, Fault, Interest};
use crate::step::Step;
use crate::steps::Attempt;

impl Open {
    pub(super) fn id(&self) -> &IdHandle {
        self.tracked.id()
    }

    /// Waits for something, by the attempt's end.
    pub(super) async fn wait<P: Place + Unpin>(
        &self,
        attempt: &Attempt,
        place: P,
    ) -> Result<P::Item, Cause> {
        attempt.hub.hear_of(self.traffic.device())?;
        Ok(next(&attempt.hub, place, attempt.until).await?)
    }

    pub(super) fn fail(&self, attempt: &Attempt, step: Step, cause: Cause) -> Error {
        attempt.fail_on(self.id(), step, cause)
    }

    /// Answers questions, sorts what has completed, and says why nothing more is
    /// carried, if that is so.
    fn trouble(&self) -> Option<Cause> {
        let over = self.heed_events();
        let device = self.traffic.device();
        match over {
            // Nobody need wait here any more who would hear that the device waits for
            // its context to be closed.
            Some(EventKind::DeviceRemoval) => device.close(),
            Some(_) => device.heed_removal(),
            None => {}
        }
        self.traffic.pump();
        match (self.traffic.fault(), over) {
            (Some(Fault::Device(error)), _) => Some(Cause::Verbs(error)),
            (_, Some(kind)) => Some(Cause::SocketOver(kind)),
            (Some(Fault::Failed(error)), None) => Some(Cause::Completion(error)),
            (Some(Fault::Flushed | Fault::Refused(_)), None) => {
                let error = io::Error::other("the queue pair is in the error state");
                Some(Cause::QueuePair(error))
            }
            (None, None) => None,
        }
    }

    /// Reads what has come for the id, and returns what ended the socket.
    fn heed_events(&self) -> Option<EventKind> {
        let mailbox = self.tracked.mailbox();
        while let Some(letter) = mailbox.take() {
            match letter {
                Letter::Event(event) => match event.kind() {
                    EventKind::ConnectRequest => {
                        let number = self.traffic.queue_pair().number();
                        self.service.answer(*event, number, self.local.qkey);
                    }
                    kind @ (EventKind::DeviceRemoval | EventKind::AddrChange) => {
                        let _ = self.over.set(kind);
                        // All who wait are told.
                        mailbox.stop();
                    }
                    _ => {}
                },
                Letter::Returned(_) => {}
                Letter::Stop => break,
            }
        }
        self.over.get().copied()
    }

    /// The id, the groups and the queue pair may all tell of something.
    fn join_waiters(&self, interest: Interest, key: u64, waker: &Waker) {
        self.tracked.mailbox().wait(key, waker);
        self.groups.wait(key, waker);
        self.traffic.wait(interest, key, waker);
    }

    fn leave_waiters(&self, interest: Interest, key: u64) {
        self.traffic.leave(interest, key);
        self.groups.leave_waiters(key);
        self.tracked.mailbox().leave(key);
    }
}

/// The next datagram: those that have arrived first, then a group that was lost, then
/// why no more arrive.
#[derive(Debug)]
pub(super) struct Arrivals<'a>(pub(super) &'a Open);

impl Place for Arrivals<'_> {
    type Item = Result<Datagram, Cause>;

    fn take(&mut self) -> Option<Self::Item> {
        let Self(open) = self;
        let trouble = open.trouble();
        let arrival = open.traffic.take_arrival();
        if let Some(arrival) = arrival {
            return Some(Ok(Datagram::new(arrival, &open.local, &open.traffic)));
        }
        let lost = open.groups.take_lost(open.traffic.queue_pair());
        lost.or(trouble).map(Err)
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        self.0.join_waiters(Interest::Arrival, key, waker);
    }

    fn leave(&mut self, key: u64) {
        self.0.leave_waiters(Interest::Arrival, key);
    }
}

/// Room for one more datagram, which is posted there.
#[derive(Debug)]
pub(super) struct Room<'a> {
    pub(super) open: &'a Open,
    pub(super) operation: SendOperation,
    pub(super) bytes: &'a [u8],
    pub(super) to: Destination,
}

impl Place for Room<'_> {
    type Item = Result<(), Cause>;

    fn take(&mut self) -> Option<Self::Item> {
        if let Some(cause) = self.open.trouble() {
            return Some(Err(cause));
        }
        let traffic = &self.open.traffic;
        let sent = traffic.send(self.operation, self.bytes, Some(&self.to))?;
        Some(sent.map_err(Cause::from))
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        self.open.join_waiters(Interest::Room, key, waker);
    }

    fn leave(&mut self, key: u64) {
        self.open.leave_waiters(Interest::Room, key);
    }
}

/// The end of all that was sent.
#[derive(Debug)]
pub(super) struct Quiet<'a>(pub(super) &'a Open);

impl Place for Quiet<'_> {
    type Item = Result<(), Cause>;

    fn take(&mut self) -> Option<Self::Item> {
        let trouble = self.0.trouble();
        match trouble {
            Some(cause) => Some(Err(cause)),
            None => self.0.traffic.is_quiet().then_some(Ok(())),
        }
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        self.0.join_waiters(Interest::Quiet, key, waker);
    }

    fn leave(&mut self, key: u64) {
        self.0.leave_waiters(Interest::Quiet, key);
    }
}
