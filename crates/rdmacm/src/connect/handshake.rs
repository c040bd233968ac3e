//! The connecting side of the handshake.

use std::sync::Arc;

use rdmacm_core::{ConnParam, Error, Event, EventKind, IdHandle, QueuePair};

use super::resolve::next_event;
use super::{Attempt, Routed};
use crate::connection::Established;
use crate::error::{Cause, Result};
use crate::event_loop::{HandshakePermit, ManagedId, QueuedEvent, is_iwarp, wait_for};
use crate::stage::Stage;

/// Sends the connect request, and completes the handshake.
pub(crate) async fn handshake(
    mut attempt: Attempt,
    routed: Routed,
    queue_pair: Arc<dyn QueuePair>,
    param: ConnParam,
) -> Result<Established> {
    let Routed {
        id: mut managed,
        connect_data,
    } = routed;
    let id = managed.id().clone();
    let param = param.private_data_behind(&connect_data);
    let param = param.map_err(|error| attempt.fail_on(&id, Stage::Connect, error))?;
    managed.attach(Arc::clone(&queue_pair));
    let initialized = id.with_queue_pair(queue_pair.as_ref()).init();
    initialized.map_err(|error| attempt.fail_on(&id, Stage::QueuePair, error))?;
    send_request(&mut attempt, &mut managed, queue_pair.as_ref(), param).await?;
    complete(&attempt, managed, queue_pair.as_ref()).await
}

async fn send_request(
    attempt: &mut Attempt,
    managed: &mut ManagedId,
    queue_pair: &dyn QueuePair,
    param: ConnParam,
) -> Result<()> {
    let id = managed.id().clone();
    let stage = Stage::Connect;
    if !is_iwarp(queue_pair) {
        let sent = id.with_queue_pair(queue_pair).connect(param);
        return sent.map_err(|error| attempt.fail_on(&id, stage, error));
    }
    // CONNECT performs the TCP handshake in the kernel, with the id locked.
    attempt.query_device(&id);
    let param = id.with_queue_pair(queue_pair).connect_param(param);
    let param = param.map_err(|error| attempt.fail_on(&id, stage, error))?;
    let permit = handshake_permit(attempt).await;
    let permit = permit.map_err(|cause| attempt.fail_on(&id, stage, cause))?;
    managed.set_in_handshake(true);
    spawn_connect(managed, param, permit);
    Ok(())
}

async fn complete(
    attempt: &Attempt,
    mut managed: ManagedId,
    queue_pair: &dyn QueuePair,
) -> Result<Established> {
    let id = managed.id().clone();
    let stage = Stage::Connect;
    loop {
        let event = next_event(attempt, &managed).await;
        let event = event.map_err(|cause| attempt.fail_on(&id, stage, cause))?;
        match event.kind() {
            EventKind::ConnectResponse => {
                managed.reply_to_disconnect();
                let established = id.with_queue_pair(queue_pair).establish(&event);
                established.map_err(|error| attempt.fail_on(&id, stage, peer_gone_or(error)))?;
                return Ok(Established::new(attempt, stage, managed, &event));
            }
            EventKind::Established if event.failure().is_none() => {
                managed.set_in_handshake(false);
                managed.reply_to_disconnect();
                return Ok(Established::new(attempt, stage, managed, &event));
            }
            _ if ends_attempt(&event) => {
                if ends_handshake(&event) {
                    managed.set_in_handshake(false);
                }
                return Err(attempt.failed(&id, stage, &event));
            }
            _ => {}
        }
    }
}

/// Whether the event ends an attempt. Events of the user's own and of newer kernels do not.
pub(crate) fn ends_attempt(event: &Event) -> bool {
    match event.kind() {
        EventKind::AddrError
        | EventKind::RouteError
        | EventKind::AddrChange
        | EventKind::MulticastError
        | EventKind::DeviceRemoval => true,
        EventKind::AddrResolved | EventKind::RouteResolved | EventKind::ConnectResponse => {
            event.failure().is_some()
        }
        _ => ends_handshake(event),
    }
}

/// Whether the handshake is over, with or without a connection. Until then destroying an
/// iWARP id blocks.
pub(crate) fn ends_handshake(event: &Event) -> bool {
    matches!(
        event.kind(),
        EventKind::Established
            | EventKind::ConnectError
            | EventKind::Rejected
            | EventKind::Unreachable
            | EventKind::Disconnected
    )
}

/// Waits until the event loop permits one more TCP handshake.
async fn handshake_permit(attempt: &Attempt) -> Result<HandshakePermit, Cause> {
    let limit = attempt.event_loop.handshakes();
    let permit = wait_for(&attempt.event_loop, limit, attempt.until).await;
    permit.map_err(|error| match error {
        Error::DeadlinePassed => Cause::TooManyHandshakes(limit.limit()),
        error => error.into(),
    })
}

/// Runs CONNECT on the blocking executor. The task does not own the queue pair, so that its
/// owners destroy it, however late the task runs: without its id the queue pair's number is
/// of no use. Only a queue pair that is dropped while CONNECT runs is kept until then.
fn spawn_connect(managed: &ManagedId, param: ConnParam, permit: HandshakePermit) {
    let (id, queue) = (managed.id().clone(), Arc::clone(managed.queue()));
    let connecting = Arc::clone(managed.connecting());
    managed.event_loop().executor().spawn(Box::new(move || {
        connecting.run(|| {
            // If it succeeds, its event says how the handshake ends.
            if let Err(error) = connect(&id, &param) {
                queue.push(QueuedEvent::CommandFailed(error));
            }
        });
        drop(permit);
    }));
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

/// The cause of a refused command that comes next in the protocol: the kernel refuses it
/// only because the peer has ended the connection meanwhile.
pub(crate) fn peer_gone_or(error: Error) -> Cause {
    match error {
        // ENXIO: the device is gone as well.
        Error::Command(refused)
            if matches!(refused.errno, libc::EINVAL | libc::ECONNRESET | libc::ENXIO) =>
        {
            Cause::PeerGone
        }
        error => error.into(),
    }
}
