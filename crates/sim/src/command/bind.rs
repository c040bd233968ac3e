//! Binding ids to addresses.

use nix::errno::Errno;
use rdmacm_abi::{
    Be64, Bind, IB_IP_PS_IB, IB_IP_PS_MASK, IB_IP_PS_TCP, IB_IP_PS_UDP, PortSpace, Reserved,
};
use rdmacm_core::Gid;

use super::{Kernel, Outcome};
use crate::address::Address;
use crate::id::{Attached, State};
use crate::machine::Machine;

/// The ports for those who leave theirs open, as `net.ipv4.ip_local_port_range`
/// has them.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32768..=60999;

/// `ucma_bind`.
pub(super) fn bind(kernel: &mut Kernel<'_>, request: &Bind) -> Outcome {
    let address = Address::read(&request.addr, request.addr_size)?;
    if request.reserved != Reserved::ZERO {
        return Err(Errno::EINVAL);
    }
    kernel.machine.find(kernel.file, request.id)?;
    bind_to(kernel.machine, request.id, address, None)
}

/// `rdma_bind_addr_dst`.
pub(super) fn bind_to(
    machine: &mut Machine,
    number: u32,
    address: Address,
    destination: Option<Address>,
) -> Outcome {
    let id = machine.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    if id.state != State::Idle || address.lacks_scope() {
        return Err(Errno::EINVAL);
    }
    // Stays even where what follows fails.
    id.source = Some(address);
    if !address.is_any() {
        let (attached, gid, pkey) = find_port(machine, &address)?;
        let id = machine.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
        id.attached = Some(attached);
        (id.source_gid, id.pkey) = (gid, pkey);
    }
    let id = machine.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    id.destination = Some(destination.unwrap_or_else(|| address.wildcard()));
    let bound = get_port(machine, number, address);
    let id = machine.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
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

/// The port with the address's GID, which need not be active
/// (`cma_acquire_dev_by_src_ip`). Hosts have no IP addresses.
fn find_port(machine: &Machine, address: &Address) -> Result<(Attached, Gid, u16), Errno> {
    let Address::Ib(address) = address else {
        return Err(Errno::EADDRNOTAVAIL);
    };
    let gid = Gid(address.addr);
    let found = machine.ports().find(|(_, port)| port.gids.contains(&gid));
    let (attached, _) = found.ok_or(Errno::ENODEV)?;
    Ok((attached, gid, address.pkey.get()))
}

/// `cma_get_port`: the address with its port, and what it occupies.
fn get_port(
    machine: &mut Machine,
    number: u32,
    mut address: Address,
) -> Result<(Address, (PortSpace, u16)), Errno> {
    let id = machine.ids.get(&number).ok_or(Errno::ENOENT)?;
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
        0 => free_port(machine, number, port_space, &address)?,
        port => {
            machine.check_port(number, (port_space, port), &address)?;
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
    machine: &mut Machine,
    number: u32,
    port_space: PortSpace,
    address: &Address,
) -> Result<u16, Errno> {
    let after = EPHEMERAL.filter(|port| *port > machine.last_port);
    let port = after
        .chain(EPHEMERAL)
        .find(|port| {
            let bound = (port_space, *port);
            machine.check_port(number, bound, address).is_ok()
        })
        .ok_or(Errno::EADDRNOTAVAIL)?;
    machine.last_port = port;
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
        // Without a mask it is what the id is for.
        assert_eq!(space(PortSpace::UDP, tcp, 0), Ok(PortSpace::UDP));
        assert_eq!(space(PortSpace::IB, tcp, 0xffff), Ok(PortSpace::IB));
    }
}
