//! How sockets learn each other's queue pairs, with a peer that speaks the protocol by hand.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use rdmacm::{DatagramAddr, DatagramSocket, Error, RdmaDatagram};
use rdmacm_tests::{PATIENCE, SECOND, Site};
use rdmacm_tests_macros::case;

use super::{bound, introduce, patient, receive, v4};
use crate::datagrams;
use crate::link::Link;
use crate::rdma_core::RdmaCore;
use crate::streams::rsocket_calls;

/// A UDP socket and a queue pair.
struct Peer {
    udp: UdpSocket,
    queue_pair: DatagramSocket,
}

const DATA: u8 = 0;
const REPLY: u8 = 7;

impl Peer {
    fn new(site: &Site) -> Self {
        let udp = UdpSocket::bind(v4(site, 0)).unwrap();
        udp.set_read_timeout(Some(PATIENCE)).unwrap();
        let queue_pair = datagrams::bound(site);
        Self { udp, queue_pair }
    }

    fn address(&self) -> SocketAddr {
        self.udp.local_addr().unwrap()
    }

    fn message(&self, kind: u8, bytes: &[u8]) -> Vec<u8> {
        let number = self.queue_pair.qp_number().to_be_bytes();
        let header = [0x55, 0x55, 0x55, 0x55, 4, kind, 16, 0];
        [&header[..], &number, &[0; 4], bytes].concat()
    }

    fn send(&self, message: &[u8], to: &RdmaDatagram) {
        self.udp.send_to(message, to.local_addr()).unwrap();
    }

    /// The number in the next message over UDP, which is of this kind and carries these bytes.
    fn expect_message(&self, kind: u8, bytes: &[u8]) -> u32 {
        let mut message = [0; 100];
        let length = self.udp.recv(&mut message).unwrap();
        let (header, data) = message[..length].split_at(16);
        assert_eq!(header[..8], [0x55, 0x55, 0x55, 0x55, 4, kind, 16, 0]);
        assert_eq!(data, bytes);
        u32::from_be_bytes(header[8..12].try_into().unwrap())
    }

    /// Replies with the number of the queue pair, and waits until a datagram has come there. The
    /// address of its sender.
    fn reply(&self, to: &RdmaDatagram) -> DatagramAddr {
        self.send(&self.message(REPLY, &[]), to);
        self.send_until_resolved(to)
    }

    fn send_until_resolved(&self, to: &RdmaDatagram) -> DatagramAddr {
        self.queue_pair.set_deadline(SECOND / 20);
        let sender = loop {
            to.send_to(b"resolved", self.address()).unwrap();
            // Over UDP, while the path is resolved or the reply is not there yet.
            if let Ok(datagram) = self.queue_pair.recv_from() {
                break datagram.sender().unwrap();
            }
        };
        self.queue_pair.set_deadline(PATIENCE);
        sender
    }

    /// The address of the sender of the next datagram at the queue pair.
    fn expect_datagram(&self, from: &RdmaDatagram, bytes: &[u8]) -> DatagramAddr {
        let expected = |bytes: &[u8]| [&header(from.local_addr()), bytes].concat();
        loop {
            let datagram = self.queue_pair.recv_from().unwrap();
            // Another one of `reply`, perhaps.
            if *datagram != expected(b"resolved") {
                assert_eq!(*datagram, expected(bytes));
                return datagram.sender().unwrap();
            }
        }
    }
}

fn header(of: SocketAddr) -> [u8; 8] {
    let SocketAddr::V4(of) = of else {
        panic!("{of}");
    };
    let mut header = [4, 8, 0, 0, 0, 0, 0, 0];
    header[2..4].copy_from_slice(&of.port().to_be_bytes());
    header[4..].copy_from_slice(&of.ip().octets());
    header
}

#[case(alone, needs(Datagrams))]
fn a_reply_leads_to_the_queue_pair(site: &Site) {
    let peer = Peer::new(site);
    let socket = bound(v4(site, 0));
    for bytes in [b"1", b"2"] {
        socket.send_to(bytes, peer.address()).unwrap();
        peer.expect_message(DATA, bytes);
    }
    let sender = peer.reply(&socket);
    socket.send_to(b"3", peer.address()).unwrap();
    assert_eq!(peer.expect_datagram(&socket, b"3"), sender);
    for size in [0, 1, 64, socket.max_datagram()] {
        let bytes = vec![7; size];
        socket.send_to(&bytes, peer.address()).unwrap();
        peer.expect_datagram(&socket, &bytes);
    }
    let answer = [&header(peer.address())[..], b"4"].concat();
    peer.queue_pair.send_to(&answer, &sender).unwrap();
    assert_eq!(receive(&socket), (b"4".to_vec(), peer.address()));
}

/// As long as librdmacm's buffers, and longer: that would be cut.
#[case(alone, needs(Datagrams))]
fn a_datagram_over_udp_that_is_too_long_is_dropped(site: &Site) {
    let peer = Peer::new(site);
    let socket = bound(v4(site, 0));
    let longest = vec![7; 2032];
    for bytes in [&longest[..], &[8; 2033], b"short"] {
        peer.send(&peer.message(DATA, bytes), &socket);
    }
    let mut into = vec![0; 4096];
    let mut receive = || {
        let (length, from) = socket.recv_from(&mut into).unwrap();
        assert_eq!(from, peer.address());
        into[..length].to_vec()
    };
    assert_eq!(receive(), longest);
    assert_eq!(receive(), b"short");
}

#[case(alone, needs(Datagrams))]
fn a_datagram_over_udp_is_received_and_replied_to(site: &Site) {
    let peer = Peer::new(site);
    let socket = bound(v4(site, 0));
    peer.send(&peer.message(DATA, b"hello"), &socket);
    assert_eq!(receive(&socket), (b"hello".to_vec(), peer.address()));
    let number = peer.expect_message(REPLY, &[]);
    // The peer's number is known by the datagram, without a reply.
    let sender = peer.send_until_resolved(&socket);
    assert_eq!(sender.qp_number, number);
}

#[case(alone, needs(Datagrams))]
fn other_messages_over_udp_are_ignored(site: &Site) {
    let peer = Peer::new(site);
    let socket = bound(v4(site, 0));
    for (at, byte) in [(0, 0), (4, 6), (5, 1), (6, 28)] {
        let mut message = peer.message(DATA, b"strange");
        message[at] = byte;
        peer.send(&message, &socket);
    }
    peer.send(b"short", &socket);
    peer.send(&[], &socket);
    socket.send_to(b"1", peer.address()).unwrap();
    peer.expect_message(DATA, b"1");
    peer.send(&peer.message(DATA, b"valid"), &socket);
    assert_eq!(receive(&socket).0, b"valid");
}

#[case(alone, needs(Datagrams))]
fn other_datagrams_at_the_queue_pair_are_dropped(site: &Site) {
    let peer = Peer::new(site);
    let socket = bound(v4(site, 0));
    socket.send_to(b"1", peer.address()).unwrap();
    peer.expect_message(DATA, b"1");
    let sender = peer.reply(&socket);
    let valid = [&header(peer.address())[..], b"valid"].concat();
    let with = |at: usize, byte: u8| {
        let mut datagram = valid.clone();
        datagram[at] = byte;
        datagram
    };
    let mut without_port = valid.clone();
    without_port[2..4].fill(0);
    let mut v6 = vec![0; 24];
    v6[..4].copy_from_slice(&[6, 24, 1, 1]);
    let other_host = with(7, 2);
    let invalid = [
        vec![],
        valid[..7].to_vec(),
        with(0, 5),
        without_port,
        v6,
        other_host,
    ];
    for datagram in invalid.iter().chain([&valid]) {
        peer.queue_pair.send_to(datagram, &sender).unwrap();
    }
    assert_eq!(receive(&socket), (b"valid".to_vec(), peer.address()));
}

#[case(alone, needs(Datagrams))]
fn a_connected_socket_drops_the_datagrams_of_others(site: &Site) {
    let (peer, other) = (Peer::new(site), Peer::new(site));
    let socket = patient(RdmaDatagram::connect(peer.address()).unwrap());
    other.send(&other.message(DATA, b"other"), &socket);
    socket.send(b"1").unwrap();
    peer.expect_message(DATA, b"1");
    let to = peer.reply(&socket);
    for (from, bytes) in [(&other, b"other"), (&peer, b"known")] {
        let datagram = [&header(from.address())[..], bytes].concat();
        peer.queue_pair.send_to(&datagram, &to).unwrap();
    }
    assert_eq!(receive(&socket), (b"known".to_vec(), peer.address()));
    let error = socket.try_recv_from(&mut [0; 9]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
}

#[case(alone, needs(Datagrams))]
fn a_peer_that_was_started_again_has_another_queue_pair(site: &Site) {
    let client = bound(v4(site, 0));
    let server = bound(v4(site, 0));
    introduce(&client, &server);
    let address = server.local_addr();
    drop(server);
    let until = Instant::now() + PATIENCE;
    let server = loop {
        match RdmaDatagram::bind(address) {
            // A path that was just resolved keeps the old one for a moment.
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < until => {}
            bound => break patient(bound.unwrap()),
        }
    };
    server.send_to(b"again", client.local_addr()).unwrap();
    assert_eq!(receive(&client), (b"again".to_vec(), address));
    client.send_to(b"1", address).unwrap();
    assert_eq!(receive(&server), (b"1".to_vec(), client.local_addr()));
}

/// Its queue pair receives nothing any more, so peers are not told its number.
#[case(alone, needs(Datagrams))]
fn a_socket_that_has_failed_replies_to_nobody(site: &Site) {
    let link = Link::new(site);
    let site = link.site(site);
    let peer = Peer::new(&site);
    let socket = bound(v4(&site, 0));
    socket.send_to(b"1", peer.address()).unwrap();
    peer.expect_message(DATA, b"1");
    peer.reply(&socket);
    let error = link.while_down(|| {
        let until = Instant::now() + PATIENCE;
        loop {
            match socket.send_to(b"lost", peer.address()) {
                Ok(_) => assert!(Instant::now() < until, "no request fails"),
                Err(error) => break error,
            }
        }
    });
    let inner = error.get_ref().and_then(|error| error.downcast_ref());
    let inner: &Error = inner.unwrap();
    assert!(datagrams::is_failure(inner.cause()), "{error:?}");
    peer.send(&peer.message(DATA, b"2"), &socket);
    // Reads what has come over UDP.
    let _ = socket.try_recv_from(&mut [0; 9]);
    peer.udp.set_nonblocking(true).unwrap();
    let mut message = [0; 100];
    // Those that were sent before the reply was there.
    while let Ok(length) = peer.udp.recv(&mut message) {
        assert_eq!(message[5], DATA, "{:?}", &message[..length]);
    }
}

/// It creates address handles without a global route, which the kernel refuses.
#[case(needs(Datagrams, Preloaded))]
fn librdmacm_has_no_datagrams_on_roce(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(0) {
        let server = bound(v4(site, 0));
        let port = server.local_addr().port();
        let client = rsocket_calls::script(site, rdma_core, "datagram", port, &[]);
        let ended = client.finish();
        let printed = ended.printed();
        assert!(
            printed.iter().any(|line| line.contains("rconnect")),
            "{printed:?}"
        );
    }
}
