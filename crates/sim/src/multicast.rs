//! Multicast groups of datagram ids.

use nix::errno::Errno;
use rdmacm_abi::{AhAttr, EventNumber, GlobalRoute, Reserved, UDP_QKEY};
use rdmacm_core::Transport;

use crate::address::Address;
use crate::cm::ud_param;
use crate::command::CommandError;
use crate::device::ip_gid;
use crate::event_queue::QueuedEvent;
use crate::host_state::EventDetails;
use crate::id::{IdKey, State};
use crate::sim_state::SimState;
use crate::timer::Timer;

/// A group that an id has joined, `ucma_multicast`.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) serial: u64,
    pub(crate) uid: u64,
    /// The id that has joined.
    pub(crate) id: u32,
    address_handle: AhAttr,
    pub(crate) events_reported: u32,
}

/// The error number for an address family that a transport cannot map to groups. No
/// C library has a name for it.
const ENOTSUPP: i32 = 524;

/// `rdma_join_multicast`: the number of the group, whose event follows.
pub(crate) fn join(
    state: &mut SimState,
    key: IdKey,
    uid: u64,
    address: Address,
) -> Result<u32, CommandError> {
    let host = state.hosts.get_mut(key.host).ok_or(Errno::ENOENT)?;
    let serial = host.next_serial();
    let id = host.ids.get_mut(&key.number).ok_or(Errno::ENOENT)?;
    let may_join = [State::AddrBound, State::AddrResolved].contains(&id.state);
    let attached = id.attached.filter(|_| may_join).ok_or(Errno::EINVAL)?;
    if !id.is_datagram() {
        return Err(Errno::EINVAL.into());
    }
    let device = host.devices.get(attached.device).ok_or(Errno::EINVAL)?;
    let destination_gid = match (device.transport, address) {
        (Transport::InfiniBand, Address::Ib(address)) => address.addr,
        (Transport::RoCE, Address::V4(address)) if !address.ip().is_unspecified() => {
            ip_gid((*address.ip()).into()).0
        }
        (Transport::RoCE, Address::V6(address)) if !address.ip().is_unspecified() => {
            return Err(CommandError::new(ENOTSUPP));
        }
        (Transport::InfiniBand | Transport::RoCE, _) => return Err(Errno::EINVAL.into()),
        _ => return Err(Errno::ENOSYS.into()),
    };
    if id.qkey == 0 {
        id.qkey = UDP_QKEY;
    }
    let address_handle = AhAttr {
        grh: GlobalRoute {
            destination_gid,
            source_gid_index: device.gid_index(id.source_gid),
            hop_limit: 64,
            ..GlobalRoute::default()
        },
        is_global: 1,
        port_number: attached.port,
        reserved: Reserved::ZERO,
        ..AhAttr::default()
    };
    let number = (0..u32::MAX)
        .find(|number| !host.groups.contains_key(number))
        .ok_or(Errno::ENOMEM)?;
    let group = Group {
        serial,
        uid,
        id: key.number,
        address_handle,
        events_reported: 0,
    };
    host.groups.insert(number, group);
    let timer = Timer::Joined {
        host: key.host,
        serial,
    };
    state.clock.schedule(state.network.delay, timer);
    Ok(number)
}

/// Queues the event of a group, with the group's uid and number.
pub(crate) fn report_join(state: &mut SimState, host: usize, serial: u64) {
    let Some(host) = state.hosts.get_mut(host) else {
        return;
    };
    let Some((number, group)) = host.groups.iter().find(|(_, group)| group.serial == serial) else {
        return;
    };
    let Some(id) = host.ids.get(&group.id).filter(|id| id.uid != 0) else {
        return;
    };
    let param = ud_param((0xff_ffff, id.qkey), group.address_handle, (&[], 0));
    let event = EventNumber::MULTICAST_JOIN;
    let queued = QueuedEvent {
        id: group.id,
        group: Some(*number),
        child: None,
        response: EventDetails::with_param(&param).into_response(group.uid, *number, event),
    };
    if let Some(file) = host.files.get_mut(&id.file) {
        file.push(queued);
    }
}
