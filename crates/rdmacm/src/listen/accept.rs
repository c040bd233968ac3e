//! The accepting side of the handshake.

use std::sync::Arc;

use rdmacm_core::{ConnParam, Event, EventKind, QueuePair};

use super::Request;
use crate::close_reason::CloseReason;
use crate::connect::{Attempt, ends_attempt, ends_handshake, peer_gone_or};
use crate::connection::Established;
use crate::error::{Cause, Result};
use crate::event_loop::{QueuedEvent, is_iwarp};
use crate::stage::Stage;

/// Accepts a request, and waits until the connection is established.
pub(crate) async fn accept(
    attempt: Attempt,
    request: Request,
    queue_pair: Arc<dyn QueuePair>,
    param: ConnParam,
) -> Result<Established> {
    let stage = Stage::Establish;
    let Request {
        id: mut managed,
        event,
    } = request;
    // On RoCE and InfiniBand only the request says it.
    let peer = event.conn();
    let id = managed.id().clone();
    managed.attach(Arc::clone(&queue_pair));
    managed.reply_to_disconnect();
    let accepted = id.with_queue_pair(queue_pair.as_ref()).accept(param);
    accepted.map_err(|error| {
        let cause = match error.raw_os_error() {
            // iWARP also refuses a queue pair of another device so.
            Some(libc::EINVAL) if is_iwarp(queue_pair.as_ref()) => error.into(),
            _ => peer_gone_or(error),
        };
        attempt.fail_on(&id, stage, cause)
    })?;
    managed.set_in_handshake(true);
    loop {
        let event = managed.next(attempt.until).await;
        let event = match event.map_err(|error| attempt.fail_on(&id, stage, error))? {
            QueuedEvent::Cm(event) => event,
            QueuedEvent::CommandReturned(_) => continue,
            QueuedEvent::Closed => return Err(attempt.fail(stage, Cause::PeerGone)),
        };
        if is_established(&event) {
            managed.set_in_handshake(false);
            if let Some(reason) = CloseReason::from_event(&event) {
                managed.queue().close_with(reason);
            }
            let established = Established::new(&attempt, stage, managed, &event);
            return Ok(Established {
                peer,
                ..established
            });
        }
        if ends_attempt(&event) {
            if ends_handshake(&event) {
                managed.set_in_handshake(false);
            }
            return Err(attempt.failed(&id, stage, &event));
        }
    }
}

/// Whether the event says that the connection is established. On RoCE and InfiniBand,
/// DISCONNECTED may be the only event: the kernel handles two messages at once, on the
/// processors that received them, and ignores readiness (RTU) after a disconnect request
/// (DREQ). Only a peer that is connected disconnects.
fn is_established(event: &Event) -> bool {
    let established = matches!(
        event.kind(),
        EventKind::Established | EventKind::Disconnected
    );
    established && event.failure().is_none()
}
