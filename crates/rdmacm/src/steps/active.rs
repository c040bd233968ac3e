//! The connecting side.

use std::sync::Arc;
use std::time::Duration;

use rdmacm_core::{CmAddr, ConnParam, Event, EventKind, PortSpace, QueuePair};

use super::{Attempt, Established};
use crate::error::{Cause, Result};
use crate::hub::{Letter, Mailbox, Tracked, is_iwarp};
use crate::plan::Plan;
use crate::step::Step;

/// The kernel's own limit where the caller sets none.
const NO_DEADLINE: Duration = Duration::from_secs(60 * 60);

/// An id whose route to the destination is resolved.
pub(crate) async fn resolve(
    attempt: &Attempt,
    plan: &Plan,
    destination: CmAddr,
) -> Result<Tracked> {
    let hub = &attempt.hub;
    let made = hub.channel.create_id(PortSpace::TCP);
    let id = made.map_err(|error| attempt.fail(Step::Bind, error))?;
    let tracked = Tracked::new(hub, id, Mailbox::new());
    let id = tracked.id();
    let refused = |step| move |error| attempt.fail(step, Cause::from(error));
    plan.options.apply(id).map_err(refused(Step::Bind))?;
    let source = plan.source.address(destination.family());
    let source = source.map_err(|cause| attempt.fail(Step::Bind, cause))?;

    let step = Step::ResolveAddress;
    id.resolve_addr(source, destination, time_left(attempt))
        .map_err(refused(step))?;
    arrived(attempt, &tracked, step, EventKind::AddrResolved).await?;

    let step = Step::ResolveRoute;
    id.resolve_route(time_left(attempt))
        .map_err(refused(step))?;
    arrived(attempt, &tracked, step, EventKind::RouteResolved).await?;
    Ok(tracked)
}

/// What the kernel may take: as long as the caller waits, and never nothing.
fn time_left(attempt: &Attempt) -> Duration {
    let left = attempt.time_left().unwrap_or(NO_DEADLINE);
    left.clamp(Duration::from_millis(1), NO_DEADLINE)
}

/// Waits for the event that says that a step is done.
async fn arrived(
    attempt: &Attempt,
    tracked: &Tracked,
    step: Step,
    wanted: EventKind,
) -> Result<()> {
    loop {
        let event = next_event(attempt, tracked, step).await?;
        if event.kind() == wanted && event.failure().is_none() {
            return Ok(());
        }
        if ends_attempt(&event) {
            return Err(attempt.failed(tracked.id(), step, &event));
        }
    }
}

/// The next event; an offloaded command that was refused is a failure.
async fn next_event(attempt: &Attempt, tracked: &Tracked, step: Step) -> Result<Box<Event>> {
    loop {
        let letter = tracked.next(attempt.until).await;
        match letter.map_err(|error| attempt.fail(step, error))? {
            Letter::Event(event) => return Ok(event),
            Letter::Returned(Ok(())) => {}
            Letter::Returned(Err(error)) => return Err(attempt.fail(step, error)),
            Letter::Stop => return Err(attempt.fail(step, Cause::Gone)),
        }
    }
}

/// Whether there is nothing more to wait for. Events of other steps, of the
/// user's own and of newer kernels are none of an attempt's business.
pub(super) fn ends_attempt(event: &Event) -> bool {
    event.failure().is_some()
        || matches!(
            event.kind(),
            EventKind::Disconnected | EventKind::AddrChange
        )
}

/// Asks the peer, and completes the handshake.
pub(crate) async fn connect(
    mut attempt: Attempt,
    mut tracked: Tracked,
    queue_pair: Arc<dyn QueuePair>,
    param: ConnParam,
) -> Result<Established> {
    let step = Step::QueuePair;
    let id = tracked.id().clone();
    tracked.attach(Arc::clone(&queue_pair));
    let initialised = id.with(queue_pair.as_ref()).init();
    initialised.map_err(|error| attempt.fail_on(&id, step, error))?;

    let step = Step::Connect;
    if is_iwarp(queue_pair.as_ref()) {
        // CONNECT performs TCP's handshake in the kernel, with the id locked.
        attempt.learn(&id);
        tracked.shakes_hands(true);
        connect_elsewhere(&attempt, &tracked, &queue_pair, param);
    } else {
        let asked = id.with(queue_pair.as_ref()).connect(param);
        asked.map_err(|error| attempt.fail_on(&id, step, error))?;
    }
    loop {
        let event = match next_event(&attempt, &tracked, step).await {
            Ok(event) => event,
            Err(error) => return Err(error),
        };
        match event.kind() {
            EventKind::ConnectResponse => {
                tracked.answer_parting();
                let established = id.with(queue_pair.as_ref()).establish(&event);
                established.map_err(|error| attempt.fail_on(&id, Step::Establish, error))?;
                return Ok(agreed(tracked, &event));
            }
            EventKind::Established if event.failure().is_none() => {
                tracked.shakes_hands(false);
                tracked.answer_parting();
                return Ok(agreed(tracked, &event));
            }
            _ if ends_attempt(&event) => {
                tracked.shakes_hands(false);
                return Err(attempt.failed(&id, step, &event));
            }
            _ => {}
        }
    }
}

fn connect_elsewhere(
    attempt: &Attempt,
    tracked: &Tracked,
    queue_pair: &Arc<dyn QueuePair>,
    param: ConnParam,
) {
    let (id, mailbox) = (tracked.id().clone(), Arc::clone(tracked.mailbox()));
    let queue_pair = Arc::clone(queue_pair);
    attempt.hub.offload.run(Box::new(move || {
        let returned = id.with(queue_pair.as_ref()).connect(param);
        mailbox.deliver(Letter::Returned(returned));
    }));
}

pub(super) fn agreed(tracked: Tracked, event: &Event) -> Established {
    Established {
        tracked,
        peer: event.conn(),
        private_data: event.private_data().to_vec(),
    }
}
