//! The first of several that succeeds.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::hub::{Hub, sleep_until};

/// An attempt under way.
pub(super) type Runner<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Starts one after the other, each `stagger` after the one before or as soon
/// as that has failed, and ends with the first success; the others are dropped,
/// which cancels them. Where all fail, the one that came furthest says why.
/// `None` where there is none to start.
pub(super) async fn race<'a, T: Send>(
    hub: &Arc<Hub>,
    stagger: Duration,
    mut starters: Vec<Runner<'a, T>>,
) -> Option<Result<T>> {
    starters.reverse();
    let mut running: Vec<Runner<'a, T>> = Vec::new();
    let mut failed: Option<Error> = None;
    loop {
        running.extend(starters.pop());
        if running.is_empty() {
            return failed.map(Err);
        }
        // A moment beyond the clock's reach never comes.
        let turn = hub.now().checked_add(stagger);
        let turn = turn.filter(|_| !starters.is_empty());
        let outcome = if let Some(turn) = turn {
            let mut pause = Box::pin(sleep_until(hub, turn));
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

/// Polls all; one that has ended is taken out.
fn poll_any<T>(
    running: &mut Vec<Runner<'_, T>>,
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

fn furthest(one: Option<Error>, other: Error) -> Error {
    match one {
        Some(one) if one.step() >= other.step() => one,
        _ => other,
    }
}
