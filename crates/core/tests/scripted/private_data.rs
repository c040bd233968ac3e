//! How much private data a message carries, by transport and addresses.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use rdmacm_abi::{QueryAddrResponse, SockaddrIb, SockaddrStorage};
use rdmacm_core::{
    CmAddr, CmId, CommandNumber, ConnParam, DeviceId, Error, Gid, Guid, IbAddr, PortSpace,
    RdmaDevice, Transport,
};
use zerocopy::FromZeros;

use crate::script::Sent;
use crate::{Fixture, errno};

const ID: DeviceId = DeviceId {
    index: Some(5),
    guid: Guid(0x1122),
};

/// An id on a device of this transport, with a native or an IP source address.
fn attached(transport: Transport, port_space: PortSpace, is_native: bool) -> (Fixture, CmId) {
    let fixture = Fixture::new();
    let id = fixture.id(port_space);
    let (source, source_size): (SockaddrStorage, u16) = if is_native {
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

/// The limits of a request and of a rejection.
fn limits(transport: Transport, port_space: PortSpace, is_native: bool) -> [usize; 2] {
    let limit = |sends: fn(&CmId, usize) -> Result<(), Error>| {
        let (_fixture, id) = attached(transport, port_space, is_native);
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
fn each_transport_has_its_limits() {
    let (tcp, udp) = (PortSpace::TCP, PortSpace::UDP);
    assert_eq!(limits(Transport::RoCE, tcp, false), [56, 148]);
    assert_eq!(limits(Transport::IWarp, tcp, false), [251, 251]);
    assert_eq!(limits(Transport::InfiniBand, tcp, true), [92, 148]);
    assert_eq!(limits(Transport::RoCE, udp, false), [180, 136]);
    assert_eq!(limits(Transport::InfiniBand, udp, true), [216, 136]);
    // iWARP has no datagrams, so the smaller limits apply.
    assert_eq!(limits(Transport::IWarp, udp, false), [180, 136]);
}

/// The kernel overwrites it.
#[test]
fn a_native_request_begins_with_a_zero() {
    // An id that is bound goes to the destination of a service, without an address to resolve.
    for port_space in [PortSpace::TCP, PortSpace::UDP] {
        for is_bound in [false, true] {
            let (fixture, id) = attached(Transport::InfiniBand, port_space, true);
            if is_bound {
                id.bind(NATIVE).unwrap();
            } else {
                id.resolve_addr(None, NATIVE, SECOND).unwrap();
            }
            // One that is refused changes nothing.
            fixture
                .ucma
                .refuse(CommandNumber::RESOLVE_ADDR, libc::EINVAL);
            errno(id.resolve_addr(None, IP, SECOND), libc::EINVAL);
            let error = id.connect(data(b"hello")).unwrap_err();
            assert!(error.to_string().contains("overwrites the first byte"));
            let is_connect = |sent: Sent| sent.number == CommandNumber::CONNECT;
            assert!(!fixture.ucma.take().into_iter().any(is_connect));
            let behind = data(b"hello").private_data_behind(&[0]).unwrap();
            id.connect(behind).unwrap();
        }
    }
}

#[test]
fn a_request_between_ip_addresses_begins_with_any_byte() {
    let (fixture, id) = attached(Transport::RoCE, PortSpace::TCP, false);
    id.resolve_addr(None, IP, SECOND).unwrap();
    fixture
        .ucma
        .refuse(CommandNumber::RESOLVE_ADDR, libc::EINVAL);
    errno(id.resolve_addr(None, NATIVE, SECOND), libc::EINVAL);
    id.connect(data(b"hello")).unwrap();
}

const SECOND: Duration = Duration::from_secs(1);
const NATIVE: CmAddr = CmAddr::Ib(IbAddr::new(Gid([7; 16])));
const IP: CmAddr = CmAddr::V4(SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 7));

fn data(data: &[u8]) -> ConnParam {
    ConnParam::new().private_data(data).unwrap()
}

#[test]
fn every_command_checks_the_limit_of_its_message() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let data = [7; 251];
    let param = |length| ConnParam::new().private_data(&data[..length]).unwrap();
    let too_long = |limit| {
        Err(Error::PrivateDataTooLong {
            length: limit + 1,
            limit,
        })
    };
    assert_eq!(id.reject(&data[..149]), too_long(148));
    assert_eq!(id.reject_ece(&data[..149]), too_long(148));
    assert_eq!(id.accept(param(197)), too_long(196));
    assert_eq!(id.connect(param(57)), too_long(56));
    assert_eq!(id.reject(&data[..148]), Ok(()));
    assert_eq!(id.accept(param(196)), Ok(()));
    assert_eq!(id.connect(param(56)), Ok(()));
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
