//! Which addresses a socket has as peers.

use std::net::{IpAddr, SocketAddr};

use rdmacm_core::Gid;

/// The address of a peer as it is known everywhere: without a flow, and in the scope of the
/// socket's own address, which headers do not carry. `None` if no socket can have it, or none
/// that this one reaches.
pub(super) fn peer_address(mut address: SocketAddr, local: SocketAddr) -> Option<SocketAddr> {
    if address.port() == 0 || !is_of_one_host(address.ip()) {
        return None;
    }
    match (&mut address, local) {
        (SocketAddr::V4(_), SocketAddr::V4(_)) => {}
        (SocketAddr::V6(address), SocketAddr::V6(local)) => {
            if address.ip().is_unicast_link_local() != local.ip().is_unicast_link_local() {
                return None;
            }
            address.set_flowinfo(0);
            address.set_scope_id(local.scope_id());
        }
        _ => return None,
    }
    Some(address)
}

fn is_of_one_host(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !address.is_unspecified() && !address.is_multicast() && !is_broadcast
}

/// The GID of a RoCE port with this address.
pub(super) fn gid_of(address: IpAddr) -> Gid {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(address) => address.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str, local: &str) -> Option<SocketAddr> {
        peer_address(address.parse().unwrap(), local.parse().unwrap())
    }

    #[test]
    fn addresses_of_one_host_and_family_are_peers() {
        for (address, local) in [
            ("10.71.1.2:1", "10.71.1.1:2"),
            ("[fd71:1::2]:1", "[fd71:1::1]:2"),
            ("[fe80::2%3]:1", "[fe80::1%3]:2"),
        ] {
            assert_eq!(peer(address, local), Some(address.parse().unwrap()));
        }
        for (address, local) in [
            ("10.71.1.2:0", "10.71.1.1:2"),
            ("0.0.0.0:1", "10.71.1.1:2"),
            ("255.255.255.255:1", "10.71.1.1:2"),
            ("239.1.2.3:1", "10.71.1.1:2"),
            ("[fd71:1::2]:1", "10.71.1.1:2"),
            ("10.71.1.2:1", "[fd71:1::1]:2"),
            ("[ff02::1]:1", "[fd71:1::1]:2"),
            ("[::]:1", "[fd71:1::1]:2"),
            ("[fe80::2%3]:1", "[fd71:1::1]:2"),
            ("[fd71:1::2]:1", "[fe80::1%3]:2"),
        ] {
            assert_eq!(peer(address, local), None, "{address} {local}");
        }
    }

    #[test]
    fn a_peer_is_the_same_whatever_its_flow_and_scope() {
        let local = "[fe80::1%3]:2";
        let mut other: SocketAddr = "[fe80::2]:1".parse().unwrap();
        if let SocketAddr::V6(other) = &mut other {
            other.set_flowinfo(7);
        }
        let known = peer_address(other, local.parse().unwrap());
        assert_eq!(known, peer("[fe80::2%3]:1", local));
    }
}
