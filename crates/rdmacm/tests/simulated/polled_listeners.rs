//! Listeners that tasks poll.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Waker};

use futures_util::StreamExt;
use rdmacm::core::Deadline;
use rdmacm::tokio::{Connector, Listener};
use tokio::time::timeout;

use crate::abandoned_polls::{begin, drive, poll_and_go};
use crate::hosts::{Hosts, SECOND};
use crate::tasks::{connector, listen, node};

#[tokio::test(start_paused = true)]
async fn a_request_is_polled_for() {
    for hosts in Hosts::each() {
        let listener = listen(&hosts, &node(&hosts.server));
        let client = node(&hosts.client);
        for _ in 0..3 {
            let connecting = connector(&hosts, &client).connect_with(&hosts.client_pairs);
            let accepting = async {
                let incoming = poll_fn(|context| listener.poll_accept(context)).await;
                incoming.unwrap().accept_with(&hosts.server_pairs).await
            };
            let (connected, accepted) = tokio::join!(connecting, accepting);
            drop((connected.unwrap(), accepted.unwrap()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_is_stopped_wakes_the_last_caller() {
    for hosts in Hosts::each() {
        let listener = Arc::new(listen(&hosts, &node(&hosts.server)));
        let polled = Arc::clone(&listener);
        let abandoned = poll_and_go(move |context| polled.poll_accept(context).is_ready()).await;
        let polled = Arc::clone(&listener);
        let polling = begin(poll_fn(move |context| polled.poll_accept(context))).await;
        listener.stop();
        let error = timeout(SECOND, polling).await.unwrap().unwrap();
        assert!(error.unwrap_err().is_stopped());
        abandoned.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_polled_does_not_hold_up_another() {
    for hosts in Hosts::each() {
        let server = node(&hosts.server);
        let driving = drive(&server).await;
        let listener = Arc::new(listen(&hosts, &server));
        let polled = Arc::clone(&listener);
        let abandoned = poll_and_go(move |context| polled.poll_accept(context).is_ready()).await;
        let waiting = Arc::clone(&listener);
        let waiting = begin(async move { waiting.accept(Deadline::Never).await }).await;
        let client = node(&hosts.client);
        let connecting = connector(&hosts, &client).connect_with(&hosts.client_pairs);
        let accepting = async {
            let incoming = timeout(SECOND, waiting).await.unwrap().unwrap();
            incoming.unwrap().reject(b"").unwrap();
        };
        let (connected, ()) = tokio::join!(connecting, accepting);
        assert!(connected.unwrap_err().is_rejected());
        abandoned.abort();
        driving.abort();
    }
}

/// As one whose task waits for something else meanwhile.
#[tokio::test(start_paused = true)]
async fn a_stream_of_requests_that_is_kept_holds_up_nobody() {
    for hosts in Hosts::each() {
        let listener = listen(&hosts, &node(&hosts.server));
        let client = node(&hosts.client);
        let mut kept = listener.incoming();
        let mut context = Context::from_waker(Waker::noop());
        assert!(kept.poll_next_unpin(&mut context).is_pending());
        let mut other = listener.incoming();
        for polls in [false, true] {
            let connecting = connector(&hosts, &client).connect_with(&hosts.client_pairs);
            let accepting = async {
                let next = async {
                    if polls {
                        StreamExt::next(&mut other).await
                    } else {
                        other.next().await
                    }
                };
                let incoming = timeout(SECOND, next).await.unwrap().unwrap().unwrap();
                incoming.reject(b"").unwrap();
            };
            let (connected, ()) = tokio::join!(connecting, accepting);
            assert!(connected.unwrap_err().is_rejected());
        }
    }
}

/// As one in a `select!` whose task waits for something else in another branch.
#[tokio::test(start_paused = true)]
async fn a_future_that_is_kept_holds_up_no_other_listener_of_a_driven_node() {
    for hosts in Hosts::each() {
        let (server, client) = (node(&hosts.server), node(&hosts.client));
        let listener = listen(&hosts, &server);
        let mut kept = Box::pin(listener.accept(Deadline::Never));
        let mut context = Context::from_waker(Waker::noop());
        assert!(kept.as_mut().poll(&mut context).is_pending());
        let driving = drive(&server).await;
        let other = Listener::options().with_node(&server);
        let other = other.bind((hosts.server.address().unwrap(), 7472)).unwrap();
        let connecting = async {
            let connector = Connector::new(other.local_addr()).with_node(&client);
            connector.connect_with(&hosts.client_pairs).await
        };
        let accepting = async {
            let incoming = other.accept(SECOND).await.unwrap();
            incoming.reject(b"").unwrap();
        };
        let (connected, ()) = tokio::join!(connecting, accepting);
        assert!(connected.unwrap_err().is_rejected());
        driving.abort();
    }
}
