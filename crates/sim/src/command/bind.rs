//! Binding ids to addresses.

use std::net::IpAddr;

use nix::errno::Errno;
use rdmacm_abi::{
    AddressFamily, Be64, Bind, BindIp, IB_IP_PS_IB, IB_IP_PS_MASK, IB_IP_PS_TCP, IB_IP_PS_UDP,
    PortSpace, Reserved,
};
use rdmacm_core::Gid;

use super::{Kernel, Outcome};
use crate::address::Address;
use crate::host_state::HostState;
use crate::id::State;

/// The ports for ids that name none, `net.ipv4.ip_local_port_range`.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32768..=60999;

/// `ucma_bind`.
pub(super) fn bind(kernel: &mut Kernel<'_>, request: &Bind) -> Outcome {
    let address = Address::read(&request.addr, request.addr_size)?;
    if request.reserved != Reserved::ZERO {
        return Err(Errno::EINVAL);
    }
    kernel.find(request.id)?;
    bind_to(kernel.host()?, request.id, address, None)
}

/// `ucma_bind_ip`.
pub(super) fn bind_ip(kernel: &mut Kernel<'_>, request: &BindIp) -> Outcome {
    let address = Address::read_ip(&request.addr).ok_or(Errno::EINVAL)?;
    kernel.find(request.id)?;
    bind_to(kernel.host()?, request.id, address, None)
}

/// `rdma_bind_addr_dst`.
pub(super) fn bind_to(
    host: &mut HostState,
    number: u32,
    address: Address,
    destination: Option<Address>,
) -> Outcome {
    let id = host.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    if id.state != State::Idle || address.lacks_scope() {
        return Err(Errno::EINVAL);
    }
    // Remains even if what follows fails.
    id.source = Some(address);
    if !address.is_any() {
        attach(host, number, &address)?;
    }
    let id = host.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    if !id.options.is_af_only_set {
        id.options.af_only = address.family() == AddressFamily::INET;
    }
    id.destination = Some(destination.unwrap_or_else(|| address.wildcard()));
    let bound = get_port(host, number, address);
    let id = host.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    match bound {
        Ok((address, bound)) => {
            id.source = Some(address);
            id.bound = Some(bound);
            id.state = State::AddrBound;
            Ok(())
        }
        Err(errno) => {
            id.attached = None;
            Err(errno)
        }
    }
}

/// Attaches the id to the port that has its address (`cma_translate_addr`,
/// `cma_acquire_dev_by_src_ip`).
fn attach(host: &mut HostState, number: u32, address: &Address) -> Outcome {
    match address {
        Address::Ib(address) => {
            let gid = Gid(address.addr);
            // It need not be active.
            let found = host
                .infiniband_ports()
                .find(|(_, port)| port.gids.contains(&gid));
            let attached = found.map(|(attached, _)| attached);
            let attached = attached.ok_or(Errno::ENODEV)?;
            let id = host.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
            id.attached = Some(attached);
            (id.source_gid, id.pkey) = (gid, address.pkey.get());
            Ok(())
        }
        Address::V4(address) => attach_ip(host, number, (*address.ip()).into()),
        Address::V6(address) => attach_ip(host, number, (*address.ip()).into()),
    }
}

/// The kernel keeps the interface of an id that it cannot attach (`bound_dev_if`), and
/// looks for later addresses there.
fn attach_ip(host: &mut HostState, number: u32, address: IpAddr) -> Outcome {
    let is_non_rdma = host.non_rdma_addresses.contains(&address);
    let id = host.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    id.is_on_non_rdma_interface |= is_non_rdma;
    if id.is_on_non_rdma_interface {
        return Err(Errno::ENODEV);
    }
    let mut devices = host.devices.iter().enumerate();
    let found = devices.find(|(_, device)| device.addresses.contains(&address));
    let (index, device) = found.ok_or(Errno::EADDRNOTAVAIL)?;
    if device.is_removed {
        return Err(Errno::ENODEV);
    }
    let id = host.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    if id.port_space == PortSpace::IPOIB {
        return Err(Errno::EINVAL);
    }
    id.attach_ip(device, index, address);
    Ok(())
}

/// `cma_get_port`: the address with its port, and the port it occupies.
fn get_port(
    host: &mut HostState,
    number: u32,
    mut address: Address,
) -> Result<(Address, (PortSpace, u16)), Errno> {
    let id = host.ids.get(&number).ok_or(Errno::ENOENT)?;
    let port_space = match &mut address {
        Address::Ib(address) => {
            let (port_space, prefix) = ib_port_space(
                id.port_space,
                address.service_id.get(),
                address.service_id_mask.get(),
            )?;
            let port = Address::Ib(*address).port();
            let mask = address.service_id_mask.get() | IB_IP_PS_MASK;
            address.service_id = Be64::new(prefix | u64::from(port));
            address.service_id_mask = Be64::new(mask);
            port_space
        }
        Address::V4(_) | Address::V6(_) => id.port_space,
    };
    let port = match address.port() {
        0 => free_port(host, number, port_space, &address)?,
        port => {
            let may_reuse = id.options.reuse_address;
            host.check_port(number, (port_space, port), &address, may_reuse)?;
            port
        }
    };
    address.set_port(port);
    Ok((address, (port_space, port)))
}

/// The port space a service id belongs to, if an id of port space `own` may have
/// it (`cma_select_ib_ps`).
fn ib_port_space(own: PortSpace, service_id: u64, mask: u64) -> Result<(PortSpace, u64), Errno> {
    let mask = mask & IB_IP_PS_MASK;
    let candidates = [
        (PortSpace::IB, IB_IP_PS_IB),
        (PortSpace::TCP, IB_IP_PS_TCP),
        (PortSpace::UDP, IB_IP_PS_UDP),
    ];
    candidates
        .into_iter()
        .filter(|(port_space, _)| [*port_space, PortSpace::IB].contains(&own))
        .find(|(_, prefix)| service_id & mask == prefix & mask)
        .ok_or(Errno::EPROTONOSUPPORT)
}

/// The next port that is free; the kernel begins at a random one
/// (`cma_alloc_any_port`).
fn free_port(
    host: &mut HostState,
    number: u32,
    port_space: PortSpace,
    address: &Address,
) -> Result<u16, Errno> {
    let after = EPHEMERAL.filter(|port| *port > host.last_port);
    let port = after
        .chain(EPHEMERAL)
        .find(|port| {
            let bound = (port_space, *port);
            host.check_port(number, bound, address, false).is_ok()
        })
        .ok_or(Errno::EADDRNOTAVAIL)?;
    host.last_port = port;
    Ok(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_id_is_of_one_port_space() {
        let space =
            |own, service_id, mask| ib_port_space(own, service_id, mask).map(|(space, _)| space);
        let tcp = IB_IP_PS_TCP | 0x1d2f;
        assert_eq!(space(PortSpace::TCP, tcp, u64::MAX), Ok(PortSpace::TCP));
        assert_eq!(space(PortSpace::IB, tcp, u64::MAX), Ok(PortSpace::TCP));
        let refused = Err(Errno::EPROTONOSUPPORT);
        assert_eq!(space(PortSpace::UDP, tcp, u64::MAX), refused);
        assert_eq!(space(PortSpace::IPOIB, tcp, u64::MAX), refused);
        assert_eq!(space(PortSpace::IB, 0x7147_0000, u64::MAX), refused);
        // Without a mask it is that of the id.
        assert_eq!(space(PortSpace::UDP, tcp, 0), Ok(PortSpace::UDP));
        assert_eq!(space(PortSpace::IB, tcp, 0xffff), Ok(PortSpace::IB));
    }
}
