//! An event's way up.

use std::io;
use std::sync::Arc;

use rdmacm_abi::{Command, EventNumber, EventResponse, GetEvent};
use zerocopy::FromZeros;

use super::{Owner, Shared};
use crate::error::{Error, Result};
use crate::event::{Event, EventKind};
use crate::id::{CmId, IdState};
use crate::operation::Operation;
use crate::token::Token;
use crate::ucma::{Attachment, transact};

/// How many events that concern nobody are read in one look: peers may ask for a
/// listener that is gone as fast as they are read.
const SHARE: usize = 32;

impl Shared {
    /// The next event that concerns a living id, if there is one.
    pub(super) fn receive(self: &Arc<Self>) -> Result<Option<Event>> {
        let called_for = self.ucma.take_notification();
        let found = self.look();
        if called_for && !matches!(found, Ok(None)) {
            // There may be more that the kernel does not announce.
            self.ucma.notify();
        }
        found
    }

    fn look(self: &Arc<Self>) -> Result<Option<Event>> {
        for _ in 0..SHARE {
            let answer = match self.local_events.take() {
                Some(posted) => posted.into(),
                None => match self.get_event()? {
                    Some(answer) => answer,
                    None => return Ok(None),
                },
            };
            if let Some(event) = self.deliver(&answer) {
                return Ok(Some(event));
            }
        }
        // Whoever waits looks again, but for its deadline and its waker.
        self.ucma.notify();
        Ok(None)
    }

    /// `GET_EVENT`; the device's file is non-blocking.
    fn get_event(&self) -> Result<Option<EventResponse>> {
        let mut answer = EventResponse::new_zeroed();
        let ucma = self.ucma.as_ref();
        loop {
            match transact(ucma, &GetEvent::new(), &mut answer, Attachment::None) {
                Ok(()) => return Ok(Some(answer)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                // Without effect: the event, if any, is still queued.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Error::command(
                        Operation::GetEvent,
                        GetEvent::NUMBER,
                        &error,
                    ));
                }
            }
        }
    }

    /// Finds the event's owner by its token. Events of ids that are gone are
    /// dropped; a connect request brings a child even then, and nobody would
    /// ever destroy it.
    fn deliver(self: &Arc<Self>, answer: &EventResponse) -> Option<Event> {
        let token = Token::from_kernel(answer.uid);
        let is_request = answer.event == EventNumber::CONNECT_REQUEST;
        match self.owner(token) {
            Some((listener, _)) if is_request => {
                listener.follow(answer.id, self);
                let child = CmId::adopt(self, &listener, answer);
                Some(Event::new(&listener, answer).with_child(child))
            }
            Some((id, Concern::Id)) => {
                id.forget_answers();
                if answers(answer.event) {
                    id.is_answered();
                }
                let event = Event::new(&id, answer);
                if let EventKind::AddrInfoResolved | EventKind::AddrInfoError = event.kind() {
                    id.errand_is_over(event.failure());
                }
                Some(event)
            }
            Some((id, Concern::Group)) => Some(Event::new(&id, answer).of_group(token)),
            None => {
                if is_request {
                    self.destroy(answer.id);
                }
                None
            }
        }
    }

    fn owner(&self, token: Token) -> Option<(Arc<IdState>, Concern)> {
        let (id, concern) = match self.owners().get(&token)? {
            Owner::Id(id) => (id.upgrade()?, Concern::Id),
            Owner::Group(id) => (id.upgrade()?, Concern::Group),
        };
        id.is_open().then_some((id, concern))
    }
}

/// Whether an id that has asked its peer need not wait any more.
fn answers(event: EventNumber) -> bool {
    matches!(
        event,
        EventNumber::CONNECT_RESPONSE
            | EventNumber::CONNECT_ERROR
            | EventNumber::UNREACHABLE
            | EventNumber::REJECTED
            | EventNumber::ESTABLISHED
            | EventNumber::DISCONNECTED
            | EventNumber::DEVICE_REMOVAL
    )
}

/// What of an id an event concerns.
enum Concern {
    Id,
    Group,
}
