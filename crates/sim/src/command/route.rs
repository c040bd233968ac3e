//! Resolving routes.

use std::time::Duration;

use nix::errno::Errno;
use rdmacm_abi::{PathRecord, Reserved, ResolveRoute};
use rdmacm_core::Transport;

use super::{Kernel, Outcome};
use crate::address::Address;
use crate::device::{Device, ip_gid};
use crate::id::{Id, State};
use crate::kernel_version::KernelVersion;
use crate::subnet::PathQuery;
use crate::timer::{Outcome as Resolution, Timer};

/// `ucma_resolve_route` and `rdma_resolve_route`.
pub(super) fn resolve(kernel: &mut Kernel<'_>, request: ResolveRoute) -> Outcome {
    let id = kernel.find_attached(request.id)?;
    let may_resolve = [State::AddrResolved, State::AddrInfoResolved].contains(&id.state);
    if request.timeout_ms == 0 || !may_resolve {
        return Err(Errno::EINVAL);
    }
    let query = id.path_query();
    let serial = id.serial;
    let host = kernel.host()?;
    let id = host.ids.get(&request.id).ok_or(Errno::ENOENT)?;
    let attached = id.attached.ok_or(Errno::EINVAL)?;
    let device = host.devices.get(attached.device).ok_or(Errno::EINVAL)?;
    let (delay, path) = match device.transport {
        Transport::InfiniBand => {
            let timeout = Duration::from_millis(request.timeout_ms.into());
            let (delay, path) = kernel.state.subnet.path(&query, timeout);
            (delay, path.map(Some))
        }
        Transport::RoCE => {
            let path = roce_path(id, device, host.version)?;
            (Duration::ZERO, Ok(Some(path)))
        }
        _ => (Duration::ZERO, Ok(None)),
    };
    kernel.find(request.id)?.state = State::RouteQuery;
    let key = kernel.key(request.id, serial);
    Timer::resolve(&mut kernel.state.clock, delay, key, Resolution::Route(path));
    Ok(())
}

/// `cma_resolve_iboe_route`. A path from the loopback address has no interface.
fn roce_path(id: &Id, device: &Device, version: KernelVersion) -> Result<PathRecord, Errno> {
    const EXACTLY: u8 = 2 << 6;
    const HOP_LIMIT: u32 = 64;
    let addresses = id.source_ip().zip(id.destination_ip());
    let (source, destination) = addresses
        .filter(|(source, _)| device.has_address(*source))
        .ok_or(Errno::ENODEV)?;
    let mtu = device.path_mtu().ok_or(Errno::EINVAL)?;
    let mtu = u8::try_from(mtu.number()).map_err(|_| Errno::EINVAL)?;
    // `CMA_IBOE_PACKET_LIFETIME`
    let life_time = match version {
        KernelVersion::Linux6_1 => 18,
        KernelVersion::Linux7_3 => 16,
    };
    let asked = id.options.ack_timeout.filter(|timeout| *timeout > 0);
    let life_time = asked.map_or(life_time, |timeout| timeout - 1) & 0x3f;
    Ok(PathRecord {
        service_id: 0.into(),
        destination_gid: ip_gid(destination).0,
        source_gid: ip_gid(source).0,
        destination_lid: 0.into(),
        source_lid: 0.into(),
        flow_label_hop_limit: (id.flow_label() << 8 | HOP_LIMIT).into(),
        traffic_class: id.options.tos.unwrap_or_default(),
        reversible_path_count: 0x80,
        pkey: 0xffff.into(),
        qos_class_service_level: 0.into(),
        mtu_selector_mtu: EXACTLY | mtu,
        rate_selector_rate: EXACTLY,
        life_selector_packet_life_time: EXACTLY | life_time,
        preference: 0,
        reserved: Reserved::ZERO,
    })
}

impl Id {
    /// `cma_get_roce_udp_flow_label`.
    fn flow_label(&self) -> u32 {
        let (Some(source), Some(destination)) = (self.source, self.destination) else {
            return 0;
        };
        match source.flow_label() {
            0 => {
                let ports = [source, destination].map(|address| u32::from(address.port()));
                let [source, destination] = ports;
                (source * 31 + destination) & 0xf_ffff
            }
            label => label,
        }
    }

    fn path_query(&self) -> PathQuery {
        let flow_info = match self.source {
            Some(Address::Ib(source)) => source.flowinfo.get(),
            _ => 0,
        };
        let [high, low, ..] = flow_info.to_be_bytes();
        PathQuery {
            from: self.source_gid,
            to: self.destination_gid,
            pkey: self.pkey,
            service_id: self.service_id(self.destination),
            // Above the 20 bits of the flow label.
            traffic_class: high << 4 | low >> 4,
        }
    }
}
