//! Tasks that have polled and do not poll again, such as one whose read has timed out and that waits
//! for something else since.

use std::future::{pending, poll_fn};
use std::task::{Context, Poll};

use rdmacm::Error;
use rdmacm::tokio::Node;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};

/// A task that polls once, finds nothing, and then waits for something else without end.
pub(crate) async fn poll_and_go(
    mut poll: impl FnMut(&mut Context<'_>) -> bool + Send + 'static,
) -> AbortHandle {
    let (sender, polled) = oneshot::channel();
    let task = tokio::spawn(async move {
        let is_ready = poll_fn(|context| Poll::Ready(poll(context))).await;
        sender.send(is_ready).unwrap();
        pending::<()>().await;
    });
    assert!(!polled.await.unwrap());
    task.abort_handle()
}

/// A task that reads the events of a node, in place of those that wait for them.
pub(crate) async fn drive(node: &Node) -> JoinHandle<Error> {
    let node = node.clone();
    begin(async move { node.drive().await.unwrap_err() }).await
}

/// A task that waits by the time that this returns.
pub(crate) async fn begin<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let (sender, polled) = oneshot::channel();
    let mut sender = Some(sender);
    let mut future = Box::pin(future);
    let task = tokio::spawn(poll_fn(move |context| {
        let outcome = future.as_mut().poll(context);
        if let Some(sender) = sender.take() {
            sender.send(outcome.is_ready()).unwrap();
        }
        outcome
    }));
    assert!(!polled.await.unwrap());
    task
}
