//! Resolving addresses.

use std::net::IpAddr;
use std::time::Duration;

use nix::errno::Errno;
use rdmacm_abi::{AddressFamily, Reserved, ResolveAddr, ResolveIp};
use rdmacm_core::{Gid, Transport};

use super::bind::bind_to;
use super::{Kernel, Outcome};
use crate::address::Address;
use crate::device::Device;
use crate::host_state::HostState;
use crate::id::{Attached, Id, State};
use crate::timer::{IpSource, Outcome as Resolution, Timer};

/// `ucma_resolve_addr`.
pub(super) fn address(kernel: &mut Kernel<'_>, request: &ResolveAddr) -> Outcome {
    let destination = Address::read(&request.destination, request.destination_size)?;
    if request.reserved != Reserved::ZERO {
        return Err(Errno::EINVAL);
    }
    // The kernel knows by its family whether there is a source.
    let source = match request.source_size {
        0 if request.source.family() == AddressFamily::UNSPEC => None,
        0 => {
            let size = request.source.size();
            let source = Address::read(&request.source, size);
            Some(source.map_err(|_| Errno::EAFNOSUPPORT)?)
        }
        size => Some(Address::read(&request.source, size)?),
    };
    resolve(
        kernel,
        request.id,
        (source, destination),
        request.timeout_ms,
    )
}

/// `ucma_resolve_ip`.
pub(super) fn ip_address(kernel: &mut Kernel<'_>, request: &ResolveIp) -> Outcome {
    let destination = Address::read_ip(&request.destination).ok_or(Errno::EINVAL)?;
    let source = match request.source.family() {
        AddressFamily::UNSPEC => None,
        _ => Some(Address::read_ip(&request.source).ok_or(Errno::EINVAL)?),
    };
    resolve(
        kernel,
        request.id,
        (source, destination),
        request.timeout_ms,
    )
}

/// `rdma_resolve_addr`. If it fails, the id stays bound.
fn resolve(
    kernel: &mut Kernel<'_>,
    number: u32,
    (source, destination): (Option<Address>, Address),
    timeout_ms: u32,
) -> Outcome {
    kernel.find(number)?;
    let host = kernel.host()?;
    prepare(host, number, source, destination)?;
    let timeout = Duration::from_millis(timeout_ms.into());
    let (delay, resolution) = match destination {
        destination if destination.is_any() => {
            let gid = resolve_loopback(host, number)?;
            kernel.find(number)?.destination_gid = gid;
            (Duration::ZERO, Resolution::Address)
        }
        Address::Ib(destination) => {
            let gid = resolve_gid(host, number, Gid(destination.addr), destination.pkey.get())?;
            kernel.find(number)?.destination_gid = gid;
            (Duration::ZERO, Resolution::Address)
        }
        Address::V4(destination) => {
            resolve_ip(kernel, number, (*destination.ip()).into(), timeout)?
        }
        Address::V6(destination) => {
            resolve_ip(kernel, number, (*destination.ip()).into(), timeout)?
        }
    };
    let id = kernel.find(number)?;
    id.state = State::AddrQuery;
    let serial = id.serial;
    let key = kernel.key(number, serial);
    Timer::resolve(&mut kernel.state.clock, delay, key, resolution);
    Ok(())
}

/// `resolve_prepare_src`.
fn prepare(
    host: &mut HostState,
    number: u32,
    source: Option<Address>,
    destination: Address,
) -> Outcome {
    let id = host.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    if id.state == State::AddrBound {
        id.destination = Some(destination);
    } else {
        let source = source.unwrap_or_else(|| destination.wildcard());
        bind_to(host, number, source, Some(destination))?;
    }
    let id = host.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    let family = id.source.map(|source| source.family());
    if family == Some(destination.family()) {
        Ok(())
    } else {
        Err(Errno::EINVAL)
    }
}

/// The source of a route to an IP address, once the neighbour has answered
/// (`addr_resolve`). A peer that exists but does not respond counts as one whose
/// hardware address is known already.
fn resolve_ip(
    kernel: &mut Kernel<'_>,
    number: u32,
    destination: IpAddr,
    timeout: Duration,
) -> Result<(Duration, Resolution), Errno> {
    let id = kernel.find(number)?;
    let bound = id.source.filter(|source| !source.is_any());
    let bound = bound.and_then(|source| source.ip());
    let host = kernel.host()?;
    if host.unroutable.contains(&destination) {
        return Err(Errno::ENETUNREACH);
    }
    if host.non_rdma_addresses.contains(&destination) {
        return Ok((Duration::ZERO, Resolution::IpAddress(Err(Errno::ENODEV))));
    }
    let (device, address) = find_route(host, destination, bound).ok_or(Errno::ENETUNREACH)?;
    let own_delay = host.delay;
    let state = &*kernel.state;
    let neighbour = state.hosts.iter().find_map(|host| {
        // The network interface answers, also after its RDMA device was removed.
        let has_it =
            |device: &&Device| device.is_link_up && device.addresses.contains(&destination);
        let device = host.devices.iter().find(has_it)?;
        Some((device.mac_gid(), host.delay))
    });
    let Some((peer, peer_delay)) = neighbour else {
        return Ok((timeout, Resolution::IpAddress(Err(Errno::ETIMEDOUT))));
    };
    let one_way = state.network.delay.saturating_add(own_delay);
    let round_trip = one_way.saturating_add(peer_delay).saturating_mul(2);
    if round_trip > timeout {
        return Ok((timeout, Resolution::IpAddress(Err(Errno::ETIMEDOUT))));
    }
    let source = IpSource {
        address,
        device,
        peer,
    };
    Ok((round_trip, Resolution::IpAddress(Ok(source))))
}

/// The interface and source address for a destination: those of the destination
/// itself on its own host, or else the address that shares most bits with it.
fn find_route(
    host: &HostState,
    destination: IpAddr,
    bound: Option<IpAddr>,
) -> Option<(usize, IpAddr)> {
    let devices = host.devices.iter().enumerate();
    let mut addresses = devices
        .filter(|(_, device)| device.is_link_up)
        .flat_map(|(index, device)| device.addresses.iter().map(move |own| (index, *own)));
    if let Some(bound) = bound {
        return addresses.find(|(_, own)| *own == bound);
    }
    let same_family = addresses.filter(|(_, own)| own.is_ipv4() == destination.is_ipv4());
    // The first of the best.
    same_family.fold(None, |best, (index, own)| match best {
        Some((_, other)) if shared_bits(other, destination) >= shared_bits(own, destination) => {
            best
        }
        _ => Some((index, own)),
    })
}

/// How many bits two addresses share, from the first.
fn shared_bits(one: IpAddr, other: IpAddr) -> u32 {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        _ => 0,
    }
}

/// The destination's GID, with the id attached to a port that reaches it
/// (`cma_resolve_ib_addr`).
fn resolve_gid(host: &mut HostState, number: u32, gid: Gid, pkey: u16) -> Result<Gid, Errno> {
    let found = find_port(host, gid, pkey);
    let id = host.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    if id.attached.is_none() {
        let (attached, own) = found.ok_or(Errno::ENODEV)?;
        id.attach(attached, own);
    }
    Ok(gid)
}

/// The first port in the destination's partition that has its GID, or is active
/// with a GID in its subnet (`cma_resolve_ib_dev`).
fn find_port(host: &HostState, gid: Gid, pkey: u16) -> Option<(Attached, Gid)> {
    host.infiniband_ports()
        .filter(|(_, port)| port.is_in_partition(pkey))
        .find_map(|(attached, port)| {
            let reaches = |own: &&Gid| **own == gid || port.is_active() && share_subnet(**own, gid);
            Some((attached, *port.gids.iter().find(reaches)?))
        })
}

/// The subnet is the first half of a GID.
fn share_subnet(one: Gid, other: Gid) -> bool {
    one.0
        .iter()
        .zip(other.0)
        .take(8)
        .all(|(one, other)| *one == other)
}

/// The loopback address stands for the first active port, or else for the first
/// (`cma_resolve_loopback`, `cma_bind_loopback`).
fn resolve_loopback(host: &mut HostState, number: u32) -> Result<Gid, Errno> {
    let id = host.ids.get(&number).ok_or(Errno::ENOENT)?;
    if id.attached.is_some() {
        return Ok(id.source_gid);
    }
    let is_native = id.is_native();
    let (attached, gid, pkey) = loopback_port(host, is_native)?;
    let id = host.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    id.attached = Some(attached);
    (id.source_gid, id.pkey) = (gid, pkey);
    id.source = id.source.map(Address::loopback);
    Ok(gid)
}

/// iWARP has no partitions, which the kernel wants to know of.
fn loopback_port(host: &HostState, is_native: bool) -> Result<(Attached, Gid, u16), Errno> {
    let usable = |device: &Device| !is_native || device.transport != Transport::IWarp;
    let mut devices = host.present_devices().filter(|(_, device)| usable(device));
    let active = devices.find(|(_, device)| device.is_active());
    let mut devices = host.present_devices().filter(|(_, device)| usable(device));
    let (index, device) = active.or_else(|| devices.next()).ok_or(Errno::ENODEV)?;
    let attached = |port| Attached {
        device: index,
        port,
    };
    match device.transport {
        Transport::InfiniBand => {
            let active = device.numbered_ports().find(|(_, port)| port.is_active());
            let found = active.or_else(|| device.numbered_ports().next());
            let (number, port) = found.ok_or(Errno::ENODEV)?;
            let gid = port.gids.first().copied().ok_or(Errno::ENODEV)?;
            let pkey = port.pkeys.first().copied().unwrap_or_default();
            Ok((attached(number), gid, pkey))
        }
        Transport::RoCE => Ok((attached(1), device.mac_gid(), 0xffff)),
        _ => Err(Errno::EINVAL),
    }
}

impl Id {
    /// Attaches the id to the port of InfiniBand from which it connects.
    fn attach(&mut self, attached: Attached, gid: Gid) {
        self.attached = Some(attached);
        self.source_gid = gid;
        if let Some(Address::Ib(source)) = &mut self.source {
            source.addr = gid.0;
            self.pkey = source.pkey.get();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::Adapter;

    #[test]
    fn a_route_begins_at_the_nearest_address() {
        let host = HostState::new(
            0,
            String::new(),
            [
                Adapter::roce("rxe0").address([10, 1, 0, 7]),
                Adapter::roce("rxe1").address([10, 2, 0, 7]),
            ],
        );
        let route = |destination: [u8; 4], bound: Option<[u8; 4]>| {
            find_route(&host, destination.into(), bound.map(IpAddr::from))
        };
        let first = Some((0, [10, 1, 0, 7].into()));
        let second = Some((1, [10, 2, 0, 7].into()));
        assert_eq!(route([10, 1, 0, 9], None), first);
        assert_eq!(route([10, 2, 0, 9], None), second);
        assert_eq!(route([10, 2, 0, 7], None), second);
        assert_eq!(route([192, 0, 2, 1], None), first);
        assert_eq!(route([10, 1, 0, 9], Some([10, 2, 0, 7])), second);
        assert_eq!(route([10, 1, 0, 9], Some([10, 3, 0, 7])), None);
        let v6 = "fd00::1".parse().unwrap();
        assert_eq!(find_route(&host, v6, None), None);
    }
}
