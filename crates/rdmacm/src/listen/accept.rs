//! The accepting side of the handshake.

use std::future::Future;
use std::sync::Arc;

use rdmacm_core::{
    ConnInfo, ConnParam, Error, Event, EventKind, QpState, QueuePair, RequestAttrs, Transport,
};

use super::Request;
use crate::attempt::{Attempt, ends_attempt, ends_handshake, peer_gone_or};
use crate::close_reason::CloseReason;
use crate::error::{Cause, Result};
use crate::established::Established;
use crate::event_loop::{ManagedId, QueuedEvent, is_iwarp};
use crate::neighbours::{NeighbourLookup, NeighbourPath};
use crate::stage::Stage;

/// Accepts a request, and waits until the connection is established.
#[expect(
    clippy::manual_async_fn,
    reason = "the future of an `async fn` holds each argument twice"
)]
pub(crate) fn accept(
    attempt: Attempt,
    request: Request,
    queue_pair: Arc<dyn QueuePair>,
    param: ConnParam,
) -> impl Future<Output = Result<Established>> {
    async move {
        // A block of its own: what it needs takes no room in the future while that waits below.
        let mut accepting = {
            let attrs = request_attrs(&attempt, &request)?;
            let transport = queue_pair.transport();
            if let Some(lookup) = look_up_peer(&attempt, &request, transport, &attrs) {
                // It is rare and its future large.
                let found = Box::pin(lookup.finish(&attempt)).await;
                found.map_err(|cause| attempt.fail_on(request.id.id(), STAGE, cause))?;
            }
            Accepting::begin(attempt, request, &queue_pair, param, attrs)?
        };
        loop {
            let Accepting { attempt, id, .. } = &accepting;
            let event = id.next(attempt.until).await;
            let event = event.map_err(|error| attempt.fail_on(id.id(), STAGE, error))?;
            match accepting.handle(event) {
                Accepted::Pending(pending) => accepting = pending,
                Accepted::Done(outcome) => return outcome,
            }
        }
    }
}

const STAGE: Stage = Stage::Accept;

/// How the request moves a queue pair to RTS.
pub(crate) fn request_attrs(attempt: &Attempt, request: &Request) -> Result<RequestAttrs> {
    let id = request.id.id();
    let attrs = id.request_attrs();
    attrs.map_err(|error| attempt.fail_on(id, STAGE, peer_gone_or(error)))
}

/// Asks for the peer's host, if accepting the request would sleep for it.
pub(crate) fn look_up_peer(
    attempt: &Attempt,
    request: &Request,
    transport: Transport,
    attrs: &RequestAttrs,
) -> Option<NeighbourLookup> {
    if transport != Transport::RoCE {
        return None;
    }
    let (port, source_gid_index) = attrs.source();
    let path = NeighbourPath {
        gid: attrs.peer_gid(),
        port,
        source_gid_index,
    };
    NeighbourLookup::begin(&attempt.event_loop, request.id.id(), &path)
}

/// A request that was accepted, and whose connection is not established yet.
#[derive(Debug)]
pub(crate) struct Accepting {
    pub(crate) attempt: Attempt,
    pub(crate) id: ManagedId,
    peer: Option<ConnInfo>,
}

/// What an event makes of a request that was accepted.
#[derive(Debug)]
pub(crate) enum Accepted {
    Pending(Accepting),
    Done(Result<Established>),
}

impl Accepting {
    /// Accepts a request.
    pub(crate) fn begin(
        attempt: Attempt,
        request: Request,
        queue_pair: &Arc<dyn QueuePair>,
        param: ConnParam,
        attrs: RequestAttrs,
    ) -> Result<Self> {
        let Request {
            id: mut managed,
            event,
            ..
        } = request;
        // On RoCE and InfiniBand only the request says it.
        let peer = event.conn();
        let id = managed.id().clone();
        managed.attach(Arc::clone(queue_pair));
        managed.reply_to_disconnect();
        let accepted = id
            .with_queue_pair(queue_pair.as_ref())
            .accept_by(attrs, param);
        accepted.map_err(|error| {
            if is_not_initialized(&error) {
                return attempt.fail_on(&id, Stage::QueuePair, error);
            }
            let cause = match error.raw_os_error() {
                // iWARP also refuses a queue pair of another device so.
                Some(libc::EINVAL) if is_iwarp(queue_pair.as_ref()) => error.into(),
                _ => peer_gone_or(error),
            };
            attempt.fail_on(&id, STAGE, cause)
        })?;
        managed.set_in_handshake(true);
        Ok(Self {
            attempt,
            id: managed,
            peer,
        })
    }

    /// Handles an event of its id.
    pub(crate) fn handle(mut self, event: QueuedEvent) -> Accepted {
        let attempt = &self.attempt;
        let event = match event {
            QueuedEvent::Cm(event) => event,
            QueuedEvent::CommandFailed(_) => return Accepted::Pending(self),
            QueuedEvent::Closed => {
                return Accepted::Done(Err(attempt.fail(STAGE, Cause::PeerGone)));
            }
        };
        if is_established(&event) {
            self.id.set_in_handshake(false);
            if let Some(reason) = CloseReason::from_event(&event) {
                self.id.queue().close_with(reason);
            }
            let established = Established::new(attempt, STAGE, self.id, &event);
            return Accepted::Done(Ok(Established {
                peer: self.peer,
                ..established
            }));
        }
        if ends_attempt(&event) {
            if ends_handshake(&event) {
                self.id.set_in_handshake(false);
            }
            let failed = attempt.failed(self.id.id(), STAGE, &event);
            return Accepted::Done(Err(failed));
        }
        Accepted::Pending(self)
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

/// Whether the queue pair could not even be moved to its first state, which does not depend
/// on the peer.
fn is_not_initialized(error: &Error) -> bool {
    matches!(error, Error::QueuePair { state, .. } if *state == QpState::INIT)
}
