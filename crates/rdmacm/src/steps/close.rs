//! The end of a connection.

use super::active::gone_or;
use super::{Attempt, Carried};
use crate::ending::Ending;
use crate::error::{Cause, Result};
use crate::hub::{End, Tracked};
use crate::step::Step;

/// Waits until the connection is over, by whatever cause. Any number may wait,
/// and ask again.
pub(crate) async fn ended(
    attempt: &Attempt,
    tracked: &Tracked,
    carried: &Carried,
) -> Result<Ending> {
    let ended = carried.ended(attempt, tracked).await;
    ended.map_err(|cause| attempt.fail_on(tracked.id(), Step::Close, cause))
}

/// Disconnects in order: tells the peer, and waits until it knows.
pub(crate) async fn close(attempt: &Attempt, tracked: Tracked, carried: &Carried) -> Result<()> {
    carried.flush(attempt, &tracked).await?;
    let step = Step::Close;
    let id = tracked.id();
    // The peer may part at the same time: destroying the id answers that.
    if tracked.mailbox().part() || carried.is_over() {
        return Ok(());
    }
    let parted = match tracked.queue_pair() {
        Some(queue_pair) => id.with_queue_pair(queue_pair.as_ref()).disconnect(),
        None => id.disconnect(),
    };
    match parted.map_err(gone_or) {
        Ok(()) => {}
        // The peer was faster.
        Err(Cause::Gone) => return Ok(()),
        Err(cause) => return Err(attempt.fail_on(id, step, cause)),
    }
    let answer = carried.wait(attempt, &tracked, End(tracked.mailbox()));
    let answer = answer
        .await
        .map_err(|cause| attempt.fail_on(id, step, cause))?;
    match answer.failure() {
        Some(failure) if failure.raw_os_error() == Some(libc::ETIMEDOUT) => {
            Err(attempt.fail_on(id, step, Cause::Event(failure)))
        }
        // Over by the peer's doing, or with the device.
        _ => Ok(()),
    }
}
