//! The attributes that queue pairs need.

use rdmacm_core::{AccessFlags, CmId, EventKind, IdHandle, PortSpace, QpAttrMask, QpState};
use rdmacm_sim::KernelVersion;

use crate::pair::{Hosts, client_param, server_param};
use crate::{SECOND, errno, expect};

const STATES: [QpState; 3] = [QpState::INIT, QpState::RTR, QpState::RTS];
const IWARP_INIT: u32 = 0x29;
const ROCE: [u32; 3] = [0x39, 0x12_9181, 0x1_2e01];
const IWARP: [u32; 3] = [IWARP_INIT, IWARP_INIT, 0x20];

fn masks(id: &IdHandle) -> [u32; 3] {
    STATES.map(|state| {
        let attr = id.init_qp_attr(state).unwrap();
        let port = u8::from(attr.mask.contains(QpAttrMask::PORT));
        assert_eq!((attr.qp_state, attr.port_number), (state, port));
        attr.mask.bits()
    })
}

#[test]
fn each_state_of_a_connection_has_its_attributes() {
    for hosts in Hosts::each() {
        let channel = hosts.client.channel().unwrap();
        let unbound = channel.create_id(PortSpace::TCP).unwrap();
        errno(unbound.init_qp_attr(QpState::INIT), libc::EINVAL);
        let routed = hosts.routed(&channel);
        assert_eq!(masks(&routed), [hosts.choose(0x39, IWARP_INIT); 3]);
        let asked = hosts.ask(client_param());
        let all = asked.hosts.choose(ROCE, IWARP);
        if asked.hosts.is_iwarp {
            assert_eq!(masks(&asked.client.id), all);
        } else {
            let init = asked.client.id.init_qp_attr(QpState::INIT).unwrap();
            assert_eq!(init.mask.bits(), 0x39);
            for state in [QpState::RTR, QpState::RTS] {
                errno(asked.client.id.init_qp_attr(state), libc::EINVAL);
            }
        }
        errno(asked.client.id.init_qp_attr(QpState::ERR), libc::EINVAL);
        let child: CmId = asked.request.into_child().unwrap();
        assert_eq!(masks(&child), all);
    }
    for hosts in Hosts::each() {
        let connected = hosts.connect();
        let all = connected.hosts.choose(ROCE, IWARP);
        assert_eq!(masks(&connected.client.id), all);
        assert_eq!(masks(&connected.server), all);
    }
}

#[test]
fn the_sides_of_a_connection_fit() {
    let connected = Hosts::roce().connect();
    let attr = |id: &IdHandle, state| id.init_qp_attr(state).unwrap();
    let sides = [&connected.client.id, &connected.server];
    for (own, peer, number) in [(sides[0], sides[1], 18), (sides[1], sides[0], 17)] {
        let (rtr, rts) = (attr(own, QpState::RTR), attr(own, QpState::RTS));
        assert_eq!(rtr.destination_qp_number, number);
        assert_eq!(rts.sq_psn, attr(peer, QpState::RTR).rq_psn);
        let gid = peer.gids().unwrap().source;
        assert_eq!(rtr.ah_attr.grh.destination_gid, gid.0);
        assert_eq!((rtr.ah_attr.is_global, rtr.ah_attr.grh.hop_limit), (1, 64));
        assert_eq!((rts.timeout, rtr.path_mtu.number()), (17, 3));
    }
}

#[test]
fn depths_are_swapped_between_the_sides() {
    let param = client_param().responder_resources(2).initiator_depth(4);
    let asked = Hosts::roce().ask(param.retry_count(5).rnr_retry_count(3));
    let child = asked.request.into_child().unwrap();
    let [_, rtr, rts] = STATES.map(|state| child.init_qp_attr(state).unwrap());
    assert_eq!((rtr.max_destination_rd_atomic, rts.max_rd_atomic), (4, 2));
    assert_eq!((rts.retry_count, rts.rnr_retry), (5, 3));
}

#[test]
fn access_follows_the_kernel_and_the_peer() {
    for (version, depth, flags) in [
        (KernelVersion::Linux7_3, 1, 0x30e),
        (KernelVersion::Linux6_1, 1, 0xe),
        (KernelVersion::Linux7_3, 0, 0x2),
    ] {
        let mut hosts = Hosts::roce();
        hosts.server = hosts.server.kernel_version(version);
        let param = client_param().responder_resources(0).initiator_depth(depth);
        let asked = hosts.ask(param);
        let child = asked.request.into_child().unwrap();
        let access = child.init_qp_attr(QpState::INIT).unwrap().access_flags;
        assert_eq!(access.bits(), flags);
    }
    let asked = Hosts::iwarp().ask(client_param());
    let access = asked.client.id.init_qp_attr(QpState::INIT).unwrap();
    let both = AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ;
    assert_eq!(access.access_flags, both);
}

#[test]
fn an_ack_timeout_is_the_programs() {
    let asked = Hosts::roce().ask(client_param());
    let child = asked.request.into_child().unwrap();
    child.set_ack_timeout(12).unwrap();
    assert_eq!(child.init_qp_attr(QpState::RTS).unwrap().timeout, 12);
    child.accept(server_param()).unwrap();
}

#[test]
fn a_datagram_id_has_a_key() {
    let hosts = Hosts::roce();
    let channel = hosts.client.channel().unwrap();
    let id = channel.create_id(PortSpace::UDP).unwrap();
    id.bind((hosts.client.address().unwrap(), 0)).unwrap();
    for state in STATES {
        let attr = id.init_qp_attr(state).unwrap();
        assert_eq!(attr.mask.bits(), 0x71);
        assert!(attr.mask.contains(QpAttrMask::QKEY));
        assert_eq!(attr.qkey, 0x0123_4567);
    }
    errno(id.set_ack_timeout(12), libc::EINVAL);
}

/// The peer's device takes 2^15 times 4.096 us to acknowledge, which counts if the path takes less.
#[test]
fn an_ack_timeout_of_the_client_is_the_peers_too() {
    for (asked, timeout) in [(10, 15), (14, 16), (16, 17), (20, 20)] {
        let hosts = Hosts::roce();
        let listener = hosts.listen(1);
        let channel = hosts.client.channel().unwrap();
        let id = channel.create_id(PortSpace::TCP).unwrap();
        id.set_ack_timeout(asked).unwrap();
        id.resolve_addr(None, hosts.address(), SECOND).unwrap();
        expect(&channel, EventKind::AddrResolved);
        id.resolve_route(SECOND).unwrap();
        expect(&channel, EventKind::RouteResolved);
        id.connect(client_param()).unwrap();
        let child = listener.next_request().into_child().unwrap();
        assert_eq!(child.init_qp_attr(QpState::RTS).unwrap().timeout, timeout);
        let path = child.path_records().unwrap()[0];
        assert_eq!(path.record.packet_life_time + 1, timeout);
        child.accept(server_param()).unwrap();
        expect(&channel, EventKind::ConnectResponse);
        assert_eq!(id.init_qp_attr(QpState::RTS).unwrap().timeout, asked);
    }
}
