//! The connecting side.

use std::sync::Arc;
use std::time::Duration;

use rdmacm_core::{ConnParam, Error, Event, EventKind, IdHandle, QueuePair};

use super::{Attempt, Established, Way};
use crate::error::{Cause, Result};
use crate::hub::{Letter, Mailbox, Permit, Tracked, is_iwarp, next};
use crate::id_options::IdOptions;
use crate::plan::Plan;
use crate::step::Step;

/// The kernel's own limit where the caller sets none.
const NO_DEADLINE: Duration = Duration::from_secs(60 * 60);

/// An id whose route to the destination is resolved.
#[derive(Debug)]
pub(crate) struct Routed {
    pub(crate) tracked: Tracked,
    /// What the peer expects in front of the private data.
    connect_data: Vec<u8>,
}

/// Resolves address and route by what is known of the way.
pub(crate) async fn resolve(attempt: &Attempt, plan: &Plan, way: &Way) -> Result<Routed> {
    let hub = &attempt.hub;
    let options = IdOptions {
        port_space: way.port_space.unwrap_or(plan.options.port_space),
        ..plan.options
    };
    let made = options.create(&hub.channel);
    let id = made.map_err(|error| attempt.fail(Step::Bind, error))?;
    let tracked = Tracked::new(hub, id, Mailbox::new());
    let id = tracked.id();
    let refused = |step| move |error| attempt.fail(step, Cause::from(error));
    options.apply(id).map_err(refused(Step::Bind))?;
    let source = plan.source.address(way.destination.family());
    let source = source.map_err(|cause| attempt.fail(Step::Bind, cause))?;
    let source = source.or(way.source);

    let step = Step::ResolveAddress;
    id.resolve_addr(source, way.destination, time_left(attempt))
        .map_err(refused(step))?;
    arrived(attempt, &tracked, step, EventKind::AddrResolved).await?;

    let step = Step::ResolveRoute;
    // A route that the kernel does not take is resolved like an unknown one.
    if way.route.is_empty() || id.set_ib_path(&way.route).is_err() {
        id.resolve_route(time_left(attempt))
            .map_err(refused(step))?;
    }
    arrived(attempt, &tracked, step, EventKind::RouteResolved).await?;
    Ok(Routed {
        tracked,
        connect_data: way.connect_data.clone(),
    })
}

/// What the kernel may take: as long as the caller waits, and never nothing.
fn time_left(attempt: &Attempt) -> Duration {
    let left = attempt.time_left().unwrap_or(NO_DEADLINE);
    left.clamp(Duration::from_millis(1), NO_DEADLINE)
}

/// Waits for the event that says that a step is done.
pub(crate) async fn arrived(
    attempt: &Attempt,
    tracked: &Tracked,
    step: Step,
    wanted: EventKind,
) -> Result<Box<Event>> {
    loop {
        let event = next_event(attempt, tracked).await;
        let event = event.map_err(|cause| attempt.fail_on(tracked.id(), step, cause))?;
        if event.kind() == wanted && event.failure().is_none() {
            tracked.mailbox().trace().step(step, attempt.elapsed());
            return Ok(event);
        }
        if ends_attempt(&event) {
            return Err(attempt.failed(tracked.id(), step, &event));
        }
    }
}

/// The next event; an offloaded command that was refused is a failure.
async fn next_event(attempt: &Attempt, tracked: &Tracked) -> Result<Box<Event>, Cause> {
    loop {
        match tracked.next(attempt.until).await? {
            Letter::Event(event) => return Ok(event),
            Letter::Returned(Ok(())) => {}
            Letter::Returned(Err(error)) => return Err(error.into()),
            Letter::Stop => return Err(Cause::Gone),
        }
    }
}

/// Whether there is nothing more to wait for. Events of the user's own and of
/// newer kernels are none of an attempt's business.
pub(super) fn ends_attempt(event: &Event) -> bool {
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

/// Whether the peers have nothing more to say to each other before they are
/// connected or not. Until then iWARP makes whoever ends an id wait.
pub(super) fn ends_handshake(event: &Event) -> bool {
    matches!(
        event.kind(),
        EventKind::Established
            | EventKind::ConnectError
            | EventKind::Rejected
            | EventKind::Unreachable
            | EventKind::Disconnected
    )
}

/// Asks the peer, and completes the handshake.
pub(crate) async fn connect(
    mut attempt: Attempt,
    routed: Routed,
    queue_pair: Arc<dyn QueuePair>,
    param: ConnParam,
) -> Result<Established> {
    let Routed {
        mut tracked,
        connect_data,
    } = routed;
    let param = param.private_data_behind(&connect_data);
    let param = param.map_err(|error| attempt.fail_on(tracked.id(), Step::Connect, error))?;
    let step = Step::QueuePair;
    let id = tracked.id().clone();
    tracked.attach(Arc::clone(&queue_pair));
    let initialised = id.with_queue_pair(queue_pair.as_ref()).init();
    initialised.map_err(|error| attempt.fail_on(&id, step, error))?;

    let step = Step::Connect;
    if is_iwarp(queue_pair.as_ref()) {
        // CONNECT performs TCP's handshake in the kernel, with the id locked.
        attempt.learn(&id);
        let param = id.with_queue_pair(queue_pair.as_ref()).connect_param(param);
        let param = param.map_err(|error| attempt.fail_on(&id, step, error))?;
        let permit = handshake(&attempt).await;
        let permit = permit.map_err(|cause| attempt.fail_on(&id, step, cause))?;
        tracked.shakes_hands(true);
        connect_elsewhere(&attempt, &tracked, param, permit);
    } else {
        let asked = id.with_queue_pair(queue_pair.as_ref()).connect(param);
        asked.map_err(|error| attempt.fail_on(&id, step, error))?;
    }
    loop {
        let event = next_event(&attempt, &tracked).await;
        let event = event.map_err(|cause| attempt.fail_on(&id, step, cause))?;
        match event.kind() {
            EventKind::ConnectResponse => {
                tracked.answer_parting();
                let established = id.with_queue_pair(queue_pair.as_ref()).establish(&event);
                established.map_err(|error| attempt.fail_on(&id, step, gone_or(error)))?;
                return Ok(agreed(&attempt, step, tracked, &event));
            }
            EventKind::Established if event.failure().is_none() => {
                tracked.shakes_hands(false);
                tracked.answer_parting();
                return Ok(agreed(&attempt, step, tracked, &event));
            }
            _ if ends_attempt(&event) => {
                if ends_handshake(&event) {
                    tracked.shakes_hands(false);
                }
                return Err(attempt.failed(&id, step, &event));
            }
            _ => {}
        }
    }
}

/// The node's permission for one more handshake of TCP's, by the attempt's end.
async fn handshake(attempt: &Attempt) -> Result<Permit, Cause> {
    let handshakes = &attempt.hub.handshakes;
    let permit = next(&attempt.hub, handshakes, attempt.until).await;
    permit.map_err(|error| match error {
        Error::DeadlinePassed => Cause::Handshakes(handshakes.limit()),
        error => error.into(),
    })
}

/// Without a share in the queue pair, which goes when its owners let go of it, however
/// late this thread is: the id, without which the number is of no use, goes first.
/// Only where they let go while CONNECT runs does the queue pair go with that.
fn connect_elsewhere(attempt: &Attempt, tracked: &Tracked, param: ConnParam, permit: Permit) {
    let (id, mailbox) = (tracked.id().clone(), Arc::clone(tracked.mailbox()));
    let connecting = Arc::clone(tracked.connecting());
    attempt.hub.offload.run(Box::new(move || {
        connecting.run(|| mailbox.deliver(Letter::Returned(uninterrupted(&id, &param))));
        drop(permit);
    }));
}

/// CONNECT, again where a signal's handler has interrupted it: siw waits for TCP so that
/// signals end it, and undoes what it has begun. One of an id that has ended meanwhile
/// is not begun again.
fn uninterrupted(id: &IdHandle, param: &ConnParam) -> rdmacm_core::Result<()> {
    loop {
        match id.connect(param.clone()) {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            outcome => return outcome,
        }
    }
}

/// After the peer's message this side does what comes next in the protocol, so
/// the kernel refuses it only because the peer has said otherwise meanwhile.
pub(super) fn gone_or(error: Error) -> Cause {
    match error {
        Error::Command(refused) if refused.errno == libc::EINVAL => Cause::Gone,
        Error::Command(refused) if refused.errno == libc::ECONNRESET => Cause::Gone,
        // With the device.
        Error::Command(refused) if refused.errno == libc::ENXIO => Cause::Gone,
        error => error.into(),
    }
}

pub(super) fn agreed(
    attempt: &Attempt,
    step: Step,
    tracked: Tracked,
    event: &Event,
) -> Established {
    tracked.mailbox().trace().step(step, attempt.elapsed());
    Established {
        tracked,
        peer: event.conn(),
        private_data: event.private_data().to_vec(),
    }
}
