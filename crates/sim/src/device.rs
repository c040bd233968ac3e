//! The state of a host's RDMA devices.

use std::net::{IpAddr, Ipv6Addr};

use rdmacm_abi::PathMtu;
use rdmacm_core::{Gid, Guid, Transport};

use crate::adapter::{Adapter, Port};
use crate::verbs::{Format, Verbs};

/// An RDMA device of a host.
///
/// Connections name their queue pairs by number only: any, or that of one in `verbs`.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) guid: Guid,
    pub(crate) transport: Transport,
    pub(crate) ports: Vec<Port>,
    pub(crate) addresses: Vec<IpAddr>,
    mtu: u32,
    pub(crate) is_link_up: bool,
    pub(crate) is_removed: bool,
    pub(crate) verbs: Verbs,
}

impl Device {
    pub(crate) fn new(host: usize, adapter: Adapter) -> Self {
        Self {
            guid: adapter.guid_in(host),
            name: adapter.name,
            transport: adapter.transport,
            ports: adapter.ports,
            addresses: adapter.addresses,
            mtu: adapter.mtu,
            is_link_up: true,
            is_removed: false,
            verbs: Verbs::new(Format::of(adapter.transport).unwrap_or_default()),
        }
    }

    /// Takes the link up or down.
    pub(crate) fn set_link_up(&mut self, is_up: bool) {
        if self.is_link_up != is_up {
            self.is_link_up = is_up;
            self.verbs.report_link(is_up);
        }
        for port in &mut self.ports {
            port.is_device_up = is_up;
        }
    }

    /// The ports of an InfiniBand device with their numbers.
    pub(crate) fn numbered_ports(&self) -> impl Iterator<Item = (u8, &Port)> {
        (1..=u8::MAX).zip(&self.ports)
    }

    pub(crate) fn has_address(&self, address: IpAddr) -> bool {
        !self.is_removed && self.addresses.contains(&address)
    }

    /// The port on which the fabric reaches this GID; `None` if there is none or its
    /// link is down.
    pub(crate) fn reachable_port(&self, gid: Gid) -> Option<u8> {
        if self.is_removed || !self.is_link_up {
            return None;
        }
        if self.transport != Transport::InfiniBand {
            return self.has_ip_gid(gid).then_some(1);
        }
        self.numbered_ports()
            .find(|(_, port)| port.is_active() && port.gids.contains(&gid))
            .map(|(number, _)| number)
    }

    /// Whether the GID is that of one of its IP addresses.
    pub(crate) fn has_ip_gid(&self, gid: Gid) -> bool {
        let mut gids = self.addresses.iter().map(|address| ip_gid(*address));
        gids.any(|own| own == gid)
    }

    /// Whether any port has a link.
    pub(crate) fn is_active(&self) -> bool {
        self.is_link_up
            && (self.transport != Transport::InfiniBand || self.ports.iter().any(Port::is_active))
    }

    /// How long it takes to acknowledge a message, as 4.096 us * 2^n: that of rxe and of common
    /// InfiniBand adapters (`RXE_LOCAL_CA_ACK_DELAY`). siw has none.
    pub(crate) fn ack_delay(&self) -> u8 {
        match self.transport {
            Transport::IWarp => 0,
            _ => 15,
        }
    }

    /// The index of a GID in the table of its port. That of a RoCE device begins with
    /// the link-local GID of its MAC address.
    pub(crate) fn gid_index(&self, gid: Gid) -> u8 {
        let index = if self.transport == Transport::InfiniBand {
            let mut gids = self.ports.iter().map(|port| &port.gids);
            gids.find_map(|gids| gids.iter().position(|own| *own == gid))
        } else {
            let mut gids = self.addresses.iter().map(|address| ip_gid(*address));
            gids.position(|own| own == gid).map(|index| index + 1)
        };
        index
            .and_then(|index| u8::try_from(index).ok())
            .unwrap_or(0)
    }

    /// The GID of this index in the table of a RoCE or iWARP device.
    pub(crate) fn gid(&self, index: u32) -> Option<Gid> {
        if self.transport == Transport::IWarp {
            return (index == 0).then(|| self.mac_gid());
        }
        let Some(index) = index.checked_sub(1) else {
            return Some(self.link_local_gid());
        };
        let address = self.addresses.get(usize::try_from(index).ok()?)?;
        Some(ip_gid(*address))
    }

    /// How many GIDs a RoCE or iWARP device has.
    pub(crate) fn gid_count(&self) -> u32 {
        if self.transport == Transport::IWarp {
            return 1;
        }
        u32::try_from(self.addresses.len() + 1).unwrap_or(u32::MAX)
    }

    fn link_local_gid(&self) -> Gid {
        const PREFIX: u128 = 0xfe80 << 112;
        Gid((PREFIX | u128::from(self.guid.0)).to_be_bytes())
    }

    /// The GID of an iWARP device: its MAC address, padded with zeros. MAC addresses
    /// are derived from GUIDs here.
    pub(crate) fn mac_gid(&self) -> Gid {
        let [_, _, mac @ ..] = self.guid.0.to_be_bytes();
        let mut gid = [0; 16];
        for (byte, mac) in gid.iter_mut().zip(mac) {
            *byte = mac;
        }
        Gid(gid)
    }

    /// The largest path MTU of which a packet fits the interface (`iboe_get_mtu`).
    pub(crate) fn path_mtu(&self) -> Option<PathMtu> {
        /// The headers of a RoCE v2 packet.
        const HEADERS: u32 = 40 + 8 + 12 + 16 + 4 + 4;
        let payload = self.mtu.checked_sub(HEADERS)?;
        [
            PathMtu::B4096,
            PathMtu::B2048,
            PathMtu::B1024,
            PathMtu::B512,
            PathMtu::B256,
        ]
        .into_iter()
        .find(|mtu| mtu.bytes().is_some_and(|bytes| bytes <= payload))
    }
}

/// The GID of RoCE v2 for an address (`rdma_ip2gid`). iWARP has none; the simulation
/// uses it to address packets there as well.
pub(crate) fn ip_gid(address: IpAddr) -> Gid {
    match address {
        IpAddr::V4(address) => Gid(address.to_ipv6_mapped().octets()),
        IpAddr::V6(address) => Gid(address.octets()),
    }
}

/// The address that a GID of RoCE v2 stands for (`rdma_gid2ip`).
pub(crate) fn gid_ip(gid: Gid) -> IpAddr {
    let address = Ipv6Addr::from(gid.0);
    match address.to_ipv4_mapped() {
        Some(address) => IpAddr::V4(address),
        None => IpAddr::V6(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_mtu_fits_the_interface() {
        let mtu = |bytes| Device::new(0, Adapter::roce("rxe0").mtu(bytes)).path_mtu();
        assert_eq!(mtu(1500), Some(PathMtu::B1024));
        assert_eq!(mtu(9000), Some(PathMtu::B4096));
        assert_eq!(mtu(4096), Some(PathMtu::B2048));
        assert_eq!(mtu(100), None);
    }

    #[test]
    fn a_gid_stands_for_its_address() {
        for text in ["10.1.0.7", "fd00::7"] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(gid_ip(ip_gid(address)), address);
        }
    }
}
