//! Addresses in the kernel's slots.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use rdmacm_abi::{
    AddressFamily, Be64, Bind, BindIp, IB_IP_PORT_MASK, IB_IP_PS_MASK, IpSlot, ResolveAddr,
    SockaddrIb, SockaddrStorage,
};
use zerocopy::{FromBytes, IntoBytes};

const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 1, 2);

fn v4() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(10, 1, 0, 7).into(), 7471)
}

fn v6() -> SocketAddrV6 {
    SocketAddrV6::new(LINK_LOCAL, 7471, 0x0012_3456, 9)
}

#[test]
fn an_ipv4_address_takes_sixteen_bytes() {
    let slot = SockaddrStorage::from(v4());
    assert_eq!(slot.family(), AddressFamily::INET);
    assert_eq!(slot.size(), 16);
    assert_eq!(slot.as_bytes()[..2], 2_u16.to_ne_bytes());
    // Port 7471 is 0x1D2F.
    assert_eq!(slot.as_bytes()[2..8], [0x1D, 0x2F, 10, 1, 0, 7]);
    assert_eq!(slot.as_bytes()[8..], [0; 120]);
    assert_eq!(
        slot.as_in().map(SocketAddrV4::from).map(SocketAddr::V4),
        Some(v4())
    );
    assert_eq!((slot.as_in6(), slot.as_ib()), (None, None));
}

#[test]
fn an_ipv6_address_keeps_flow_and_scope() {
    let slot = SockaddrStorage::from(SocketAddr::V6(v6()));
    assert_eq!(slot.family(), AddressFamily::INET6);
    assert_eq!(slot.size(), 28);
    assert_eq!(slot.as_bytes()[2..4], [0x1D, 0x2F]);
    assert_eq!(slot.as_bytes()[8..24], v6().ip().octets());
    assert_eq!(slot.as_bytes()[24..28], 9_u32.to_ne_bytes());
    assert_eq!(slot.as_in6().map(SocketAddrV6::from), Some(v6()));
    assert_eq!(slot.as_in(), None);
}

#[test]
fn the_ip_commands_slot_holds_both() {
    let slot = IpSlot::from(v4());
    assert_eq!(
        slot.as_in().map(SocketAddrV4::from).map(SocketAddr::V4),
        Some(v4())
    );
    assert_eq!(slot.as_bytes()[16..], [0; 12]);
    let slot = IpSlot::from(SocketAddr::V6(v6()));
    assert_eq!(slot.as_in6().map(SocketAddrV6::from), Some(v6()));
    assert_eq!(BindIp::new(1, slot).as_bytes()[8..36], *slot.as_bytes());
}

#[test]
fn a_native_address_takes_forty_eight_bytes() {
    let address = SockaddrIb {
        service_id: Be64::new((0x0106 << 16) + 7471),
        service_id_mask: Be64::new(IB_IP_PS_MASK | IB_IP_PORT_MASK),
        ..SockaddrIb::default()
    };
    let slot = SockaddrStorage::from(address);
    assert_eq!(slot.size(), 48);
    assert_eq!(
        slot.as_bytes()[24..32],
        [0, 0, 0, 0, 0x01, 0x06, 0x1D, 0x2F]
    );
    assert_eq!(slot.as_bytes()[32..40], [0xFF; 8]);
    assert_eq!(slot.as_ib(), Some(address));
}

#[test]
fn sizes_in_requests_are_those_of_the_family() {
    let (v4, v6) = (
        SockaddrStorage::from(v4()),
        SockaddrStorage::from(SocketAddr::V6(v6())),
    );
    assert_eq!(Bind::new(1, v4).addr_size, 16);
    let request = ResolveAddr::new(1, None, v6, 500);
    assert_eq!((request.source_size, request.destination_size), (0, 28));
    assert_eq!(request.source, SockaddrStorage::ZERO);
    let request = ResolveAddr::new(1, Some(v4), v4, 500);
    assert_eq!((request.source_size, request.destination_size), (16, 16));
}

#[test]
fn an_unknown_family_has_no_size() {
    let mut bytes = [0; 128];
    bytes[0] = 0xEE;
    bytes[1] = 0xEE;
    let slot = SockaddrStorage::read_from_bytes(&bytes).unwrap();
    assert_eq!(slot.family().name(), None);
    assert_eq!(slot.size(), 0);
    assert_eq!(
        (slot.as_in(), slot.as_in6(), slot.as_ib()),
        (None, None, None)
    );
}
