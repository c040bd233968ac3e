//! Addresses as the kernel's structures hold them.

use rdmacm_abi::{AddressFamily, Be16, Be32, Be64, IpSlot, SockaddrIb, SockaddrStorage};

use super::{CmAddr, IbAddr};
use crate::gid::Gid;

/// A slot for an address of any family.
pub(crate) fn to_storage(address: &CmAddr) -> SockaddrStorage {
    match *address {
        CmAddr::V4(address) => rdmacm_abi::SockaddrIn::from(address).into(),
        CmAddr::V6(address) => rdmacm_abi::SockaddrIn6::from(address).into(),
        CmAddr::Ib(address) => SockaddrIb::from(address).into(),
    }
}

/// A slot of the IP commands; `None` for an InfiniBand address.
pub(crate) fn to_ip_slot(address: &CmAddr) -> Option<IpSlot> {
    address.socket_addr().map(IpSlot::from)
}

/// The address in a slot; `None` if it has none.
pub(crate) fn from_storage(slot: &SockaddrStorage) -> Option<CmAddr> {
    match slot.family() {
        AddressFamily::INET => slot.as_in().map(|address| CmAddr::V4(address.into())),
        AddressFamily::INET6 => slot.as_in6().map(|address| CmAddr::V6(address.into())),
        AddressFamily::IB => slot.as_ib().map(|address| CmAddr::Ib(address.into())),
        _ => None,
    }
}

/// The address in a slot of the IP commands; `None` if it has none.
pub(crate) fn from_ip_slot(slot: &IpSlot) -> Option<CmAddr> {
    match slot.family() {
        AddressFamily::INET => slot.as_in().map(|address| CmAddr::V4(address.into())),
        AddressFamily::INET6 => slot.as_in6().map(|address| CmAddr::V6(address.into())),
        _ => None,
    }
}

impl From<IbAddr> for SockaddrIb {
    fn from(address: IbAddr) -> Self {
        Self {
            family: AddressFamily::IB,
            pkey: Be16::new(address.pkey),
            flowinfo: Be32::new(address.flow_info),
            addr: address.gid.0,
            service_id: Be64::new(address.service_id),
            service_id_mask: Be64::new(address.service_mask),
            scope_id: address.scope_id,
        }
    }
}

impl From<SockaddrIb> for IbAddr {
    fn from(address: SockaddrIb) -> Self {
        Self {
            pkey: address.pkey.get(),
            flow_info: address.flowinfo.get(),
            gid: Gid(address.addr),
            service_id: address.service_id.get(),
            service_mask: address.service_id_mask.get(),
            scope_id: address.scope_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Family;
    use proptest::prelude::*;
    use std::net::{SocketAddr, SocketAddrV6};
    use zerocopy::FromBytes;

    #[test]
    fn every_family_is_converted_to_a_slot_and_back() {
        let ib = IbAddr {
            pkey: 0x8001,
            flow_info: 0x1_2345,
            gid: Gid([7; 16]),
            service_id: 0x0106_1d2f,
            service_mask: u64::MAX,
            scope_id: 3,
        };
        let v6 = SocketAddrV6::new([0xfe80, 0, 0, 0, 0, 0, 0, 9].into(), 7471, 5, 2);
        for address in [
            CmAddr::from(([10, 71, 1, 1], 7471)),
            CmAddr::from(v6),
            CmAddr::from(ib),
            CmAddr::any(Family::Ib),
        ] {
            assert_eq!(from_storage(&to_storage(&address)), Some(address));
        }
        let slot = to_ip_slot(&v6.into()).unwrap();
        assert_eq!(from_ip_slot(&slot), Some(v6.into()));
        assert!(to_ip_slot(&ib.into()).is_none());
        assert_eq!(from_storage(&SockaddrStorage::ZERO), None);
    }

    #[test]
    fn an_ib_address_has_a_port() {
        let address = CmAddr::any(Family::Ib).with_port(7471);
        assert_eq!(address.port(), 7471);
        assert_eq!(CmAddr::any(Family::V4).with_port(9).port(), 9);
    }

    proptest! {
        #[test]
        fn any_socket_address_is_kept(address: SocketAddr) {
            let address = CmAddr::from(address);
            prop_assert_eq!(from_storage(&to_storage(&address)), Some(address));
        }

        #[test]
        fn arbitrary_slots_never_panic(bytes: [u8; 128]) {
            from_storage(&SockaddrStorage::read_from_bytes(&bytes).unwrap());
            from_ip_slot(&IpSlot::read_from_bytes(&bytes[..28]).unwrap());
        }
    }
}
