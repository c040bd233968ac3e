//! Native InfiniBand addresses of IP destinations, from path records.

use std::net::IpAddr;

use rdmacm_core::{CmAddr, EventChannel, Family, Gid, IbAddr, PortSpace};
use zerocopy::big_endian::U16;
use zerocopy::{Immutable, IntoBytes};

use crate::addr_info::AddrInfo;
use crate::probe_target::ProbeTarget;
use crate::prober::Probe;
use crate::route::end_of;

/// `struct ib_connect_hdr` of librdmacm, the kernel's `struct cma_hdr`: what an
/// IP peer expects in front of private data. An IPv4 address is the last four
/// bytes of its field.
#[derive(Debug, IntoBytes, Immutable)]
#[repr(C)]
struct ConnectHeader {
    version: u8,
    /// In the upper four bits.
    ip_version: u8,
    port: U16,
    source: [u8; 16],
    destination: [u8; 16],
}

/// The targets with the native address before each that has a path; `None` if none has, or if
/// the kernel does not support native addresses. Tests that by binding to one, as librdmacm does.
pub(crate) fn with_native_targets(
    targets: &[ProbeTarget],
    port_space: PortSpace,
    channel: &EventChannel,
) -> Option<Vec<ProbeTarget>> {
    let any_path = targets.iter().any(|target| !target.paths.is_empty());
    if !any_path || !is_supported(channel) {
        return None;
    }
    let pair = |target: &ProbeTarget| [native(target, port_space), Some(target.not_begun())];
    Some(targets.iter().flat_map(pair).flatten().collect())
}

fn is_supported(channel: &EventChannel) -> bool {
    let any = IbAddr::new(Gid::UNSPECIFIED).with_pkey(0);
    let any = any.with_ip_service(PortSpace::TCP, 0);
    let id = channel.create_id(PortSpace::IB);
    id.is_ok_and(|id| id.bind(any).is_ok())
}

fn native(target: &ProbeTarget, port_space: PortSpace) -> Option<ProbeTarget> {
    let path = &target.paths.first()?.record;
    let nowhere = CmAddr::any(Family::Ib);
    let source = end_of(path, path.sgid);
    Some(ProbeTarget {
        address: served(end_of(path, path.dgid), target.address, port_space),
        source: Some(served(source, target.source.unwrap_or(nowhere), port_space)),
        canonical_name: target.canonical_name.clone(),
        advised_source: None,
        paths: target.paths.clone(),
        state: Probe::Pending,
    })
}

/// One end of a path with the service id of an address: the one of its port, or the
/// service id of a native address.
fn served(end: IbAddr, like: CmAddr, port_space: PortSpace) -> CmAddr {
    let end = match like {
        CmAddr::Ib(native) if native.service_mask != 0 => IbAddr {
            service_id: native.service_id,
            service_mask: native.service_mask,
            ..end
        },
        address => end.with_ip_service(port_space, address.port()),
    };
    end.into()
}

/// Gives each native address the connect data that name the IP addresses to the peer,
/// from the IP result that follows it. Drops a native address whose IP source is
/// unknown to the caller, ibacm and the kernel.
pub(crate) fn with_connect_data(list: Vec<AddrInfo>) -> Vec<AddrInfo> {
    if list.iter().all(|info| info.family != Family::Ib) {
        return list;
    }
    let mut with_connect_data = Vec::with_capacity(list.len());
    let mut list = list.into_iter().peekable();
    while let Some(mut info) = list.next() {
        match list.peek() {
            Some(peer) if info.family == Family::Ib && peer.family != Family::Ib => {
                if let Some(header) = ConnectHeader::to(peer) {
                    info.connect_data = header.as_bytes().to_vec();
                    with_connect_data.push(info);
                }
            }
            _ => with_connect_data.push(info),
        }
    }
    with_connect_data
}

impl ConnectHeader {
    fn to(peer: &AddrInfo) -> Option<Self> {
        let source = peer.source?.ip().filter(|ip| !ip.is_unspecified())?;
        let destination = peer.destination?.ip()?;
        let (version, source, destination) = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => (
                4,
                right_aligned(source.octets()),
                right_aligned(destination.octets()),
            ),
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                (6, source.octets(), destination.octets())
            }
            _ => return None,
        };
        Some(Self {
            version: 0,
            ip_version: version << 4,
            // As in librdmacm: the kernel chooses the port later.
            port: U16::ZERO,
            source,
            destination,
        })
    }
}

fn right_aligned(octets: [u8; 4]) -> [u8; 16] {
    let mut field = [0; 16];
    let [.., a, b, c, d] = &mut field;
    [*a, *b, *c, *d] = octets;
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdmacm_abi::{PathFlags, PathRecordData};
    use rdmacm_core::{PathData, QpType};
    use std::mem::offset_of;
    use zerocopy::FromBytes;

    use crate::flags::AddrInfoFlags;
    use crate::route::Route;

    fn path() -> PathData {
        let mut bytes = [0; 64];
        bytes[8..24].fill(2);
        bytes[24..40].fill(1);
        bytes[44..48].copy_from_slice(&0x0abc_de40_u32.to_be_bytes());
        bytes[50..52].copy_from_slice(&[0x80, 0x01]);
        let record = rdmacm_abi::PathRecord::read_from_bytes(&bytes).unwrap();
        PathData::from(&PathRecordData::new(PathFlags::GMP, record))
    }

    fn target(source: Option<CmAddr>) -> ProbeTarget {
        ProbeTarget {
            address: ([10, 1, 0, 7], 7471).into(),
            canonical_name: Some("seven".to_owned()),
            source,
            advised_source: None,
            paths: vec![path()],
            state: Probe::Pending,
        }
    }

    fn info(source: Option<CmAddr>, destination: CmAddr) -> AddrInfo {
        AddrInfo {
            flags: AddrInfoFlags::empty(),
            family: destination.family(),
            qp_type: QpType::RC,
            port_space: PortSpace::TCP,
            source,
            destination: Some(destination),
            canonical_name: None,
            paths: Vec::new(),
            connect_data: Vec::new(),
            route: Ok(Route::default()),
        }
    }

    #[test]
    fn the_header_is_laid_out_as_in_c() {
        assert_eq!(size_of::<ConnectHeader>(), 36);
        assert_eq!(offset_of!(ConnectHeader, version), 0);
        assert_eq!(offset_of!(ConnectHeader, ip_version), 1);
        assert_eq!(offset_of!(ConnectHeader, port), 2);
        assert_eq!(offset_of!(ConnectHeader, source), 4);
        assert_eq!(offset_of!(ConnectHeader, destination), 20);
    }

    #[test]
    fn a_native_target_has_the_ends_of_the_path() {
        let native = native(&target(None), PortSpace::TCP).unwrap();
        let CmAddr::Ib(to) = native.address else {
            panic!("{native:?}")
        };
        assert_eq!((to.gid, to.pkey), (Gid([2; 16]), 0x8001));
        assert_eq!(to.flow_info, 0xabcde);
        assert_eq!(to.service_id, 0x0106_0000 + 7471);
        assert_eq!(to.service_mask, u64::MAX);
        let Some(CmAddr::Ib(from)) = native.source else {
            panic!("{native:?}")
        };
        assert_eq!((from.gid, from.service_id), (Gid([1; 16]), 0x0106_0000));
        assert_eq!(from.service_mask, u64::MAX << 16);
        assert_eq!(native.canonical_name.as_deref(), Some("seven"));
        assert_eq!(native.paths, [path()]);
    }

    #[test]
    fn the_callers_port_is_part_of_the_service_id() {
        let target = target(Some(([10, 1, 0, 3], 9).into()));
        let native = native(&target, PortSpace::UDP).unwrap();
        let source = native.source.unwrap();
        assert_eq!(source.port(), 9);
        assert!(matches!(source, CmAddr::Ib(from) if from.service_id == 0x0111_0009));
    }

    /// librdmacm makes another service id of its lower 16 bits.
    #[test]
    fn a_native_peer_keeps_its_service() {
        let service = 0x1000_0000_0000_7147;
        let address = IbAddr::new(Gid([9; 16])).with_service_id(service);
        let target = ProbeTarget {
            address: address.into(),
            ..target(None)
        };
        let native = native(&target, PortSpace::TCP).unwrap();
        let CmAddr::Ib(to) = native.address else {
            panic!("{native:?}")
        };
        assert_eq!((to.gid, to.service_id), (Gid([2; 16]), service));
    }

    #[test]
    fn a_target_without_a_path_has_no_native_one() {
        let mut target = target(None);
        target.paths.clear();
        assert!(native(&target, PortSpace::TCP).is_none());
    }

    #[test]
    fn connect_data_name_the_ip_addresses() {
        let any = CmAddr::any(Family::Ib);
        let v4 = info(
            Some(([10, 1, 0, 3], 9).into()),
            ([10, 1, 0, 7], 7471).into(),
        );
        let v6 = info(Some(([1_u16; 8], 0).into()), ([7_u16; 8], 7471).into());
        let list = with_connect_data(vec![info(None, any), v4, info(None, any), v6]);
        let mut expected = vec![0, 0x40, 0, 0];
        expected.extend([0; 12]);
        expected.extend([10, 1, 0, 3]);
        expected.extend([0; 12]);
        expected.extend([10, 1, 0, 7]);
        assert_eq!(list[0].connect_data, expected);
        let mut expected = vec![0, 0x60, 0, 0];
        expected.extend([0, 1].repeat(8));
        expected.extend([0, 7].repeat(8));
        assert_eq!(list[2].connect_data, expected);
        assert!(list[1].connect_data.is_empty() && list[3].connect_data.is_empty());
    }

    #[test]
    fn without_an_ip_source_there_is_no_native_address() {
        let any = CmAddr::any(Family::Ib);
        let to = ([10, 1, 0, 7], 7471);
        for source in [None, Some(([0_u8; 4], 0).into())] {
            let list = with_connect_data(vec![info(None, any), info(source, to.into())]);
            assert_eq!(list, [info(source, to.into())]);
        }
    }

    #[test]
    fn a_native_peer_gets_no_connect_data() {
        let any = CmAddr::any(Family::Ib);
        let list = vec![info(None, any), info(None, any)];
        assert_eq!(with_connect_data(list.clone()), list);
    }
}
