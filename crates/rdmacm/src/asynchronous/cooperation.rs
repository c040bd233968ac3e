//! Giving other tasks their turn.

#[cfg(feature = "tokio")]
use std::future::Future as _;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// Ready, unless the task has had its turn: then it is woken at once, after others. A call that
/// mostly finds what it waits for would never let others run otherwise.
#[cfg(feature = "tokio")]
pub(super) fn poll_budget(context: &mut Context<'_>) -> Poll<()> {
    let budget = std::pin::pin!(::tokio::task::consume_budget());
    budget.poll(context)
}

/// Always ready: only tokio counts what a task does in its turn.
#[cfg(not(feature = "tokio"))]
pub(super) fn poll_budget(_: &mut Context<'_>) -> Poll<()> {
    Poll::Ready(())
}

/// Waits for the task's next turn, if this one is over.
pub(super) async fn consume_budget() {
    poll_fn(poll_budget).await;
}
