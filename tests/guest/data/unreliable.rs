//! Unreliable services.

use std::net::{Ipv4Addr, UdpSocket};

use rdmacm_core::{AhAttr, Gid, QpType};
use rdmacm_tests::Site;
use rdmacm_tests::modify_qp::QKEY;
use rdmacm_verbs::{Grh, QueuePair, SendOperation, SendRequest, SgList};

use super::operations::SIZES;
use super::{ROOMY, brought, contents, exposed, pattern, perform, received, room, sent, sge};
use rdmacm_tests_macros::case;

/// Like the reliable tests, with fewer bytes at once, because a lost packet fails the
/// test. A write without immediate data has arrived when a later message has.
#[case(alone, needs(Datagrams))]
fn unreliable_connections_carry_messages_and_writes(site: &Site) {
    let [client, server] = site.pair_in_rts(QpType::UC, ROOMY);
    for (seed, size) in (1..).zip(SIZES).filter(|(_, size)| *size <= 4096) {
        let bytes = pattern(size, seed);
        let word = u32::from(seed);
        for (operation, immediate) in [
            (SendOperation::Send, None),
            (SendOperation::SendWithImmediate(word), Some(word)),
        ] {
            server.post_receive(room(&server, size)).unwrap();
            drop(perform(&client, operation, sge(&client, &bytes)));
            let came = received(&server);
            let done = came.result().unwrap();
            assert_eq!((done.immediate, done.bytes as usize), (immediate, size));
            assert_eq!(brought(came, size), bytes);
        }
        let memories = [(); 2].map(|()| exposed(&server, size.max(1)));
        let [silent, notified] = memories
            .each_ref()
            .map(|memory| memory.remote().slice(0..size as u64).unwrap());
        server.post_receive(SgList::NONE).unwrap();
        for operation in [
            SendOperation::Write(silent),
            SendOperation::WriteWithImmediate(notified, word),
        ] {
            drop(perform(&client, operation, sge(&client, &bytes)));
        }
        let done = received(&server).result().unwrap();
        assert_eq!((done.immediate, done.bytes as usize), (Some(word), size));
        for memory in memories {
            assert_eq!(contents(&memory)[..size], bytes);
        }
    }
}

/// The length of the GRH in front of a datagram.
const ROUTE: usize = 40;
/// The length of the longest datagram, limited by the guest's interfaces.
const PACKET: usize = 1024;
/// The destination queue pair number of multicast datagrams.
const EVERYBODY: u32 = 0xff_ffff;

fn datagram(path: &AhAttr, from: &QueuePair, to: u32, bytes: &[u8]) {
    datagram_of(SendOperation::Send, path, from, to, bytes);
}

fn datagram_of(op: SendOperation, path: &AhAttr, from: &QueuePair, to: u32, bytes: &[u8]) {
    let handle = from.protection_domain().create_address_handle(*path);
    let request = SendRequest::new(op, sge(from, bytes));
    let request = request.destination(&handle.unwrap(), to, QKEY);
    from.post_send(request).unwrap();
    assert!(sent(from).result().is_ok());
}

#[case(alone, needs(Datagrams))]
fn datagrams_arrive_after_their_grh(site: &Site) {
    let [client, server] = site.pair_in_rts(QpType::UD, ROOMY);
    let path = site.path_to_itself();
    for (from, to) in [(&client, &server), (&server, &client)] {
        for size in [0, 1, 63, 64, 65, PACKET - 1, PACKET] {
            let bytes = pattern(size, 3);
            for (operation, word) in [
                (SendOperation::Send, None),
                (SendOperation::SendWithImmediate(9), Some(9)),
            ] {
                to.post_receive(room(to, ROUTE + size)).unwrap();
                datagram_of(operation, &path, from, to.number(), &bytes);
                let came = received(to);
                let done = came.result().unwrap();
                assert_eq!((done.immediate, done.bytes as usize), (word, ROUTE + size));
                assert_eq!(done.source.qp_number, from.number());
                assert!(done.source.has_grh);
                let came = brought(came, ROUTE + size);
                assert_eq!(came[ROUTE..], bytes);
                assert_eq!(came[ROUTE - 4..ROUTE], site.v4.octets());
            }
        }
    }
}

/// rxe would not send a longer one, and report success.
#[case(alone, needs(Datagrams))]
fn a_datagram_is_one_packet(site: &Site) {
    let [client, server] = site.pair_in_rts(QpType::UD, ROOMY);
    let handle = client
        .protection_domain()
        .create_address_handle(site.path_to_itself());
    let request = SendRequest::new(SendOperation::Send, room(&client, PACKET + 1));
    let refused = client.post_send(request.destination(&handle.unwrap(), server.number(), QKEY));
    let words = refused.unwrap_err().to_string();
    assert!(words.contains("no longer than the MTU"), "{words}");
}

/// Over IPv4 and IPv6, whose GRHs differ.
#[case(alone, needs(Datagrams))]
fn a_reply_uses_the_received_address(site: &Site) {
    let [client, server] = site.pair_in_rts(QpType::UD, ROOMY);
    let gids = server.context().gids(1).unwrap();
    for gid in [site.v4.to_ipv6_mapped(), site.v6].map(Gid::from) {
        let entry = gids.iter().find(|entry| entry.gid == gid).unwrap();
        let mut path = site.path_to_itself();
        path.grh.destination_gid = gid.0;
        path.grh.source_gid_index = entry.index.try_into().unwrap();
        path.grh.traffic_class = 0x20;
        server.post_receive(room(&server, ROUTE + 1)).unwrap();
        datagram(&path, &client, server.number(), b"?");
        let came = received(&server);
        let source = came.result().unwrap().source;
        let bytes = brought(came, ROUTE + 1);
        let route = Grh::parse(&bytes).unwrap();
        assert_eq!((route.source, route.destination), (gid, gid));
        let back = source.reply_address(&bytes, 1, &gids).unwrap();
        assert_eq!(back, path);
        client.post_receive(room(&client, ROUTE + 1)).unwrap();
        datagram(&back, &server, source.qp_number, b"!");
        assert_eq!(brought(received(&client), ROUTE + 1)[ROUTE..], *b"!");
    }
}

/// A member that stays in the group receives everything and so shows that a datagram
/// was delivered. rxe delivers to one queue pair after the other: a datagram for a
/// former member would arrive before that member's last one.
#[case(alone, needs(Datagrams))]
fn a_group_receives_until_it_is_left(site: &Site) {
    let group = Ipv4Addr::new(239, 71, 9, 4);
    // Attaching a queue pair does not make the interface join the group.
    let interface = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    interface.join_multicast_v4(&group, &site.v4).unwrap();
    let gid = Gid(group.to_ipv6_mapped().octets());
    let mut path = site.path_to_itself();
    path.grh.destination_gid = gid.0;

    let [client, server] = site.pair_in_rts(QpType::UD, ROOMY);
    let [witness, _] = site.pair_in_rts(QpType::UD, ROOMY);
    let received = |by: &QueuePair, word: &[u8; 1]| {
        let came = received(by);
        assert_eq!(came.result().unwrap().source.qp_number, client.number());
        let bytes = brought(came, ROUTE + 1);
        assert_eq!(Grh::parse(&bytes).unwrap().destination, gid);
        assert_eq!(bytes[ROUTE..], *word);
    };
    let send = |word: &[u8; 1]| {
        witness.post_receive(room(&witness, ROUTE + 1)).unwrap();
        datagram(&path, &client, EVERYBODY, word);
        received(&witness, word);
    };
    for _ in 0..2 {
        server.post_receive(room(&server, ROUTE + 1)).unwrap();
    }
    witness.attach(gid, 0).unwrap();
    send(b"1");
    server.attach(gid, 0).unwrap();
    send(b"2");
    server.detach(gid, 0).unwrap();
    send(b"3");
    server.attach(gid, 0).unwrap();
    send(b"4");
    received(&server, b"2");
    received(&server, b"4");
    // Destroying it does not affect the other member.
    assert!(server.destroy().is_empty());
    send(b"5");
}

#[case(alone, needs(Datagrams))]
fn only_groups_are_joined_and_left(site: &Site) {
    let [client, server] = site.pair_in_rts(QpType::UD, ROOMY);
    let gid = Gid(Ipv4Addr::new(239, 71, 9, 1).to_ipv6_mapped().octets());
    server.attach(gid, 0).unwrap();
    let error = server.detach(Gid([9; 16]), 0).unwrap_err();
    assert!(error.to_string().contains("not attached"), "{error}");
    server.detach(gid, 0).unwrap();
    assert!(server.detach(gid, 0).is_err());
    let nobody = Gid(site.v4.to_ipv6_mapped().octets());
    assert!(client.attach(nobody, 0).is_err());
}

#[case(alone, needs(Datagrams))]
fn unsupported_operations_are_refused(site: &Site) {
    for qp_type in [QpType::UC, QpType::UD] {
        let [client, server] = site.pair_in_rts(qp_type, ROOMY);
        let remote = exposed(&server, 8).remote();
        let handle = client
            .protection_domain()
            .create_address_handle(site.path_to_itself());
        let handle = handle.unwrap();
        let request = |operation| {
            let request = SendRequest::new(operation, room(&client, 8));
            match qp_type {
                QpType::UD => request.destination(&handle, server.number(), QKEY),
                _ => request,
            }
        };
        let refused = client.post_send(request(SendOperation::Read(remote)));
        let words = refused.unwrap_err().to_string();
        assert!(words.contains("not support this operation"), "{words}");
        if qp_type == QpType::UC {
            let request = request(SendOperation::Send).destination(&handle, 1, QKEY);
            let words = client.post_send(request).unwrap_err().to_string();
            assert!(words.contains("has no destination"), "{words}");
            continue;
        }
        let refused = client.post_send(request(SendOperation::Write(remote)));
        assert!(refused.is_err());
        let domain = client.context().create_protection_domain().unwrap();
        let foreign = domain.create_address_handle(site.path_to_itself()).unwrap();
        let request = SendRequest::new(SendOperation::Send, room(&client, 8));
        let refused = client.post_send(request.destination(&foreign, 1, QKEY));
        let words = refused.unwrap_err().to_string();
        assert!(words.contains("another protection domain"), "{words}");
    }
}
