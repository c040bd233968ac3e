//! Listeners that tasks poll.

use std::future::poll_fn;
use std::sync::Arc;

use rdmacm::core::Deadline;
use tokio::time::timeout;

use crate::gone_pollers::{begin, drive, poll_and_go};
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
        let gone = poll_and_go(move |context| polled.poll_accept(context).is_ready()).await;
        let polled = Arc::clone(&listener);
        let polling = begin(poll_fn(move |context| polled.poll_accept(context))).await;
        listener.stop();
        let error = timeout(SECOND, polling).await.unwrap().unwrap();
        assert!(error.unwrap_err().is_stopped());
        gone.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_polled_does_not_hold_up_another() {
    for hosts in Hosts::each() {
        let server = node(&hosts.server);
        let driving = drive(&server).await;
        let listener = Arc::new(listen(&hosts, &server));
        let polled = Arc::clone(&listener);
        let gone = poll_and_go(move |context| polled.poll_accept(context).is_ready()).await;
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
        gone.abort();
        driving.abort();
    }
}
