//! Giving other tasks their turn.

use std::future::poll_fn;
use std::task::{Context, Poll};

/// Polls, unless the task has had its turn: then it is woken at once, after others. A call that
/// mostly finds what it waits for would never let others run otherwise. What is not ready takes
/// nothing of the turn: a task may poll any number of streams that are idle.
#[cfg(feature = "tokio")]
pub(super) fn poll_in_turn<T>(
    context: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let turn = std::task::ready!(::tokio::task::coop::poll_proceed(context));
    let polled = poll(context);
    if polled.is_ready() {
        turn.made_progress();
    }
    polled
}

/// Polls: only tokio counts what a task does in its turn.
#[cfg(not(feature = "tokio"))]
pub(super) fn poll_in_turn<T>(
    context: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    poll(context)
}

/// Waits for the task's next turn, if this one is over.
pub(super) async fn consume_budget() {
    poll_fn(|context| poll_in_turn(context, |_| Poll::Ready(()))).await;
}
