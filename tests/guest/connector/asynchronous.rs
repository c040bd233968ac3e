//! Connecting and accepting on tokio.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_core::Stream;
use rdmacm::core::{CommandNumber, EventChannel, EventKind};
use rdmacm::tokio::{CmConnection, Connector, Listener, Node};
use rdmacm::{Cause, Stage};
use rdmacm_tests::{Counting, PATIENCE, Site, free_port};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::queue_pairs::{AnyQueuePair, QueuePairs};
use rdmacm_tests_macros::case;

pub(crate) fn on_one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

pub(crate) fn on_threads() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

pub(crate) fn connector(site: &Site, port: u16) -> Connector {
    Connector::new((site.v4.to_string(), port.to_string())).deadline(PATIENCE)
}

/// Both sides of a connection.
async fn pair(
    site: &Site,
    listener: &Listener,
    connector: Connector,
) -> (CmConnection<AnyQueuePair>, CmConnection<AnyQueuePair>) {
    let queue_pairs = QueuePairs::new(site);
    let client = tokio::spawn(connector.connect_with(queue_pairs.clone()));
    let incoming = listener.accept(PATIENCE).await.unwrap();
    let server = incoming.accept_with(queue_pairs).await.unwrap();
    (client.await.unwrap().unwrap(), server)
}

#[case]
fn a_name_connects_and_disconnects(site: &Site) {
    on_one_thread().block_on(async {
        let listener = Listener::bind(site.v4(0)).unwrap();
        let port = listener.local_addr().port();
        let (client, server) = pair(site, &listener, connector(site, port)).await;
        let closing = tokio::spawn(async move { client.close(PATIENCE).await });
        let end = server.closed(PATIENCE).await.unwrap();
        assert_eq!(end.kind(), EventKind::Disconnected);
        closing.await.unwrap().unwrap();
    });
}

#[case]
fn a_rejection_carries_the_peers_private_data(site: &Site) {
    on_one_thread().block_on(async {
        let listener = Listener::bind(site.v4(0)).unwrap();
        let port = listener.local_addr().port();
        let queue_pairs = QueuePairs::new(site);
        let client = tokio::spawn(connector(site, port).connect_with(queue_pairs));
        let incoming = listener.accept(PATIENCE).await.unwrap();
        incoming.reject(b"not you").unwrap();
        let error = client.await.unwrap().unwrap_err();
        assert_eq!(error.stage(), Stage::Connect);
        assert!(error.private_data().starts_with(b"not you"));
    });
}

/// Opens `COUNT` connections at once on one node, then closes all.
async fn come_and_go(site: Site, count: usize) {
    let node = Node::open().unwrap();
    let listener = Listener::options()
        .with_node(&node)
        .bind(site.v4(0))
        .unwrap();
    let port = listener.local_addr().port();
    let queue_pairs = QueuePairs::new(&site);
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let connector = connector(&site, port).with_node(&node);
        let queue_pairs = queue_pairs.clone();
        tasks.spawn(async move {
            let client = connector.connect_with(queue_pairs).await.unwrap();
            client.close(PATIENCE).await.unwrap();
        });
    }
    let mut servers = JoinSet::new();
    for _ in 0..count {
        let incoming = listener.accept(PATIENCE).await.unwrap();
        let queue_pairs = queue_pairs.clone();
        servers.spawn(async move {
            let server = incoming.accept_with(queue_pairs).await.unwrap();
            server.closed(PATIENCE).await.unwrap().kind()
        });
    }
    while let Some(ended) = servers.join_next().await {
        assert_eq!(ended.unwrap(), EventKind::Disconnected);
    }
    while let Some(closed) = tasks.join_next().await {
        closed.unwrap();
    }
}

#[case]
fn many_tasks_share_one_channel(site: &Site) {
    on_one_thread().block_on(come_and_go(*site, 40));
}

#[case]
fn many_tasks_on_many_threads_share_one_channel(site: &Site) {
    on_threads().block_on(come_and_go(*site, 40));
}

/// Polls a future up to `polls` times and drops it, unless it completes.
pub(crate) struct Dropped<F> {
    future: Option<Pin<Box<F>>>,
    polls_left: u32,
}

impl<F: Future> Dropped<F> {
    pub(crate) fn after(polls: u32, future: F) -> Self {
        Self {
            future: Some(Box::pin(future)),
            polls_left: polls,
        }
    }
}

impl<F: Future> Future for Dropped<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls_left == 0 {
            self.future = None;
            return Poll::Ready(None);
        }
        self.polls_left -= 1;
        let future = self.future.as_mut().unwrap();
        let outcome = future.as_mut().poll(context).map(Some);
        if outcome.is_pending() && self.polls_left == 0 {
            // Dropped before the runtime runs anything else.
            context.waker().wake_by_ref();
        }
        outcome
    }
}

#[case]
fn a_future_dropped_at_any_step_leaks_nothing(site: &Site) {
    on_one_thread().block_on(async {
        let listener = Listener::bind(site.v4(0)).unwrap();
        let port = listener.local_addr().port();
        let device = Arc::new(Counting::new());
        let channel = EventChannel::options().ucma(device.clone());
        let node = Node::options().channel(channel).open().unwrap();
        let ids = || device.of(CommandNumber::CREATE_ID) - device.of(CommandNumber::DESTROY_ID);
        let queue_pairs = QueuePairs::new(site);
        let server = async {
            loop {
                // Some of the peers have given up by now.
                let incoming = listener.accept(PATIENCE).await.unwrap();
                let _ = incoming.accept_with(queue_pairs.clone()).await;
            }
        };
        let clients = async {
            for polls in 1..=6 {
                let connecting = connector(site, port)
                    .with_node(&node)
                    .connect_with(queue_pairs.clone());
                drop(Dropped::after(polls, connecting).await);
            }
            // The node still works.
            let connector = connector(site, port).with_node(&node);
            let connected = connector.connect_with(queue_pairs.clone()).await.unwrap();
            // Another thread destroys the ids, after the handshakes of iWARP.
            while ids() > 1 {
                tokio::task::yield_now().await;
            }
            drop(connected);
            while ids() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = server => {}
            ended = tokio::time::timeout(PATIENCE, clients) => ended.unwrap(),
        }
    });
}

/// Dropping a task that was woken to read events for all wakes another waiter.
#[case]
fn an_unused_leader_wake_up_is_passed_on(site: &Site) {
    on_one_thread().block_on(async {
        let node = Node::open().unwrap();
        let listener = Listener::options()
            .with_node(&node)
            .bind(site.v4(0))
            .unwrap();
        let port = listener.local_addr().port();
        let queue_pairs = QueuePairs::new(site);
        for _ in 0..20 {
            // It waits first, so it is the one that is woken. It is never polled again,
            // and it is dropped once the other has begun to wait.
            let mut idle = Some(Box::pin(listener.accept(PATIENCE)));
            let mut context = Context::from_waker(Waker::noop());
            assert!(
                idle.as_mut()
                    .unwrap()
                    .as_mut()
                    .poll(&mut context)
                    .is_pending()
            );
            let connecting = connector(site, port)
                .with_node(&node)
                .connect_with(queue_pairs.clone());
            let mut connecting = pin!(connecting);
            let mut polls = 0;
            let serving = async {
                let incoming = listener.accept(PATIENCE).await.unwrap();
                incoming.accept_with(queue_pairs.clone()).await.unwrap()
            };
            let client = poll_fn(|context| {
                let outcome = connecting.as_mut().poll(context);
                polls += 1;
                if polls == 1 {
                    drop(idle.take());
                }
                outcome
            });
            let (client, server) = tokio::join!(client, serving);
            drop((client.unwrap(), server));
        }
    });
}

#[case]
fn incoming_connections_are_a_stream(site: &Site) {
    on_one_thread().block_on(async {
        let listener = Listener::bind(site.v4(0)).unwrap();
        let port = listener.local_addr().port();
        let queue_pairs = QueuePairs::new(site);
        let mut clients = JoinSet::new();
        for _ in 0..3 {
            clients.spawn(connector(site, port).connect_with(queue_pairs.clone()));
        }
        let mut incoming = pin!(listener.incoming());
        for _ in 0..3 {
            let next = poll_fn(|context| incoming.as_mut().poll_next(context)).await;
            let server = next.unwrap().unwrap().accept_with(queue_pairs.clone());
            drop(server.await.unwrap());
        }
        while let Some(client) = clients.join_next().await {
            client.unwrap().unwrap();
        }
    });
}

#[case]
fn a_stopped_listener_ends_its_stream(site: &Site) {
    on_one_thread().block_on(async {
        let listener = Listener::bind(site.v4(0)).unwrap();
        let stopper = listener.stop_handle();
        let mut incoming = pin!(listener.incoming());
        let next = poll_fn(|context| incoming.as_mut().poll_next(context));
        let stopping = async { stopper.stop() };
        let (next, ()) = tokio::join!(next, stopping);
        assert!(next.is_none());
    });
}

/// Any number of tasks accept; cancelling one affects no other.
#[case]
fn a_cancelled_accept_loses_no_peer(site: &Site) {
    on_one_thread().block_on(async {
        let listener = Listener::bind(site.v4(0)).unwrap();
        let port = listener.local_addr().port();
        let queue_pairs = QueuePairs::new(site);
        let client = tokio::spawn(connector(site, port).connect_with(queue_pairs.clone()));
        let mut gave_up = 0;
        let incoming = loop {
            let waiting = listener.accept(PATIENCE);
            match Dropped::after(1, waiting).await {
                Some(incoming) => break incoming.unwrap(),
                None => gave_up += 1,
            }
            tokio::task::yield_now().await;
        };
        assert!(gave_up > 0);
        drop(incoming.accept_with(queue_pairs).await.unwrap());
        client.await.unwrap().unwrap();
    });
}

#[case]
fn a_node_needs_a_runtime(_: &Site) {
    let error = Node::open().unwrap_err();
    assert_eq!(error.stage(), Stage::Open);
    assert!(matches!(error.cause(), Cause::Runtime(_)), "{error}");
    let deadline = Duration::from_millis(1);
    let connector = Connector::new(("10.0.0.1", free_port().to_string())).deadline(deadline);
    let mut resolving = pin!(connector.resolve());
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(refused) = resolving.as_mut().poll(&mut context) else {
        panic!("it waits for no runtime");
    };
    assert_eq!(refused.unwrap_err().stage(), Stage::Open);
}
