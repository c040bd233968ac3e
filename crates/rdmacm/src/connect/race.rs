//! The first of several attempts that succeeds (RFC 8305).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::event_loop::{EventLoop, sleep_until};

/// Starts each attempt when it is its turn: `attempt_delay` after the one before, or as soon as that
/// one has failed. Returns the first success; the other attempts are dropped, which cancels them. If
/// all fail, returns the error of the one that came [`furthest`]. `None` if there is none to start.
///
/// After a failure, none is started any more once the deadline of all `has_passed`: it would have
/// no time, and its error would hide the one that had.
pub(super) async fn race<T, F: Future<Output = Result<T>>>(
    event_loop: &Arc<EventLoop>,
    attempt_delay: Duration,
    mut waiting: impl ExactSizeIterator<Item = Pin<Box<F>>>,
    has_passed: impl Fn() -> bool,
) -> Option<Result<T>> {
    let mut running: Vec<Pin<Box<F>>> = Vec::new();
    let mut failed: Option<Error> = None;
    loop {
        if failed.is_none() || !has_passed() {
            running.extend(waiting.next());
        }
        if running.is_empty() {
            return failed.map(Err);
        }
        let next_start = if waiting.len() == 0 {
            None
        } else {
            // A time beyond the range of the clock never comes.
            event_loop.now().checked_add(attempt_delay)
        };
        let outcome = if let Some(next_start) = next_start {
            let mut pause = Box::pin(sleep_until(event_loop, next_start));
            poll_fn(|context| match poll_any(&mut running, context) {
                Poll::Pending => pause.as_mut().poll(context).map(|_| None),
                outcome @ Poll::Ready(_) => outcome,
            })
            .await
        } else {
            poll_fn(|context| poll_any(&mut running, context)).await
        };
        match outcome {
            Some(Ok(winner)) => return Some(Ok(winner)),
            Some(Err(error)) => failed = Some(furthest(failed, error)),
            None => {}
        }
    }
}

/// Polls all, and removes the first one that has completed.
fn poll_any<T, F: Future<Output = Result<T>>>(
    running: &mut Vec<Pin<Box<F>>>,
    context: &mut Context<'_>,
) -> Poll<Option<Result<T>>> {
    for index in 0..running.len() {
        let Some(runner) = running.get_mut(index) else {
            break;
        };
        if let Poll::Ready(outcome) = runner.as_mut().poll(context) {
            drop(running.remove(index));
            return Poll::Ready(Some(outcome));
        }
    }
    Poll::Pending
}

/// At the same stage, an answer of a peer counts rather than none, and a final one rather than one
/// that may change: that nobody listens at one address does not make the answer at another worth
/// asking for again. Otherwise the later one counts: the first is mostly of an address family that
/// the network does not have.
fn furthest(one: Option<Error>, other: Error) -> Error {
    let distance = |error: &Error| {
        let is_answer = error.is_answer();
        (error.stage(), is_answer, is_answer && !error.is_retryable())
    };
    match one {
        Some(one) if distance(&one) > distance(&other) => one,
        _ => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Cause;
    use crate::stage::Stage;

    #[test]
    fn the_later_of_two_failures_at_the_same_stage_counts() {
        let (address, connect) = (Stage::ResolveAddress, Stage::Connect);
        for (one, other, expected) in [
            (address, connect, (connect, true)),
            (connect, address, (connect, false)),
            (address, address, (address, true)),
        ] {
            let one = Error::new(one, Cause::PeerGone);
            let error = furthest(Some(one), Error::new(other, Cause::Deadline));
            assert_eq!((error.stage(), error.is_timeout()), expected);
        }
    }
}
