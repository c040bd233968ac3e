//! Receiving events.

use std::io;
use std::sync::Arc;

use rdmacm_abi::{Command, EventNumber, EventResponse, GetEvent};
use zerocopy::FromZeros;

use super::migrate::migrate_child;
use crate::address_abi::AddressAbi;
use crate::channel_state::HeldSources;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::event_failure::EventFailure;
use crate::id::CmId;
use crate::id_state::{Channel, IdState};
use crate::operation::Operation;
use crate::token::Token;
use crate::ucma::{Attachment, Unopened};

/// How many events of unknown ids one call drops: peers may send requests to a
/// listener that is gone as fast as they are read.
const MAX_DROPPED: usize = 32;

/// Reads the next event of an id that exists, if there is one, unless there is a wake-up.
/// The result is made where the caller wants it, by `found`. When there is no event,
/// `nothing` has the result, or waits.
#[inline]
pub(super) fn receive<T>(
    channel: &Arc<Channel>,
    found: impl FnOnce(Event) -> T,
    mut nothing: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let mut answer = EventResponse::new_zeroed();
    loop {
        let is_signalled = channel.ucma.has_signal();
        let mut is_read = false;
        if !is_signalled {
            let sources = channel.hold_request_sources();
            is_read = get_event(channel, &mut answer)?;
            if is_read {
                if let Some(event) = deliver(channel, &answer, &sources) {
                    return Ok(found(event));
                }
            }
        }
        if is_signalled || is_read {
            if let Some(event) = receive_more(channel, is_signalled)? {
                return Ok(found(event));
            }
        }
        if let Some(result) = nothing()? {
            return Ok(result);
        }
    }
}

/// Reads on, when there is a signal or after an event of an id that is gone.
#[cold]
fn receive_more(channel: &Arc<Channel>, is_signalled: bool) -> Result<Option<Event>> {
    if is_signalled && channel.ucma.take_wake() {
        return Err(Error::Woken);
    }
    let was_notified = is_signalled && channel.ucma.take_notification();
    let received = receive_some(channel);
    if was_notified && !matches!(received, Ok(None)) {
        // There may be more events that the kernel does not announce.
        channel.ucma.notify();
    }
    received
}

fn receive_some(channel: &Arc<Channel>) -> Result<Option<Event>> {
    for _ in 0..MAX_DROPPED {
        let mut answer = EventResponse::new_zeroed();
        let sources = channel.hold_request_sources();
        if !get_event(channel, &mut answer)? {
            return Ok(None);
        }
        if let Some(event) = deliver(channel, &answer, &sources) {
            return Ok(Some(event));
        }
    }
    // A waiting caller continues, after it has checked its deadline and its waker.
    channel.ucma.notify();
    Ok(None)
}

/// Gets an event of this library or of the kernel. Returns whether there was one.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "an event is made where it is returned"
)]
fn get_event(channel: &Channel, answer: &mut EventResponse) -> Result<bool> {
    if let Some(local) = channel.pop_local_event() {
        *answer = local.into();
        return Ok(true);
    }
    let ucma = &channel.ucma;
    match ucma.transact(&GetEvent::new(), answer, Attachment::None) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(false),
        Err(error) => without_event(channel, answer, error),
    }
}

/// Continues after `GET_EVENT` has failed, on a non-blocking file.
#[cold]
fn without_event(
    channel: &Channel,
    answer: &mut EventResponse,
    mut error: io::Error,
) -> Result<bool> {
    loop {
        match error.kind() {
            io::ErrorKind::WouldBlock => return Ok(false),
            // Without effect: the event, if any, is still queued.
            io::ErrorKind::Interrupted => {}
            _ => {
                let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
                if let Some(Unopened(refused)) = inner {
                    return Err(Error::wait(refused));
                }
                let operation = Operation::GetEvent;
                return Err(Error::command(operation, GetEvent::NUMBER, &error));
            }
        }
        let ucma = &channel.ucma;
        match ucma.transact(&GetEvent::new(), answer, Attachment::None) {
            Ok(()) => return Ok(true),
            Err(again) => error = again,
        }
    }
}

/// Makes an event for the id with the event's token, if it exists.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "an event is made where it is returned"
)]
fn deliver(
    channel: &Arc<Channel>,
    answer: &EventResponse,
    sources: &HeldSources<Channel>,
) -> Option<Event> {
    let token = Token::from_kernel(answer.uid);
    let id = channel.find(token);
    if answer.event == EventNumber::CONNECT_REQUEST {
        // Borrowed: a listener keeps the file of its requests open.
        return deliver_request(channel, id.as_deref(), answer, sources);
    }
    let id = id?;
    if !id.is_open() {
        return None;
    }
    // Otherwise it is the token of a group.
    if token == id.token() {
        update(channel, &id, answer);
    }
    Some(Event::new(id.handle().clone(), None, answer))
}

/// Makes the event of a connect request. One to an id that is gone brings a child all the
/// same, which nothing else would destroy.
#[inline(never)]
fn deliver_request(
    channel: &Arc<Channel>,
    listener: Option<&IdState>,
    answer: &EventResponse,
    sources: &HeldSources<Channel>,
) -> Option<Event> {
    let Some(listener) = listener.filter(|listener| listener.is_open()) else {
        channel.destroy_child(answer.id, sources);
        return None;
    };
    let elsewhere = migrate_child(listener, answer.id, channel);
    let channel = elsewhere.as_ref().unwrap_or(channel);
    let child = CmId::from_request(channel, listener, answer);
    Some(Event::new(listener.handle().clone(), Some(child), answer))
}

/// Updates an id for an event of it.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "an event is made where it is returned"
)]
fn update(channel: &Channel, id: &IdState, answer: &EventResponse) {
    // The commands for IP take partition and GIDs from the route.
    let keeps_addresses = || channel.address_abi.current() == AddressAbi::AnyFamily;
    match answer.event {
        EventNumber::ROUTE_RESOLVED if keeps_addresses() => id.cache().invalidate_paths(),
        _ => id.cache().invalidate(),
    }
    match answer.event {
        event if is_answer(event) => id.answering().set_answered(),
        EventNumber::ADDRINFO_RESOLVED | EventNumber::ADDRINFO_ERROR => {
            finish_resolution(id, answer);
        }
        _ => {}
    }
}

#[cold]
fn finish_resolution(id: &IdState, answer: &EventResponse) {
    let failure = EventFailure::of(answer.event.into(), answer.status());
    id.resolution().finish(failure);
}

/// Whether after this event an id needs no answer of its peer any more.
///
/// A peer that is unreachable may still answer: the kernel also says so when the link-layer address of
/// the neighbour changes (`cma_netevent_work_handler`), and goes on waiting. Nor is the removal of the
/// device an answer: the kernel carries commands out for a moment after it (`ucma_event_handler`).
fn is_answer(event: EventNumber) -> bool {
    matches!(
        event,
        // A datagram service has answered with another queue key than the id's.
        EventNumber::ADDR_ERROR
            | EventNumber::CONNECT_RESPONSE
            | EventNumber::CONNECT_ERROR
            | EventNumber::REJECTED
            | EventNumber::ESTABLISHED
            | EventNumber::DISCONNECTED
    )
}
