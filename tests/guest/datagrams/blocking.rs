//! Blocking datagram sockets.

use std::thread;

use rdmacm::core::{RDMA_UDP_QKEY, SidrStatus};
use rdmacm::{Cause, DatagramAddr, DatagramSocket, Stage};
use rdmacm_tests::{PATIENCE, SECOND, Site};

use super::{asked, bound, service, status};
use rdmacm_tests_macros::case;

#[case(alone, needs(Datagrams))]
fn a_request_and_its_reply(site: &Site) {
    let server = bound(site);
    let (client, to) = asked(site, &server);
    assert_eq!(to.qp_number, server.qp_number());
    assert_eq!((to.qkey, server.qkey()), (RDMA_UDP_QKEY, RDMA_UDP_QKEY));
    client.send_to(b"question", &to).unwrap();
    let question = server.recv_from().unwrap();
    assert_eq!(*question, *b"question");
    let sender = question.sender().unwrap();
    assert_eq!(sender.qp_number, client.qp_number());
    assert_eq!(sender.gid(), to.gid(), "both are on one port");
    server.send_to(b"answer", &sender).unwrap();
    let answer = client.recv_from().unwrap();
    assert_eq!(*answer, *b"answer");
    assert_eq!(answer.sender(), Some(to));
    assert_eq!(answer.destination(), to.gid());
    assert_eq!(answer.immediate(), None);
}

#[case(alone, needs(Datagrams))]
fn every_size_up_to_the_mtu(site: &Site) {
    let server = bound(site);
    let (client, to) = asked(site, &server);
    let longest = client.max_datagram();
    assert!(longest >= 256, "{longest}");
    let bytes: Vec<u8> = (0..=250).cycle().take(longest).collect();
    for size in [0, 1, 2, 63, 64, 65, 255, longest - 1, longest] {
        client.send_to(&bytes[..size], &to).unwrap();
        assert_eq!(*server.recv_from().unwrap(), bytes[..size]);
    }
}

#[case(alone, needs(Datagrams))]
fn more_than_the_mtu_is_refused(site: &Site) {
    let server = bound(site);
    let (client, to) = asked(site, &server);
    let longest = client.max_datagram();
    let error = client.send_to(&vec![7; longest + 1], &to).unwrap_err();
    assert_eq!(error.stage(), Stage::Send);
    let Cause::DatagramTooLong { bytes, max } = *error.cause() else {
        panic!("{error:?}");
    };
    assert_eq!((bytes, max), (longest + 1, longest));
    // The socket still works.
    client.send_to(b"shorter", &to).unwrap();
    assert_eq!(*server.recv_from().unwrap(), *b"shorter");
}

#[case(alone, needs(Datagrams))]
fn an_open_socket_resolves_a_peer(site: &Site) {
    let (server, client) = (bound(site), bound(site));
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.recv_from().unwrap().to_vec());
        let peer = client.resolve(server.local_addr(), PATIENCE).unwrap();
        let again = client.resolve((site.v4.to_string(), service(&server)), PATIENCE);
        assert_eq!(again.unwrap().addr(), peer.addr());
        client.send_to(b"found", &peer.addr()).unwrap();
        assert_eq!(serving.join().unwrap(), b"found");
    });
}

/// A queue pair receives datagrams for any address of its port.
#[case(alone, needs(Datagrams))]
fn both_families_reach_one_socket(site: &Site) {
    let v4 = bound(site);
    let v6 = DatagramSocket::bind(site.v6(0)).unwrap();
    v6.set_deadline(PATIENCE);
    let (_client, to_v6) = asked(site, &v6);
    let to = DatagramAddr {
        qp_number: v4.qp_number(),
        ..to_v6
    };
    v6.send_to(b"by IPv6", &to).unwrap();
    let datagram = v4.recv_from().unwrap();
    assert_eq!(*datagram, *b"by IPv6");
    v4.send_to(b"back", &datagram.sender().unwrap()).unwrap();
    let answer = v6.recv_from().unwrap();
    assert_eq!(*answer, *b"back");
    assert_eq!(answer.sender(), Some(to));
}

#[case(alone, needs(Datagrams))]
fn private_data_travel_both_ways(site: &Site) {
    let server = DatagramSocket::options().reply_data(b"welcome").unwrap();
    let server = server
        .accept_if(|question| question.starts_with(b"hello"))
        .bind(site.v4(0))
        .unwrap();
    server.set_deadline(PATIENCE);
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.recv_from().unwrap().to_vec());
        let options = DatagramSocket::options().request_data(b"hello").unwrap();
        let asked = options.connect((site.v4.to_string(), service(&server)), PATIENCE);
        let (client, peer) = asked.unwrap();
        assert!(peer.private_data().starts_with(b"welcome\0"));
        assert_eq!(peer.private_data().len(), 136);
        client.send_to(b"done", &peer.addr()).unwrap();
        client.flush().unwrap();
        assert_eq!(serving.join().unwrap(), b"done");
    });
    let refused = DatagramSocket::options().reply_data(&[7; 137]).unwrap_err();
    assert_eq!(refused.stage(), Stage::Accept);
}

#[case(alone, needs(Datagrams))]
fn an_unadmitted_peer_is_rejected(site: &Site) {
    let options = DatagramSocket::options().accept_if(|_| false);
    let server = options.bind(site.v4(0)).unwrap();
    server.set_deadline(PATIENCE);
    let (client, to_client) = asked(site, &bound(site));
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.recv_from().unwrap().to_vec());
        let refused = client.resolve(server.local_addr(), PATIENCE);
        let error = refused.unwrap_err();
        assert_eq!(error.stage(), Stage::Connect);
        assert_eq!(status(error.cause()), Some(SidrStatus::REJECT), "{error}");
        assert!(error.is_rejected() && !error.is_retryable(), "{error}");
        // A sender that knows the number can send all the same.
        let to = DatagramAddr {
            qp_number: server.qp_number(),
            ..to_client
        };
        client.send_to(b"unasked", &to).unwrap();
        assert_eq!(serving.join().unwrap(), b"unasked");
    });
}

#[case(alone, needs(Datagrams))]
fn no_service_at_the_address(site: &Site) {
    let client = bound(site);
    let gone = bound(site).local_addr();
    let error = client.resolve(gone, PATIENCE).unwrap_err();
    assert_eq!(error.stage(), Stage::Connect);
    assert_eq!(error.address(), Some(gone));
    assert_eq!(status(error.cause()), Some(SidrStatus::UNSUPPORTED));
    assert!(error.is_rejected() && error.is_retryable(), "{error}");
    assert!(!error.is_unreachable(), "{error}");
    // The socket still works.
    let (peer, to) = asked(site, &client);
    peer.send_to(b"on", &to).unwrap();
    assert_eq!(*client.recv_from().unwrap(), *b"on");
}

/// Nothing waits on the other socket, so it does not answer.
#[case(alone, needs(Datagrams))]
fn a_silent_peer_times_out(site: &Site) {
    let (silent, client) = (bound(site), bound(site));
    let asked = client.resolve(silent.local_addr(), SECOND);
    let error = asked.unwrap_err();
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    assert_eq!(error.address(), Some(silent.local_addr()));
}

#[case(alone, needs(Datagrams))]
fn a_receive_times_out(site: &Site) {
    let socket = bound(site);
    assert!(socket.try_recv_from().unwrap().is_none());
    socket.set_deadline(SECOND / 10);
    let error = socket.recv_from().unwrap_err();
    assert_eq!(error.stage(), Stage::Receive);
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
}

#[case(alone, needs(Datagrams))]
fn immediate_data_arrive_with_a_datagram(site: &Site) {
    let server = bound(site);
    let (client, to) = asked(site, &server);
    client.send_to_with_immediate(b"7147", &to, 0x7147).unwrap();
    let datagram = server.recv_from().unwrap();
    assert_eq!(*datagram, *b"7147");
    assert_eq!(datagram.immediate(), Some(0x7147));
}

/// Each waits for earlier ones and is sent.
#[case(alone, needs(Datagrams))]
fn more_datagrams_than_posted_receives(site: &Site) {
    const MANY: u8 = 50;
    let options = DatagramSocket::options().receives(MANY.into());
    let server = options.bind(site.v4(0)).unwrap();
    server.set_deadline(PATIENCE);
    let (_, to) = asked(site, &server);
    let client = DatagramSocket::options().sends(2).bind(site.v4(0)).unwrap();
    client.set_deadline(PATIENCE);
    for number in 0..MANY {
        client.send_to(&[number; 300], &to).unwrap();
    }
    client.flush().unwrap();
    for number in 0..MANY {
        assert_eq!(*server.recv_from().unwrap(), [number; 300]);
    }
}

#[case(alone, needs(Datagrams))]
fn a_datagram_outlives_its_socket(site: &Site) {
    let server = bound(site);
    let (client, to) = asked(site, &server);
    client.send_to(b"kept", &to).unwrap();
    let datagram = server.recv_from().unwrap();
    drop(server);
    assert_eq!(*datagram, *b"kept");
    assert_eq!(datagram.sender().unwrap().qp_number, client.qp_number());
    drop(client);
    assert_eq!(*datagram, *b"kept");
}

#[case(alone, needs(Datagrams))]
fn an_unroutable_address_is_an_error(site: &Site) {
    let server = bound(site);
    let (client, to) = asked(site, &server);
    let mut nowhere = to;
    nowhere.ah_attr.grh.destination_gid = site.silent.to_ipv6_mapped().octets();
    let error = client.send_to(b"lost", &nowhere).unwrap_err();
    assert_eq!(error.stage(), Stage::Send);
    assert!(error.is_unreachable(), "{error}");
    // The socket still works.
    client.send_to(b"found", &to).unwrap();
    assert_eq!(*server.recv_from().unwrap(), *b"found");
}

#[case(alone, needs(Datagrams))]
fn a_wrong_qkey_is_dropped(site: &Site) {
    let server = bound(site);
    let (client, to) = asked(site, &server);
    let foreign = DatagramAddr { qkey: 0x7147, ..to };
    client.send_to(b"unheard", &foreign).unwrap();
    client.send_to(b"received", &to).unwrap();
    assert_eq!(*server.recv_from().unwrap(), *b"received");
}

#[case(alone, needs(Datagrams))]
fn many_clients_at_one_socket(site: &Site) {
    const CLIENTS: u8 = 8;
    let server = bound(site);
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let server = &server;
            scope.spawn(move || {
                let node = site.v4.to_string();
                let asked = DatagramSocket::connect((node, service(server)), PATIENCE);
                let (client, peer) = asked.unwrap();
                client.set_deadline(PATIENCE);
                client.send_to(&[number; 100], &peer.addr()).unwrap();
                assert_eq!(*client.recv_from().unwrap(), [number; 100]);
            });
        }
        for _ in 0..CLIENTS {
            let question = server.recv_from().unwrap();
            let sender = question.sender().unwrap();
            server.send_to(&question, &sender).unwrap();
        }
        server.flush().unwrap();
    });
}
