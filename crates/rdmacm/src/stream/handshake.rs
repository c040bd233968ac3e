//! Connecting and accepting with queue pairs that carry byte streams.

use std::sync::Arc;

use rdmacm_core::{ConnParam, IdHandle, QueuePair};
use rdmacm_rsocket::Handshake;

use super::StreamHandle;
use super::options::StreamOptions;
use super::queue_pair::StreamQueuePair;
use crate::connect::{Attempt, ConnectAttempts, ConnectConfig, ConnectTarget, handshake, resolve};
use crate::error::{Cause, Result};
use crate::event_loop::{EventLoop, QueuedEvent};
use crate::listen::{Accepted, Accepting, Request};
use crate::messages::{ENDLESS_RETRIES, with_device_error};
use crate::stage::Stage;

/// Connects to the first address that answers.
pub(crate) async fn connect(
    attempts: &ConnectAttempts<'_>,
    options: &StreamOptions,
) -> Result<StreamHandle> {
    let config = attempts.config;
    let connected = attempts
        .first(&|attempt, target| Box::pin(connect_one(attempt, config, target, options)))
        .await;
    connected.map_err(with_device_error)
}

async fn connect_one(
    attempt: Attempt,
    config: &ConnectConfig,
    target: ConnectTarget,
    options: &StreamOptions,
) -> Result<StreamHandle> {
    let routed = resolve(&attempt, config, &target).await?;
    let id = routed.id.id().clone();
    let queue_pair = create(&attempt, &attempt.event_loop, &id, options)?;
    let mut param = with_handshake(&attempt, &id, config.param.clone(), &queue_pair)?;
    if options.keep_alive.is_some() && param.retries() == ENDLESS_RETRIES {
        // Requests to a dead peer must fail at some time.
        param = param.retry_count(ENDLESS_RETRIES - 1);
    }
    let shared: Arc<dyn QueuePair> = queue_pair.clone();
    let established = handshake(attempt.clone(), routed, shared, param).await?;
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
        let Accepting { attempt, id, .. } = pending.accepting();
        let event = id.next(attempt.until).await;
        let event = event.map_err(|error| attempt.fail_on(id.id(), Stage::Establish, error))?;
        match pending.handle(event) {
            Ok(next) => pending = next,
            Err(outcome) => return outcome,
        }
    }
}

/// A peer that was accepted, and whose stream is not established yet.
#[derive(Debug)]
pub(super) struct PendingStream {
    accepting: Accepting,
    queue_pair: Arc<StreamQueuePair>,
}

impl PendingStream {
    /// Accepts a peer whose request has a handshake; rejects any other.
    pub(super) fn begin(
        attempt: Attempt,
        request: Request,
        param: ConnParam,
        options: &StreamOptions,
    ) -> Result<Self> {
        let id = request.id.id().clone();
        let peer = Handshake::from_bytes(request.event.private_data())
            .map_err(|error| attempt.fail_on(&id, Stage::Establish, Cause::Handshake(error)))?;
        let queue_pair = create(&attempt, request.id.event_loop(), &id, options);
        let queue_pair = queue_pair.map_err(with_device_error)?;
        queue_pair.connected(&peer);
        let param = with_handshake(&attempt, &id, param, &queue_pair)?;
        let shared: Arc<dyn QueuePair> = queue_pair.clone();
        let accepting = Accepting::begin(attempt, request, &shared, param);
        Ok(Self {
            accepting: accepting.map_err(with_device_error)?,
            queue_pair,
        })
    }

    pub(super) fn accepting(&self) -> &Accepting {
        &self.accepting
    }

    /// Handles an event of its id. Returns the outcome as an error, if there is one.
    pub(super) fn handle(self, event: QueuedEvent) -> Result<Self, Result<StreamHandle>> {
        let queue_pair = self.queue_pair;
        match self.accepting.handle(event) {
            Accepted::Pending(accepting) => Ok(Self {
                accepting,
                queue_pair,
            }),
            Accepted::Done(outcome) => {
                Err(outcome.map(|established| StreamHandle::new(established, queue_pair, false)))
            }
        }
    }
}

fn create(
    attempt: &Attempt,
    event_loop: &Arc<EventLoop>,
    id: &IdHandle,
    options: &StreamOptions,
) -> Result<Arc<StreamQueuePair>> {
    let created = StreamQueuePair::create(event_loop, id, options);
    created.map_err(|error| attempt.fail_on(id, Stage::QueuePair, Cause::queue_pair(error)))
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
