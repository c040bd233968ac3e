//! Futures that are dropped after each possible number of polls.

use rdmacm::core::{Deadline, EventKind};
use rdmacm::tokio::{Listener, Node};
use rdmacm::{CLOSE_DEADLINE, Cause};
use rdmacm_test_helpers::poll_at_most;

use crate::hosts::Hosts;
use crate::queue_pair::QueuePairs;
use crate::tasks::{assert_client_is_clean, connect, connector, listen, node};

/// More polls than any of the futures takes.
pub(crate) const MAX_POLLS: usize = 200;

/// Accepts every request, and keeps the connections.
async fn serve(listener: Listener, pairs: QueuePairs) {
    let mut connections = Vec::new();
    loop {
        let incoming = listener.accept(Deadline::Never).await.unwrap();
        connections.extend(incoming.accept_with(&pairs).await);
    }
}

/// The node is not harmed.
async fn assert_connects(hosts: &Hosts, client: &Node) {
    let connected = connector(hosts, client).connect_with(&hosts.client_pairs);
    let connection = connected.await.unwrap();
    connection.close(CLOSE_DEADLINE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn connecting() {
    for hosts in Hosts::each() {
        let listener = listen(&hosts, &node(&hosts.server));
        let server = tokio::spawn(serve(listener, hosts.server_pairs.clone()));
        let client = node(&hosts.client);
        let mut polls = 0;
        loop {
            let connecting = connector(&hosts, &client).connect_with(&hosts.client_pairs);
            let connected = poll_at_most(polls, connecting).await;
            let is_complete = connected.is_some();
            connected.transpose().unwrap();
            assert_client_is_clean(&hosts).await;
            assert_connects(&hosts, &client).await;
            assert_client_is_clean(&hosts).await;
            if is_complete {
                break;
            }
            polls += 1;
            assert!(polls < MAX_POLLS);
        }
        assert!(polls > 1, "{polls}");
        server.abort();
        assert!(server.await.unwrap_err().is_cancelled());
        hosts.assert_server_is_clean();
    }
}

#[tokio::test(start_paused = true)]
async fn accepting() {
    for hosts in Hosts::each() {
        let listener = listen(&hosts, &node(&hosts.server));
        let client = node(&hosts.client);
        let mut polls = 0;
        loop {
            let accepting = async {
                let incoming = listener.accept(Deadline::Never).await.unwrap();
                poll_at_most(polls, incoming.accept_with(&hosts.server_pairs)).await
            };
            let connecting = connector(&hosts, &client).connect_with(&hosts.client_pairs);
            let (connected, accepted) = tokio::join!(connecting, accepting);
            let is_complete = accepted.is_some();
            match accepted {
                Some(accepted) => drop((accepted.unwrap(), connected.unwrap())),
                // The peer may have been connected, and disconnected then.
                None => match connected {
                    Ok(connection) => {
                        let reason = connection.closed(CLOSE_DEADLINE).await.unwrap();
                        assert_eq!(reason.kind(), EventKind::Disconnected);
                    }
                    Err(error) => {
                        let has_disconnected = matches!(error.cause(), Cause::PeerGone);
                        assert!(error.is_rejected() || has_disconnected, "{polls}: {error}");
                    }
                },
            }
            assert_client_is_clean(&hosts).await;
            hosts.assert_left(&hosts.server, 1, &hosts.server_pairs, 0);
            drop(connect(&hosts, &client, &listener).await);
            hosts.assert_left(&hosts.server, 1, &hosts.server_pairs, 0);
            if is_complete {
                break;
            }
            polls += 1;
            assert!(polls < MAX_POLLS);
        }
        assert!(polls > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_request() {
    for hosts in Hosts::each() {
        let listener = listen(&hosts, &node(&hosts.server));
        let client = node(&hosts.client);
        for polls in 0..5 {
            let waiting = poll_at_most(polls, listener.accept(Deadline::Never));
            let accepting = async {
                let incoming = match waiting.await {
                    Some(incoming) => incoming,
                    // The request is not lost.
                    None => listener.accept(Deadline::Never).await,
                };
                incoming.unwrap().accept_with(&hosts.server_pairs).await
            };
            let connecting = connector(&hosts, &client).connect_with(&hosts.client_pairs);
            let (connected, accepted) = tokio::join!(connecting, accepting);
            drop((connected.unwrap(), accepted.unwrap()));
            assert_client_is_clean(&hosts).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn closing() {
    for hosts in Hosts::each() {
        let listener = listen(&hosts, &node(&hosts.server));
        let client = node(&hosts.client);
        let mut polls = 0;
        loop {
            let [connection, accepted] = connect(&hosts, &client, &listener).await;
            let closing = async {
                let closed = poll_at_most(polls, connection.close(CLOSE_DEADLINE)).await;
                drop(connection);
                closed
            };
            let closed = accepted.closed(CLOSE_DEADLINE);
            let (own, peers) = tokio::join!(closing, closed);
            assert!(peers.unwrap().is_orderly());
            drop(accepted);
            assert_client_is_clean(&hosts).await;
            hosts.assert_left(&hosts.server, 1, &hosts.server_pairs, 0);
            if let Some(own) = own {
                own.unwrap();
                break;
            }
            polls += 1;
            assert!(polls < MAX_POLLS);
        }
        assert!(polls > 0);
    }
}
