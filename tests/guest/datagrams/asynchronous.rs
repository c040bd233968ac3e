//! Datagram sockets on tokio.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use rdmacm::Cause;
use rdmacm::core::CmAddr;
use rdmacm::tokio::{DatagramSocket, Node};
use rdmacm_tests::{PATIENCE, SECOND, Site};
use tokio::task::JoinSet;

use crate::connector::asynchronous::{on_one_thread, on_threads};
use rdmacm_tests_macros::case;

fn bound(site: &Site, node: &Node) -> DatagramSocket {
    let options = DatagramSocket::options().with_node(node);
    let socket = options.bind(site.v4(0)).unwrap();
    socket.set_deadline(PATIENCE);
    socket
}

#[case(alone, needs(Datagrams))]
fn a_request_and_its_reply(site: &Site) {
    on_one_thread().block_on(async {
        let server = bound(site, &Node::open().unwrap());
        let service = server.local_addr().port().to_string();
        let serving = tokio::spawn(async move {
            let question = server.recv_from().await.unwrap();
            let sender = question.sender().unwrap();
            server.send_to(&question, &sender).await.unwrap();
            server.flush().await.unwrap();
        });
        let asked = DatagramSocket::connect((site.v4.to_string(), service), PATIENCE);
        let (client, peer) = asked.await.unwrap();
        client.set_deadline(PATIENCE);
        client.send_to(b"question", &peer.addr()).await.unwrap();
        assert_eq!(*client.recv_from().await.unwrap(), *b"question");
        serving.await.unwrap();
    });
}

#[case(alone, needs(Datagrams))]
fn tasks_of_one_node(site: &Site) {
    const CLIENTS: u8 = 8;
    let site = *site;
    on_threads().block_on(async {
        let node = Node::open().unwrap();
        let server = Arc::new(bound(&site, &node));
        let mut tasks = JoinSet::new();
        for _ in 0..2 {
            let server = Arc::clone(&server);
            tasks.spawn(async move {
                for _ in 0..CLIENTS / 2 {
                    let question = server.recv_from().await.unwrap();
                    let sender = question.sender().unwrap();
                    server.send_to(&question, &sender).await.unwrap();
                }
                server.flush().await.unwrap();
            });
        }
        for number in 0..CLIENTS {
            let (node, server) = (node.clone(), server.local_addr());
            tasks.spawn(async move {
                let client = bound(&site, &node);
                let peer = client.resolve(server, PATIENCE).await.unwrap();
                client.send_to(&[number; 900], &peer.addr()).await.unwrap();
                assert_eq!(*client.recv_from().await.unwrap(), [number; 900]);
            });
        }
        tasks.join_all().await;
    });
}

fn group(number: u8) -> CmAddr {
    CmAddr::from(([239, 71, 13, number], 0))
}

#[case(alone, needs(Datagrams))]
fn two_members_of_a_group(site: &Site) {
    on_one_thread().block_on(async {
        let node = Node::open().unwrap();
        let sockets = [(); 3].map(|()| bound(site, &node));
        let [one, other, sender] = &sockets;
        let (to, also) = tokio::join!(
            one.join_multicast(group(1), PATIENCE),
            other.join_multicast(group(1), PATIENCE),
        );
        let to = to.unwrap();
        assert_eq!(also.unwrap(), to);
        sender.send_to(b"all", &to).await.unwrap();
        for member in [one, other] {
            assert_eq!(*member.recv_from().await.unwrap(), *b"all");
        }
        one.leave_multicast(group(1)).unwrap();
        sender.send_to(b"the other", &to).await.unwrap();
        assert_eq!(*other.recv_from().await.unwrap(), *b"the other");
        one.set_deadline(SECOND / 10);
        let error = one.recv_from().await.unwrap_err();
        assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    });
}

/// An operation that was polled once and waits.
fn begun<F: Future>(step: F) -> Pin<Box<F>> {
    let mut context = Context::from_waker(Waker::noop());
    let mut step = Box::pin(step);
    assert!(step.as_mut().poll(&mut context).is_pending());
    step
}

#[case(alone, needs(Datagrams))]
fn a_dropped_receive_loses_nothing(site: &Site) {
    on_one_thread().block_on(async {
        let member = bound(site, &Node::open().unwrap());
        let sender = bound(site, &Node::open().unwrap());
        let to = member.join_multicast(group(2), PATIENCE).await.unwrap();
        for number in 0..3 {
            let waiting = begun(member.recv_from());
            sender.send_to(&[number; 10], &to).await.unwrap();
            sender.flush().await.unwrap();
            drop(waiting);
            assert_eq!(*member.recv_from().await.unwrap(), [number; 10]);
        }
    });
}

#[case(alone, needs(Datagrams))]
fn a_dropped_step_leaks_nothing(site: &Site) {
    on_one_thread().block_on(async {
        let node = Node::open().unwrap();
        let (socket, sender) = (bound(site, &node), bound(site, &node));
        let peer = sender.local_addr();
        drop(begun(socket.resolve(peer, PATIENCE)));
        drop(begun(socket.join_multicast(group(3), PATIENCE)));
        let error = socket.leave_multicast(group(3)).unwrap_err();
        assert!(error.to_string().contains("not a member"), "{error}");
        let to = socket.join_multicast(group(3), PATIENCE).await.unwrap();
        sender.send_to(b"once", &to).await.unwrap();
        assert_eq!(*socket.recv_from().await.unwrap(), *b"once");
        assert!(socket.try_recv_from().unwrap().is_none());
    });
}
