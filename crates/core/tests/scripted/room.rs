//! How much private data there is room for, which depends on where an id is.

use rdmacm_abi::{QueryAddrResponse, SockaddrIb, SockaddrStorage};
use rdmacm_core::{
    CmId, CommandNumber, ConnParam, DeviceId, Error, Gid, Guid, PortSpace, RdmaDevice, Transport,
};
use zerocopy::FromZeros;

use crate::Fixture;

const ID: DeviceId = DeviceId {
    index: Some(5),
    guid: Guid(0x1122),
};

/// An id on a device of this transport, with such a source.
fn attached(transport: Transport, port_space: PortSpace, by_gid: bool) -> (Fixture, CmId) {
    let fixture = Fixture::new();
    let id = fixture.id(port_space);
    let (source, source_size): (SockaddrStorage, u16) = if by_gid {
        (SockaddrIb::default().into(), 48)
    } else {
        (std::net::SocketAddr::from(([10, 0, 0, 1], 7)).into(), 16)
    };
    let answer = QueryAddrResponse {
        source,
        source_size,
        port_number: 1,
        device_index: 5,
        ..QueryAddrResponse::new_zeroed()
    };
    fixture.ucma.answer(CommandNumber::QUERY, &answer);
    fixture.ucma.attach(RdmaDevice::new(ID, "dev0", transport));
    (fixture, id)
}

/// The most that a request carries, and a refusal.
fn most(transport: Transport, port_space: PortSpace, by_gid: bool) -> [usize; 2] {
    let limit = |sends: fn(&CmId, usize) -> Result<(), Error>| {
        let (_fixture, id) = attached(transport, port_space, by_gid);
        match sends(&id, 251) {
            Err(Error::PrivateDataTooLong { limit, .. }) => limit,
            sent => {
                sent.unwrap();
                251
            }
        }
    };
    [
        limit(|id, length| id.connect(ConnParam::new().private_data(&[7; 251][..length])?)),
        limit(|id, length| id.reject(&[7; 251][..length])),
    ]
}

#[test]
fn each_transport_has_its_room() {
    let (tcp, udp) = (PortSpace::TCP, PortSpace::UDP);
    assert_eq!(most(Transport::RoCE, tcp, false), [56, 148]);
    assert_eq!(most(Transport::IWarp, tcp, false), [251, 251]);
    assert_eq!(most(Transport::InfiniBand, tcp, true), [92, 148]);
    assert_eq!(most(Transport::RoCE, udp, false), [180, 136]);
    assert_eq!(most(Transport::InfiniBand, udp, true), [216, 136]);
    // It has no datagrams; so nobody can tell.
    assert_eq!(most(Transport::IWarp, udp, false), [180, 136]);
}

#[test]
fn the_devices_are_those_given_to_the_channel() {
    let (fixture, id) = attached(Transport::RoCE, PortSpace::TCP, false);
    let device = id.rdma_device().unwrap().unwrap();
    assert_eq!((&*device.name, device.transport), ("dev0", Transport::RoCE));
    assert_eq!(fixture.channel.look_up(ID), Some(device.clone()));
    assert_eq!(fixture.channel.rdma_devices(), Ok(vec![device.clone()]));
    let ports = fixture.channel.infiniband_ports().unwrap();
    assert_eq!((&*ports[0].device, ports[0].number), ("dev0", 2));
    assert_eq!(ports[0].gid, Gid([7; 16]));
}
