//! Native InfiniBand addresses.

use std::net::SocketAddrV6;

use rdmacm_abi::{IB_IP_PORT_MASK, IB_IP_PS_MASK, PortSpace};

use crate::gid::Gid;

/// A native InfiniBand address: a GID, a partition and a service.
///
/// It starts from a GID alone, which is what an id is bound to, and is given the
/// service to reach or to listen as:
///
/// ```
/// use rdmacm_core::{Gid, IbAddr, PortSpace};
///
/// let gid: Gid = "fe80::2:c903:a1:b2c3".parse()?;
/// let address = IbAddr::new(gid).with_ip_service(PortSpace::TCP, 7471);
/// assert_eq!(address.service_id, 0x0106_1d2f);
/// assert_eq!(address.service_mask, u64::MAX);
/// # Ok::<(), rdmacm_core::ParseAddrError>(())
/// ```
///
/// Source: the kernel's `include/rdma/ib.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "sockaddr_ib")]
pub struct IbAddr {
    /// Partition key, host order.
    #[doc(alias = "sib_pkey")]
    pub pkey: u16,
    /// Flow label in the lower 20 bits, traffic class above; host order.
    #[doc(alias = "sib_flowinfo")]
    pub flow_info: u32,
    /// The port's GID.
    #[doc(alias = "sib_addr")]
    pub gid: Gid,
    /// Service id, host order: for an IP port space, `(port space << 16) + port`.
    #[doc(alias = "sib_sid")]
    pub service_id: u64,
    /// Which bits of the service id count, host order.
    #[doc(alias = "sib_sid_mask")]
    pub service_mask: u64,
    /// Scope of a link-local GID.
    #[doc(alias = "sib_scope_id")]
    pub scope_id: u64,
}

impl IbAddr {
    /// The default partition, with full membership, which every port has.
    pub const DEFAULT_PKEY: u16 = 0xFFFF;

    /// A port in the default partition, without a service.
    #[must_use]
    pub const fn new(gid: Gid) -> Self {
        Self {
            pkey: Self::DEFAULT_PKEY,
            flow_info: 0,
            gid,
            service_id: 0,
            service_mask: 0,
            scope_id: 0,
        }
    }

    /// The InfiniBand address a numeric IPv6 address stands for where hints ask
    /// for InfiniBand: its 16 bytes are the GID, its port is one of `port_space`.
    /// Source: `ucma_convert_in6` of librdmacm's `addrinfo.c`.
    #[must_use]
    pub fn from_v6(address: SocketAddrV6, port_space: PortSpace) -> Self {
        Self {
            // std keeps this field as the kernel's bytes have it.
            flow_info: u32::from_be(address.flowinfo()),
            scope_id: address.scope_id().into(),
            ..Self::new(Gid::from(*address.ip()))
        }
        .with_ip_service(port_space, address.port())
    }

    /// The same port in another partition; the key is in host order.
    #[must_use]
    pub const fn with_pkey(mut self, pkey: u16) -> Self {
        self.pkey = pkey;
        self
    }

    /// The service that an id of this port space has at this port:
    /// `(port space << 16) + port`. A port space or port of 0 stays open: its bits
    /// of the mask are zero. Source: `ucma_set_sid` of librdmacm's `addrinfo.c`,
    /// IBTA Vol 1 annex A11.
    #[must_use]
    #[doc(alias = "RDMA_IB_IP_PS_MASK")]
    #[doc(alias = "RDMA_IB_IP_PORT_MASK")]
    pub fn with_ip_service(mut self, port_space: PortSpace, port: u16) -> Self {
        let number = port_space.number();
        self.service_id = u64::from(number) << 16 | u64::from(port);
        self.service_mask = mask_if(number != 0, IB_IP_PS_MASK) | port_mask(port);
        self
    }

    /// The service with exactly this id, host order.
    #[must_use]
    pub const fn with_service_id(mut self, service_id: u64) -> Self {
        self.service_id = service_id;
        self.service_mask = u64::MAX;
        self
    }

    /// The port: the low 16 bits of the service id.
    #[must_use]
    pub fn port(&self) -> u16 {
        let [.., high, low] = self.service_id.to_be_bytes();
        u16::from_be_bytes([high, low])
    }

    /// The same address with another port; 0 leaves it open, as in
    /// [`with_ip_service`](Self::with_ip_service).
    #[must_use]
    pub fn with_port(mut self, port: u16) -> Self {
        self.service_id = self.service_id & !IB_IP_PORT_MASK | u64::from(port);
        self.service_mask = self.service_mask & !IB_IP_PORT_MASK | port_mask(port);
        self
    }
}

fn port_mask(port: u16) -> u64 {
    mask_if(port != 0, IB_IP_PORT_MASK)
}

fn mask_if(counts: bool, mask: u64) -> u64 {
    if counts { mask } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid() -> Gid {
        "fe80::2:c903:a1:b2c3".parse().unwrap()
    }

    #[test]
    fn what_is_left_open_is_not_in_the_mask() {
        let service = |port_space, port| {
            let address = IbAddr::new(gid()).with_ip_service(port_space, port);
            (address.service_id, address.service_mask)
        };
        let none = PortSpace::new(0);
        assert_eq!(service(none, 0), (0, 0));
        assert_eq!(service(none, 7471), (0x1d2f, 0xFFFF));
        assert_eq!(service(PortSpace::TCP, 7471), (0x0106_1d2f, u64::MAX));
        let only_space = (0x013f_0000, IB_IP_PS_MASK);
        assert_eq!(service(PortSpace::IB, 0), only_space);
        let address = IbAddr::new(gid()).with_ip_service(PortSpace::IB, 7);
        let open = address.with_port(0);
        assert_eq!((open.service_id, open.service_mask), only_space);
        assert_eq!(open.with_port(7), address);
        assert_eq!(address.port(), 7);
    }

    #[test]
    fn an_exact_service_is_all_of_its_bits() {
        let address = IbAddr::new(gid()).with_service_id(0x1000_0000_0000_0001);
        assert_eq!(address.service_mask, u64::MAX);
        assert_eq!(address.pkey, 0xFFFF);
        assert_eq!(address.with_pkey(0x8001).pkey, 0x8001);
    }

    #[test]
    fn a_numeric_ipv6_address_becomes_a_gid() {
        let v6 = SocketAddrV6::new("fe80::7".parse().unwrap(), 7471, 0, 3);
        let address = IbAddr::from_v6(v6, PortSpace::UDP);
        assert_eq!(address.gid, Gid::from(*v6.ip()));
        assert_eq!((address.pkey, address.scope_id), (0xFFFF, 3));
        assert_eq!(address.service_id, 0x0111_1d2f);
    }
}
