//! What a connection carries, one step each.

use rdmacm_core::Error as CoreError;
use rdmacm_verbs::{Pieces, SendOperation};

use super::Attempt;
use crate::error::{Cause, Error, Result};
use crate::hub::{Place, next};
use crate::messages::{
    Arrivals, Failed, Line, Load, Loan, Message, Outcome, Quiet, Room, Trouble, UntilDeparture,
    returned,
};
use crate::step::Step;

/// Waits for the peer's next message.
pub(crate) async fn receive(attempt: &Attempt, line: Line<'_>) -> Result<Message> {
    let arrived = wait(attempt, line, Arrivals(line)).await;
    arrived
        .and_then(|arrived| arrived)
        .map_err(|cause| fail(attempt, line, Step::Receive, cause))
}

/// The peer's next message, if it has arrived.
pub(crate) fn try_receive(attempt: &Attempt, line: Line<'_>) -> Result<Option<Message>> {
    let arrived = Arrivals(line).take().transpose();
    arrived.map_err(|cause| fail(attempt, line, Step::Receive, cause))
}

/// Sends a copy of a message, once there is room for it.
pub(crate) async fn send(attempt: &Attempt, line: Line<'_>, bytes: &[u8]) -> Result<()> {
    let failed = |cause| fail(attempt, line, Step::Send, cause);
    if bytes.len() > line.traffic.options().message_size() {
        return Err(failed(Cause::TooLong(bytes.len())));
    }
    let load = Load::Bytes(bytes);
    let sent = wait(attempt, line, &mut Room { line, load }).await;
    sent.and_then(|sent| sent.map_err(|(cause, _)| cause))
        .map(drop)
        .map_err(failed)
}

/// Has a request done with the caller's memory, and gives that back.
pub(crate) async fn transfer<L: Loan>(
    attempt: &Attempt,
    line: Line<'_>,
    step: Step,
    operation: SendOperation,
    loan: L,
) -> Result<L, Failed<L>> {
    let failed = |cause, pieces| Failed {
        error: fail(attempt, line, step, cause),
        returned: returned(pieces),
    };
    let lent = Some(loan.into().into());
    let mut room = Room {
        line,
        load: Load::Lent(operation, lent),
    };
    let work = match wait(attempt, line, &mut room).await {
        Ok(Ok(Some(work))) => work,
        Ok(Err((cause, pieces))) => return Err(failed(cause, pieces)),
        Ok(Ok(None)) => return Err(failed(Cause::Gone, Pieces::NONE)),
        Err(cause) => return Err(failed(cause, room.load.unload())),
    };
    match wait(attempt, line, Outcome { line, work }).await {
        Ok((Ok(_), pieces)) => returned(pieces).ok_or_else(|| failed(Cause::Gone, Pieces::NONE)),
        Ok((Err(error), pieces)) => {
            // Something else may have ended it.
            let trouble = wait(attempt, line, Trouble(line)).await;
            Err(failed(trouble.unwrap_or(Cause::Completion(error)), pieces))
        }
        Err(cause) => Err(failed(cause, Pieces::NONE)),
    }
}

/// Waits until everything that was sent has arrived.
pub(crate) async fn flush(attempt: &Attempt, line: Line<'_>, step: Step) -> Result<()> {
    let flushed = wait(attempt, line, Quiet(line)).await;
    flushed
        .and_then(|flushed| flushed)
        .map_err(|cause| fail(attempt, line, step, cause))
}

/// Waits for what comes to the place, and gives signs of life meanwhile.
pub(crate) async fn wait<P: Place + Unpin>(
    attempt: &Attempt,
    line: Line<'_>,
    mut place: P,
) -> Result<P::Item, Cause> {
    let (hub, traffic) = (&attempt.hub, line.traffic);
    hub.hear_of(traffic.device())?;
    loop {
        let beat = traffic.next_beat();
        let departure = line.waits_for_departure();
        let until = [attempt.until, beat, departure].into_iter().flatten().min();
        let place = UntilDeparture {
            place: &mut place,
            line,
            until: departure,
        };
        match next(hub, place, until).await {
            Ok(Some(item)) => return Ok(item),
            Ok(None) => {}
            Err(CoreError::DeadlinePassed) if attempt.until != until => {
                if beat == until {
                    traffic.beat(hub.now());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn fail(attempt: &Attempt, line: Line<'_>, step: Step, cause: Cause) -> Error {
    attempt.fail_on(line.tracked.id(), step, cause)
}
