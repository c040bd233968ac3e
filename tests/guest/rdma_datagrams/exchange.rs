//! Sending and receiving.

use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

use rdmacm::RdmaDatagram;
use rdmacm_tests::{PATIENCE, SECOND, Site};
use rdmacm_tests_macros::case;

use super::{bound, connected, introduce, patient, receive, v4, v6};
use crate::connector::asynchronous::on_one_thread;
use crate::streams::bytes;

#[case(alone, needs(Datagrams))]
fn a_request_and_its_reply(site: &Site) {
    let server = bound(v4(site, 0));
    let client = connected(&server);
    assert_eq!(client.peer_addr(), Some(server.local_addr()));
    assert_eq!(client.local_addr().ip(), site.v4);
    for _ in 0..10 {
        assert_eq!(client.send(b"question").unwrap(), 8);
        let (question, sender) = receive(&server);
        assert_eq!(
            (&*question, sender),
            (&b"question"[..], client.local_addr())
        );
        server.send_to(b"answer", sender).unwrap();
        let mut answer = [0; 100];
        assert_eq!(client.recv(&mut answer).unwrap(), 6);
        assert!(answer.starts_with(b"answer\0"));
    }
}

#[case(alone, needs(Datagrams))]
fn every_size_arrives(site: &Site) {
    for address in [v4(site, 0), v6(site, 0)] {
        let server = bound(address);
        let longest = server.max_datagram();
        assert!((200..=2032).contains(&longest), "{longest}");
        let bytes = bytes(longest);
        for size in [0, 1, 64, longest - 1, longest] {
            let bytes = &bytes[..size];
            let client = bound(address);
            for _ in 0..4 {
                client.send_to(bytes, server.local_addr()).unwrap();
                assert_eq!(receive(&server), (bytes.to_vec(), client.local_addr()));
            }
        }
    }
}

#[case(alone, needs(Datagrams))]
fn what_does_not_fit_is_lost(site: &Site) {
    let server = bound(v4(site, 0));
    let client = connected(&server);
    let mut start = [0; 3];
    for _ in 0..3 {
        client.send(b"longer").unwrap();
        let (length, _) = server.recv_from(&mut start).unwrap();
        assert_eq!((length, &start), (3, b"lon"));
    }
    let error = server.try_recv_from(&mut start).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
}

#[case(alone, needs(Datagrams))]
fn many_clients_at_one_socket(site: &Site) {
    let server = bound(v4(site, 0));
    thread::scope(|scope| {
        for number in 0..8 {
            let client = connected(&server);
            scope.spawn(move || {
                for round in 0..20 {
                    client.send(&[number, round]).unwrap();
                    let mut echo = [0; 2];
                    assert_eq!(client.recv(&mut echo).unwrap(), 2);
                    assert_eq!(echo, [number, round]);
                }
            });
        }
        for _ in 0..8 * 20 {
            let (datagram, sender) = receive(&server);
            server.send_to(&datagram, sender).unwrap();
        }
    });
}

#[case(alone, needs(Datagrams))]
fn a_receive_times_out(site: &Site) {
    let socket = bound(v4(site, 0));
    socket.set_read_timeout(Some(SECOND / 20)).unwrap();
    assert_eq!(socket.read_timeout(), Some(SECOND / 20));
    let error = socket.recv_from(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    let error = socket.set_read_timeout(Some(Duration::ZERO)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    // It goes on.
    let client = connected(&socket);
    introduce(&client, &socket);
}

#[case(alone, needs(Datagrams))]
fn as_many_datagrams_are_kept_as_there_is_room_for(site: &Site) {
    let server = RdmaDatagram::options().receives(4).bind(v4(site, 0));
    let server = patient(server.unwrap());
    let client = connected(&server);
    introduce(&client, &server);
    for number in 0..50 {
        client.send(&[number]).unwrap();
    }
    server.set_read_timeout(Some(SECOND / 20)).unwrap();
    let (mut kept, mut has_later) = (0, false);
    let mut datagram = [0; 5];
    loop {
        match server.recv_from(&mut datagram) {
            Ok((5, _)) => has_later = true,
            Ok(_) => kept += 1,
            Err(_) if has_later => break,
            Err(_) => drop(client.send(b"later").unwrap()),
        }
    }
    assert!(kept >= 4, "{kept}");
}

#[case(alone, needs(Datagrams))]
fn tasks_exchange_datagrams(site: &Site) {
    use rdmacm::tokio::{Node, RdmaDatagram};

    on_one_thread().block_on(async {
        let node = Node::open().unwrap();
        let options = || RdmaDatagram::options().with_node(&node);
        let server = options().bind(v4(site, 0)).unwrap();
        let client = options().connect(server.local_addr()).await.unwrap();
        let asking = async {
            let mut answer = [0; 1];
            for number in 0..20 {
                client.send(&[number]).await.unwrap();
                assert_eq!(client.recv(&mut answer).await.unwrap(), 1);
                assert_eq!(answer, [number]);
            }
        };
        let answering = async {
            let mut question = [0; 1];
            loop {
                let (length, sender) = server.recv_from(&mut question).await.unwrap();
                server.send_to(&question[..length], sender).await.unwrap();
            }
        };
        let both = async {
            tokio::select! {
                () = asking => {}
                () = answering => {}
            }
        };
        tokio::time::timeout(PATIENCE, both).await.unwrap();
    });
}
