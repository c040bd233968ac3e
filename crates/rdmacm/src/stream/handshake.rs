//! Connecting and accepting with queue pairs that carry byte streams.

use std::sync::Arc;

use rdmacm_core::{ConnParam, IdHandle, QueuePair, RequestAttrs};
use rdmacm_rsocket::Handshake;

use super::StreamHandle;
use super::options::StreamOptions;
use super::queue_pair::StreamQueuePair;
use crate::attempt::Attempt;
use crate::connect::{ConnectAttempts, ConnectConfig, ConnectTarget, handshake, resolve_address};
use crate::data::limit_retries;
use crate::error::{Cause, Result};
use crate::event_loop::{EventLoop, EventQueue, QueuedEvent, wait_for};
use crate::listen::{Accepted, Accepting, Request, look_up_peer, request_attrs};
use crate::neighbours::NeighbourLookup;
use crate::stage::Stage;

/// Connects to the first address that answers.
pub(crate) async fn connect(
    attempts: &ConnectAttempts<'_>,
    options: &StreamOptions,
) -> Result<StreamHandle> {
    let config = attempts.config;
    attempts
        .first(&|attempt, target| Box::pin(connect_one(attempt, config, target, options)))
        .await
}

async fn connect_one(
    mut attempt: Attempt,
    config: &ConnectConfig,
    target: ConnectTarget,
    options: &StreamOptions,
) -> Result<StreamHandle> {
    let resolving = resolve_address(&attempt, config, &target).await?;
    let id = resolving.id().clone();
    let queue_pair = create(&attempt, &attempt.event_loop, &id, options)?;
    let mut param = config.param.clone();
    limit_retries(&mut param);
    let param = with_handshake(&attempt, &id, param, &queue_pair)?;
    let routed = resolving.resolved_meanwhile(&attempt).await?;
    let shared: Arc<dyn QueuePair> = queue_pair.clone();
    let established = handshake(&mut attempt, routed, shared, param).await?;
    let peer = Handshake::from_bytes(&established.private_data)
        .map_err(|error| attempt.fail_on(&id, Stage::Connect, Cause::Handshake(error)))?;
    queue_pair.connected(&peer);
    Ok(StreamHandle::new(established, queue_pair, true))
}

/// Accepts a peer, and waits until the stream is established.
pub(crate) async fn accept(
    attempt: Attempt,
    request: Request,
    param: ConnParam,
    options: &StreamOptions,
) -> Result<StreamHandle> {
    let mut pending = PendingStream::begin(attempt, request, param, options)?;
    loop {
        let attempt = pending.attempt();
        let event = wait_for(&attempt.event_loop, &**pending.queue(), attempt.until).await;
        let event = event.map_err(|error| attempt.fail(Stage::Accept, error))?;
        match pending.handle(event) {
            Ok(next) => pending = next,
            Err(outcome) => return outcome,
        }
    }
}

/// A peer whose stream is not established yet.
#[derive(Debug)]
pub(super) struct PendingStream {
    queue_pair: Arc<StreamQueuePair>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// The peer's host is asked for.
    LookingUp(NeighbourLookup, Box<Acceptable>),
    /// It was accepted.
    Accepting(Accepting),
}

/// What accepting a request takes.
#[derive(Debug)]
struct Acceptable {
    attempt: Attempt,
    request: Request,
    param: ConnParam,
    attrs: RequestAttrs,
}

impl Acceptable {
    fn accept(self, queue_pair: &Arc<StreamQueuePair>) -> Result<Phase> {
        let Self {
            attempt,
            request,
            param,
            attrs,
        } = self;
        let shared: Arc<dyn QueuePair> = queue_pair.clone();
        let accepting = Accepting::begin(attempt, request, &shared, param, attrs);
        accepting.map(Phase::Accepting)
    }
}

impl PendingStream {
    /// Accepts a peer whose request has a handshake, once its host is known; rejects any other.
    pub(super) fn begin(
        attempt: Attempt,
        request: Request,
        param: ConnParam,
        options: &StreamOptions,
    ) -> Result<Self> {
        let id = request.id.id();
        let peer = Handshake::from_bytes(request.event.private_data())
            .map_err(|error| attempt.fail_on(id, Stage::Accept, Cause::Handshake(error)))?;
        let queue_pair = create(&attempt, request.id.event_loop(), id, options)?;
        queue_pair.connected(&peer);
        let param = with_handshake(&attempt, id, param, &queue_pair)?;
        let attrs = request_attrs(&attempt, &request)?;
        let lookup = look_up_peer(&attempt, &request, queue_pair.transport(), &attrs);
        let acceptable = Acceptable {
            attempt,
            request,
            param,
            attrs,
        };
        let phase = match lookup {
            Some(lookup) => Phase::LookingUp(lookup, Box::new(acceptable)),
            None => acceptable.accept(&queue_pair)?,
        };
        Ok(Self { queue_pair, phase })
    }

    pub(super) fn attempt(&self) -> &Attempt {
        match &self.phase {
            Phase::LookingUp(_, acceptable) => &acceptable.attempt,
            Phase::Accepting(accepting) => &accepting.attempt,
        }
    }

    /// What [`handle`](Self::handle) handles.
    pub(super) fn queue(&self) -> &Arc<EventQueue> {
        match &self.phase {
            Phase::LookingUp(lookup, _) => lookup.queue(),
            Phase::Accepting(accepting) => accepting.id.queue(),
        }
    }

    /// Handles an event. Returns the outcome as an error, if there is one.
    pub(super) fn handle(self, event: QueuedEvent) -> Result<Self, Result<StreamHandle>> {
        let Self { queue_pair, phase } = self;
        let phase = match phase {
            Phase::LookingUp(lookup, acceptable) => match lookup.outcome(&event) {
                None => Phase::LookingUp(lookup, acceptable),
                Some(Ok(())) => acceptable.accept(&queue_pair).map_err(Err)?,
                Some(Err(cause)) => {
                    let Acceptable {
                        attempt, request, ..
                    } = &*acceptable;
                    return Err(Err(attempt.fail_on(request.id.id(), Stage::Accept, cause)));
                }
            },
            Phase::Accepting(accepting) => match accepting.handle(event) {
                Accepted::Pending(accepting) => Phase::Accepting(accepting),
                Accepted::Done(outcome) => {
                    let stream = outcome
                        .map(|established| StreamHandle::new(established, queue_pair, false));
                    return Err(stream);
                }
            },
        };
        Ok(Self { queue_pair, phase })
    }
}

fn create(
    attempt: &Attempt,
    event_loop: &Arc<EventLoop>,
    id: &IdHandle,
    options: &StreamOptions,
) -> Result<Arc<StreamQueuePair>> {
    let created = StreamQueuePair::create(event_loop, id, options);
    created.map_err(|error| attempt.no_queue_pair(id, error))
}

fn with_handshake(
    attempt: &Attempt,
    id: &IdHandle,
    param: ConnParam,
    queue_pair: &StreamQueuePair,
) -> Result<ConnParam> {
    let param = param.private_data(&queue_pair.handshake().to_bytes());
    param.map_err(|error| attempt.fail_on(id, Stage::Connect, error))
}
