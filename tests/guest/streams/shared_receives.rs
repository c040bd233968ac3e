//! Streams that share receive requests. iWARP has no such streams: there each one has its own,
//! and the option changes nothing.

use std::io::{ErrorKind, Read, Write};
use std::thread;

use rdmacm::{Connector, Listener, Node, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_core::ConnParam;
use rdmacm_rsocket::Message;
use rdmacm_tests::{PATIENCE, Site};
use rdmacm_tests_macros::case;
use rdmacm_verbs::{RemoteMemory, SendOperation, SendRequest};

use super::scripted_peer::{Peer, word};
use super::{Pair, accept, bytes, carry};
use crate::link::Link;

/// Small streams.
fn small() -> StreamOptions {
    let options = StreamOptions::new().receive_buffer(4096).send_buffer(4096);
    options.receives(32).sends(16)
}

/// So many streams, those of each side on one node.
fn pairs(site: &Site, count: usize, options: &StreamOptions) -> Vec<Pair> {
    let nodes = [(); 2].map(|()| Node::open().unwrap());
    let listener = Listener::options().with_node(&nodes[0]);
    let listener = listener.bind(site.v4(0)).unwrap();
    let address = listener.local_addr();
    let listener = RdmaListener::new(listener, options.clone());
    thread::scope(|scope| {
        let connecting = scope.spawn(|| {
            let connect = |()| {
                let connector = Connector::new(address).with_node(&nodes[1]);
                let connector = connector.deadline(PATIENCE);
                connector.connect_stream(options.clone()).unwrap()
            };
            vec![(); count].into_iter().map(connect).collect()
        });
        let servers: Vec<_> = (0..count).map(|_| accept(&listener).0).collect();
        let clients: Vec<RdmaStream> = connecting.join().unwrap();
        let pairs = servers.into_iter().map(|server| {
            // Connected and accepted in any order.
            let peer = server.peer_addr().unwrap();
            let is_its = |client: &&RdmaStream| client.local_addr().unwrap() == peer;
            (
                server,
                clients.iter().position(|client| is_its(&client)).unwrap(),
            )
        });
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort_by_key(|(_, index)| *index);
        let pairs = pairs.into_iter().zip(clients);
        let pairs = pairs.map(|((server, _), client)| Pair { client, server });
        pairs.inspect(Pair::be_patient).collect()
    })
}

/// More messages than there are requests for all of them together.
#[case]
fn each_stream_carries_its_own_bytes(site: &Site) {
    let pairs = pairs(site, 8, &small().shared_receives(48));
    thread::scope(|scope| {
        for (number, Pair { client, server }) in pairs.iter().enumerate() {
            let bytes = bytes(50_003 + number);
            scope.spawn(move || {
                thread::scope(|scope| {
                    scope.spawn(|| carry(client, server, &bytes));
                    carry(server, client, &bytes);
                });
            });
        }
    });
}

#[case]
fn peers_that_find_no_request_try_again(site: &Site) {
    let pairs = pairs(site, 8, &small().shared_receives(48));
    let bytes = bytes(16);
    for Pair { client, .. } in &pairs {
        for byte in &bytes {
            { client }.write_all(&[*byte]).unwrap();
        }
    }
    for Pair { server, .. } in &pairs {
        let mut received = [0; 16];
        { server }.read_exact(&mut received).unwrap();
        assert_eq!(received, *bytes);
    }
}

#[case]
fn the_reader_of_each_stream_is_woken(site: &Site) {
    const ROUNDS: u8 = 30;
    let pairs = pairs(site, 6, &small().shared_receives(64));
    thread::scope(|scope| {
        for Pair { server, .. } in &pairs {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let mut byte = [0];
                    { server }.read_exact(&mut byte).unwrap();
                    assert_eq!(byte, [round]);
                    { server }.write_all(&byte).unwrap();
                }
                assert_eq!({ server }.read(&mut [0]).unwrap(), 0);
            });
        }
        for round in 0..ROUNDS {
            for Pair { client, .. } in &pairs {
                { client }.write_all(&[round]).unwrap();
            }
            for Pair { client, .. } in &pairs {
                let mut byte = [0];
                { client }.read_exact(&mut byte).unwrap();
                assert_eq!(byte, [round]);
            }
        }
        for Pair { client, .. } in &pairs {
            client.shutdown(std::net::Shutdown::Both).unwrap();
        }
    });
}

/// The peer has no receive request for what this side sends, which fails after six retries: by then
/// the peer's messages have arrived.
#[case(needs(AcknowledgedSends), waiting)]
fn what_has_arrived_is_read_before_a_failure(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let listener = RdmaListener::new(listener, small().shared_receives(64));
    let port = listener.local_addr().unwrap().port();
    let (peer, stream) = thread::scope(|scope| {
        let param = ConnParam::new().retry_count(1).rnr_retry_count(6);
        let peer = scope.spawn(|| Peer::connect_with(site, port, |_| (), param, 0).unwrap());
        let (stream, _) = accept(&listener);
        (peer.join().unwrap(), stream)
    });
    (&stream).write_all(b"x").unwrap();
    let is_sent = || {
        peer.connection
            .next_sent(PATIENCE)
            .unwrap()
            .result()
            .is_ok()
    };
    for place in 0..3 {
        peer.write(64 * place, &[7; 64], word(Message::Data(64)));
        assert!(is_sent() && is_sent());
    }
    let empty_write = || SendRequest::inline(SendOperation::Write(RemoteMemory::NONE), &[]);
    // A device whose queue pair has failed answers no more.
    peer.post(empty_write());
    while is_sent() {
        peer.post(empty_write());
    }
    assert_eq!((&stream).read(&mut [0; 10]).unwrap(), 10);
    let mut left = [0; 3 * 64 - 10];
    (&stream).read_exact(&mut left).unwrap();
    assert!(left.iter().all(|byte| *byte == 7));
    let error = (&stream).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
}

#[case]
fn streams_come_and_go(site: &Site) {
    let options = small().shared_receives(64);
    let [first, second] = [0, 1].map(|_| pairs(site, 3, &options));
    drop(first);
    for Pair { client, server } in &second {
        carry(client, server, &bytes(10_000));
    }
}

/// Before Linux 6.2, and on siw, the removal waits until both sides have noticed it.
#[case(alone)]
fn removal_of_the_device_ends_the_waits(site: &Site) {
    for options in [small(), small().shared_receives(64)] {
        let link = Link::new(site);
        let listener = Listener::bind(link.address.with_port(0)).unwrap();
        let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
        let listener = RdmaListener::new(listener, options.clone());
        let streams = thread::scope(|scope| {
            let client = scope.spawn(|| connector.connect_stream(options.clone()).unwrap());
            let (server, _) = accept(&listener);
            [client.join().unwrap(), server]
        });
        drop(listener);
        carry(&streams[0], &streams[1], b"hello");
        thread::scope(|scope| {
            for stream in streams {
                scope.spawn(move || {
                    let error = { &stream }.read(&mut [0]).unwrap_err();
                    // The peer's disconnect may come first.
                    let is_gone = [ErrorKind::NotConnected, ErrorKind::ConnectionReset];
                    assert!(is_gone.contains(&error.kind()), "{error}");
                });
            }
            link.remove_device();
        });
    }
}
