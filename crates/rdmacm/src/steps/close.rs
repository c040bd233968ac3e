//! The end of a connection.

use rdmacm_core::{Event, EventKind};

use super::Attempt;
use super::active::gone_or;
use crate::error::{Cause, Result};
use crate::hub::{Letter, Tracked};
use crate::step::Step;

/// Waits until the connection is over, by whatever cause.
pub(crate) async fn ended(attempt: &Attempt, tracked: &Tracked) -> Result<Box<Event>> {
    let step = Step::Close;
    loop {
        let letter = tracked.next(attempt.until).await;
        match letter.map_err(|error| attempt.fail_on(tracked.id(), step, error))? {
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
    match parted.map_err(gone_or) {
        Ok(()) => {}
        // The peer was faster.
        Err(Cause::Gone) => return Ok(()),
        Err(cause) => return Err(attempt.fail_on(id, step, cause)),
    }
    let event = ended(attempt, &tracked).await?;
    match event.failure() {
        Some(failure) if failure.raw_os_error() == Some(libc::ETIMEDOUT) => {
            Err(attempt.fail_on(id, step, Cause::Event(failure)))
        }
        // Over by the peer's doing, or with the device.
        _ => Ok(()),
    }
}
