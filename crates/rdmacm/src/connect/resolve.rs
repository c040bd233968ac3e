//! From an address to a resolved route.

use std::future::Future;
use std::time::Duration;

use rdmacm_core::{Event, EventKind, Family, IdHandle, Transport};

use super::{ConnectConfig, ConnectTarget};
use crate::attempt::{Attempt, ends_attempt};
use crate::error::{Cause, Result};
use crate::event_loop::{EventQueue, ManagedId, QueuedEvent};
use crate::id_options::IdOptions;
use crate::stage::Stage;

/// The timeout of a command if the caller sets no deadline.
const NO_DEADLINE: Duration = Duration::from_secs(60 * 60);

/// An id whose address is resolved, and whose route the kernel is resolving.
#[derive(Debug)]
pub(crate) struct ResolvingRoute(Routed);

/// An id whose route to the destination is resolved.
#[derive(Debug)]
pub(crate) struct Routed {
    pub(crate) id: ManagedId,
    /// What the peer expects in front of the private data.
    pub(crate) connect_data: Vec<u8>,
}

/// Resolves address and route, with what is known of the target.
pub(crate) async fn resolve(
    attempt: &Attempt,
    config: &ConnectConfig,
    target: &ConnectTarget,
) -> Result<Routed> {
    let resolving = resolve_address(attempt, config, target).await?;
    resolving.resolved(attempt).await
}

/// Resolves the address, and requests the route.
pub(crate) async fn resolve_address(
    attempt: &Attempt,
    config: &ConnectConfig,
    target: &ConnectTarget,
) -> Result<ResolvingRoute> {
    let event_loop = &attempt.event_loop;
    let options = IdOptions {
        port_space: target.port_space.unwrap_or(config.options.port_space),
        ..config.options
    };
    let refused = |stage| move |error| attempt.fail(stage, Cause::from(error));
    let managed = options.create(event_loop, EventQueue::new());
    let managed = managed.map_err(refused(Stage::Bind))?;
    let id = managed.id();
    let chosen = config
        .source
        .address(event_loop.channel(), target.destination);
    let chosen = chosen.map_err(|cause| attempt.fail(Stage::Bind, cause))?;
    let source = chosen.or(target.source);

    let stage = Stage::ResolveAddress;
    let timeout = timeout(attempt);
    id.resolve_addr(source, target.destination, timeout)
        .map_err(refused(stage))?;
    wait_for_event(attempt, &managed, stage, EventKind::AddrResolved).await?;

    let stage = Stage::ResolveRoute;
    // A route that the kernel refuses is resolved like an unknown one.
    let known = target.route_from(chosen);
    let uses_known = !known.is_empty() && !shapes_route(options, target, id);
    if !uses_known || id.set_ib_path(known).is_err() {
        id.resolve_route(timeout).map_err(refused(stage))?;
    }
    Ok(ResolvingRoute(Routed {
        id: managed,
        connect_data: target.connect_data.clone(),
    }))
}

impl ResolvingRoute {
    /// The id, whose device is known.
    pub(crate) fn id(&self) -> &IdHandle {
        self.0.id.id()
    }

    /// Waits until the route is resolved, for a caller who has done something else meanwhile: mostly
    /// it is by now.
    pub(crate) fn resolved_meanwhile(
        self,
        attempt: &Attempt,
    ) -> impl Future<Output = Result<Routed>> {
        attempt.event_loop.read_events_for(self.0.id.queue());
        self.resolved(attempt)
    }

    // Not an `async fn`, whose future holds each argument twice.
    fn resolved(self, attempt: &Attempt) -> impl Future<Output = Result<Routed>> {
        let Self(routed) = self;
        async move {
            let stage = Stage::ResolveRoute;
            wait_for_event(attempt, &routed.id, stage, EventKind::RouteResolved).await?;
            Ok(routed)
        }
    }
}

/// Whether a route that was resolved without the options is another one: on RoCE the kernel makes
/// it of both (`cma_resolve_iboe_route`), on InfiniBand it asks for one with the type of service of
/// IPv4 (`cma_query_ib_route`).
fn shapes_route(options: IdOptions, target: &ConnectTarget, id: &IdHandle) -> bool {
    if options.tos.is_none() && options.ack_timeout.is_none() {
        return false;
    }
    let device = id.rdma_device().ok().flatten();
    let is_infiniband = device.is_some_and(|device| device.transport == Transport::InfiniBand);
    !is_infiniband || options.tos.is_some() && target.destination.family() == Family::V4
}

/// The kernel's timeout: never shorter than the caller waits, and never zero.
fn timeout(attempt: &Attempt) -> Duration {
    let whole = attempt.time_limit().unwrap_or(NO_DEADLINE);
    whole.clamp(Duration::from_millis(1), NO_DEADLINE)
}

/// Waits for the event that completes a stage.
pub(crate) async fn wait_for_event(
    attempt: &Attempt,
    id: &ManagedId,
    stage: Stage,
    expected: EventKind,
) -> Result<Event> {
    loop {
        let queued = id.next(attempt.until).await;
        let event = queued.map_err(Cause::from).and_then(cm_event);
        let event = event.map_err(|cause| attempt.fail_on(id.id(), stage, cause))?;
        if event.kind() == expected && event.failure().is_none() {
            id.queue().trace().stage(stage, || attempt.elapsed());
            return Ok(event);
        }
        if ends_attempt(&event) {
            return Err(attempt.failed(id.id(), stage, &event));
        }
    }
}

/// The event. A command on the blocking executor that was refused is a failure.
pub(super) fn cm_event(queued: QueuedEvent) -> Result<Event, Cause> {
    match queued {
        QueuedEvent::Cm(event) => Ok(event),
        QueuedEvent::CommandFailed(Some(error)) => Err(error.into()),
        QueuedEvent::CommandFailed(None) => Err(Cause::CommandDropped),
        QueuedEvent::Closed => Err(Cause::PeerGone),
    }
}
