//! Receiving events.

use std::io;
use std::sync::Arc;

use rdmacm_abi::{Command, EventNumber, EventResponse, GetEvent};
use zerocopy::FromZeros;

use super::migrate::migrate_child;
use crate::channel_state::EventTarget;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::event_kind::EventKind;
use crate::id::CmId;
use crate::id_state::{Channel, IdState};
use crate::operation::Operation;
use crate::token::Token;
use crate::ucma::{Attachment, transact};

/// How many events of unknown ids one call drops: peers may send requests to a
/// listener that is gone as fast as they are read.
const MAX_DROPPED: usize = 32;

/// Reads the next event of an id that exists, if there is one.
pub(super) fn receive(channel: &Arc<Channel>) -> Result<Option<Event>> {
    let was_notified = channel.ucma.take_notification();
    let received = receive_some(channel);
    if was_notified && !matches!(received, Ok(None)) {
        // There may be more events that the kernel does not announce.
        channel.ucma.notify();
    }
    received
}

fn receive_some(channel: &Arc<Channel>) -> Result<Option<Event>> {
    for _ in 0..MAX_DROPPED {
        let answer = match channel.pop_local_event() {
            Some(local) => local.into(),
            None => match get_event(channel)? {
                Some(answer) => answer,
                None => return Ok(None),
            },
        };
        if let Some(event) = deliver(channel, &answer) {
            return Ok(Some(event));
        }
    }
    // A waiting caller continues, after it has checked its deadline and its waker.
    channel.ucma.notify();
    Ok(None)
}

/// `GET_EVENT`, on a non-blocking file.
fn get_event(channel: &Channel) -> Result<Option<EventResponse>> {
    let mut answer = EventResponse::new_zeroed();
    let ucma = channel.ucma.as_ref();
    loop {
        let error = match transact(ucma, &GetEvent::new(), &mut answer, Attachment::None) {
            Ok(()) => return Ok(Some(answer)),
            Err(error) => error,
        };
        match error.kind() {
            io::ErrorKind::WouldBlock => return Ok(None),
            // Without effect: the event, if any, is still queued.
            io::ErrorKind::Interrupted => {}
            _ => {
                let operation = Operation::GetEvent;
                return Err(Error::command(operation, GetEvent::NUMBER, &error));
            }
        }
    }
}

/// Makes an event for the id with the event's token, if it exists. A connect request
/// to an id that is gone brings a child all the same, which nothing else would
/// destroy.
fn deliver(channel: &Arc<Channel>, answer: &EventResponse) -> Option<Event> {
    let token = Token::from_kernel(answer.uid);
    let is_request = answer.event == EventNumber::CONNECT_REQUEST;
    let Some((id, target)) = find(channel, token) else {
        if is_request {
            channel.destroy(answer.id);
        }
        return None;
    };
    if is_request {
        migrate_child(&id, answer.id, channel);
        let child = CmId::from_request(channel, &id, answer);
        return Some(Event::new(&id, answer).with_child(child));
    }
    Some(match target {
        EventTarget::Id => {
            let event = Event::new(&id, answer);
            update(&id, &event, answer.event);
            event
        }
        EventTarget::Group => Event::new(&id, answer).of_group(token),
    })
}

fn find(channel: &Channel, token: Token) -> Option<(Arc<IdState>, EventTarget)> {
    let registrations = channel.registrations();
    let registration = registrations.get(&token)?;
    let id = registration.id.upgrade()?;
    id.is_open().then_some((id, registration.target))
}

/// Updates an id for an event of it.
fn update(id: &IdState, event: &Event, number: EventNumber) {
    id.cache().invalidate();
    if is_answer(number) {
        id.set_answered();
    }
    if let EventKind::AddrInfoResolved | EventKind::AddrInfoError = event.kind() {
        id.resolution().finish(event.failure());
    }
}

/// Whether after this event an id needs no answer of its peer any more.
fn is_answer(event: EventNumber) -> bool {
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
