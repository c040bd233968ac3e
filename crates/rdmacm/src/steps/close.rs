//! The end of a connection.

use super::Attempt;
use super::active::gone_or;
use crate::ending::Ending;
use crate::error::{Cause, Result};
use crate::hub::{Letter, Tracked};
use crate::step::Step;

/// Waits until the connection is over, by whatever cause. Any number may wait,
/// and ask again.
pub(crate) async fn ended(attempt: &Attempt, tracked: &Tracked) -> Result<Ending> {
    let (step, mailbox) = (Step::Close, tracked.mailbox());
    loop {
        let letter = tracked.next(attempt.until).await;
        match letter.map_err(|error| attempt.fail_on(tracked.id(), step, error))? {
            Letter::Event(event) => {
                if let Some(ending) = Ending::of(&event) {
                    mailbox.end(ending);
                }
            }
            Letter::Stop => {
                let ending = mailbox.ending();
                return ending.ok_or_else(|| attempt.fail(step, Cause::Gone));
            }
            Letter::Returned(_) => {}
        }
    }
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
    match ended(attempt, &tracked).await?.failure() {
        Some(failure) if failure.raw_os_error() == Some(libc::ETIMEDOUT) => {
            Err(attempt.fail_on(id, step, Cause::Event(failure)))
        }
        // Over by the peer's doing, or with the device.
        _ => Ok(()),
    }
}
