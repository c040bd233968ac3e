//! The end of a connection.

use rdmacm_core::{Event, EventKind};

use super::Attempt;
use crate::error::{Cause, Result};
use crate::hub::{Letter, Tracked};
use crate::step::Step;

/// Waits until the connection is over, by whatever cause.
pub(crate) async fn ended(attempt: &Attempt, tracked: &Tracked) -> Result<Box<Event>> {
    let step = Step::Close;
    loop {
        let letter = tracked.next(attempt.until).await;
        match letter.map_err(|error| attempt.fail(step, error))? {
            Letter::Event(event) if ends_connection(&event) => return Ok(event),
            Letter::Stop => return Err(attempt.fail(step, Cause::Gone)),
            Letter::Event(_) | Letter::Returned(_) => {}
        }
    }
}

/// `ADDR_CHANGE` is left to the user: the connection goes on by the old path
/// until it fails.
fn ends_connection(event: &Event) -> bool {
    matches!(
        event.kind(),
        EventKind::Disconnected
            | EventKind::DeviceRemoval
            | EventKind::Unreachable
            | EventKind::Rejected
            | EventKind::ConnectError
    )
}

/// Parts in order: tells the peer, and waits until it knows.
pub(crate) async fn close(attempt: &Attempt, tracked: Tracked) -> Result<()> {
    let step = Step::Close;
    let id = tracked.id();
    // The peer may part at the same time: destroying the id answers that.
    if tracked.mailbox().part() {
        return Ok(());
    }
    let parted = match tracked.queue_pair() {
        Some(queue_pair) => id.with(queue_pair.as_ref()).disconnect(),
        None => id.disconnect(),
    };
    parted.map_err(|error| attempt.fail_on(id, step, error))?;
    let event = ended(attempt, &tracked).await?;
    match event.failure() {
        Some(failure) if event.kind() != EventKind::DeviceRemoval => {
            Err(attempt.fail_on(id, step, Cause::Event(failure)))
        }
        _ => Ok(()),
    }
}
