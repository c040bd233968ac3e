//! The connecting side of the handshake.

use std::future::Future;
use std::sync::Arc;

use rdmacm_core::{ConnParam, Error, Event, EventKind, IdHandle, QueuePair};

use super::Routed;
use super::resolve::cm_event;
use crate::attempt::{Attempt, ends_attempt, ends_handshake, peer_gone_or};
use crate::error::{Cause, Result};
use crate::established::Established;
use crate::event_loop::{
    EventQueue, HandshakePermit, HandshakeRequest, ManagedId, QueuedEvent, is_iwarp, wait_for,
};
use crate::stage::Stage;

const STAGE: Stage = Stage::Connect;

/// Sends the connect request, and completes the handshake.
pub(crate) fn handshake(
    attempt: &mut Attempt,
    routed: Routed,
    queue_pair: Arc<dyn QueuePair>,
    param: ConnParam,
) -> impl Future<Output = Result<Established>> {
    let Routed {
        id: mut managed,
        connect_data,
    } = routed;
    managed.attach(Arc::clone(&queue_pair));
    // Not an `async fn`, whose future holds each argument twice.
    async move {
        let queue_pair = queue_pair.as_ref();
        let param = param.private_data_behind(&connect_data);
        let param = param.map_err(|error| attempt.fail_on(managed.id(), STAGE, error))?;
        let initialized = managed.id().with_queue_pair(queue_pair).init();
        initialized.map_err(|error| attempt.fail_on(managed.id(), Stage::QueuePair, error))?;
        if is_iwarp(queue_pair) {
            send_iwarp_request(attempt, &mut managed, queue_pair, param).await?;
        } else {
            let sent = managed.id().with_queue_pair(queue_pair).connect(param);
            sent.map_err(|error| attempt.fail_on(managed.id(), STAGE, error))?;
        }
        let event = complete(attempt, &mut managed, queue_pair).await?;
        Ok(Established::new(attempt, STAGE, managed, &event))
    }
}

/// CONNECT performs the TCP handshake in the kernel, with the id locked.
async fn send_iwarp_request(
    attempt: &mut Attempt,
    managed: &mut ManagedId,
    queue_pair: &dyn QueuePair,
    param: ConnParam,
) -> Result<()> {
    attempt.query_device(managed.id());
    let param = managed
        .id()
        .with_queue_pair(queue_pair)
        .connect_param(param);
    let param = param.map_err(|error| attempt.fail_on(managed.id(), STAGE, error))?;
    let permit = handshake_permit(attempt).await;
    let permit = permit.map_err(|cause| attempt.fail_on(managed.id(), STAGE, cause))?;
    managed.set_in_handshake(true);
    spawn_connect(managed, param, permit);
    Ok(())
}

/// Waits until the connection is established; returns the event with the peer's reply.
async fn complete(
    attempt: &Attempt,
    managed: &mut ManagedId,
    queue_pair: &dyn QueuePair,
) -> Result<Event> {
    loop {
        let queued = managed.next(attempt.until).await;
        if let Ok(QueuedEvent::CommandFailed(_)) = &queued {
            // `CONNECT` has returned, so destroying the id does not block. Its port is free then.
            managed.set_in_handshake(false);
        }
        let event = queued.map_err(Cause::from).and_then(cm_event);
        let event = event.map_err(|cause| attempt.fail_on(managed.id(), STAGE, cause))?;
        match event.kind() {
            EventKind::ConnectResponse => {
                managed.reply_to_disconnect();
                let id = managed.id();
                let established = id.with_queue_pair(queue_pair).establish(&event);
                established.map_err(|error| attempt.fail_on(id, STAGE, peer_gone_or(error)))?;
                return Ok(event);
            }
            EventKind::Established if event.failure().is_none() => {
                managed.set_in_handshake(false);
                managed.reply_to_disconnect();
                return Ok(event);
            }
            _ if ends_attempt(&event) => {
                if ends_handshake(&event) {
                    managed.set_in_handshake(false);
                }
                return Err(attempt.failed(managed.id(), STAGE, &event));
            }
            _ => {}
        }
    }
}

/// Waits until the event loop permits one more TCP handshake.
async fn handshake_permit(attempt: &Attempt) -> Result<HandshakePermit, Cause> {
    let event_loop = &attempt.event_loop;
    let peer = attempt.address();
    let mut request = HandshakeRequest::new(event_loop.handshakes(), peer);
    let permit = wait_for(event_loop, &mut request, attempt.until).await;
    permit.map_err(|error| match error {
        Error::DeadlinePassed => Cause::TooManyHandshakes(request.others()),
        error => error.into(),
    })
}

/// Runs CONNECT on the blocking executor. The task does not own the queue pair, so that its
/// owners destroy it, however late the task runs: without its id the queue pair's number is
/// of no use. Only a queue pair that is dropped while CONNECT runs is kept until then.
fn spawn_connect(managed: &mut ManagedId, param: ConnParam, permit: HandshakePermit) {
    let id = managed.id().clone();
    let unreported = Unreported(Some(Arc::clone(managed.queue())));
    let connecting = managed.begin_connecting(permit);
    managed.event_loop().executor().spawn(Box::new(move || {
        connecting.run(|| unreported.report(connect(&id, &param)));
    }));
}

/// A CONNECT whose outcome its waiter does not know. Dropping it reports that it has not run.
struct Unreported(Option<Arc<EventQueue>>);

impl Unreported {
    /// If it has succeeded, its event says how the handshake ends.
    fn report(mut self, outcome: rdmacm_core::Result<()>) {
        let queue = self.0.take();
        if let (Some(queue), Err(error)) = (queue, outcome) {
            queue.push(QueuedEvent::CommandFailed(Some(error)));
        }
    }
}

impl Drop for Unreported {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.push(QueuedEvent::CommandFailed(None));
        }
    }
}

/// CONNECT, repeated if a signal handler has interrupted it: signals end siw's wait for
/// TCP, and siw undoes what it has begun. Fails if the id was destroyed meanwhile.
fn connect(id: &IdHandle, param: &ConnParam) -> rdmacm_core::Result<()> {
    loop {
        match id.connect(param.clone()) {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            outcome => return outcome,
        }
    }
}
