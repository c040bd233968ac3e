//! Requests to connect.

use nix::errno::Errno;
use rdmacm_abi::{ConnParam, PathRecord};
use rdmacm_core::Gid;

use super::event::{IP_HEADER, REQUEST_DATA};
use super::message::{CmMessage, Depths, Req};
use super::{IbConnection, IbState, RESPONSE_TIMEOUT, ack_timeout, attributes, send_reliably};
use crate::address::Address;
use crate::id::{Id, IdKey};
use crate::sim_state::SimState;

/// `cma_connect_ib`, of an id whose route is resolved.
pub(crate) fn connect(state: &mut SimState, key: IdKey, param: &ConnParam) -> Result<(), Errno> {
    let local = state.next_communication_id();
    let host = state.hosts.get_mut(key.host).ok_or(Errno::EINVAL)?;
    let id = host.ids.get_mut(&key.number).ok_or(Errno::EINVAL)?;
    let path = id.path.ok_or(Errno::EINVAL)?;
    check_data(id, param, REQUEST_DATA)?;
    let attached = id.attached.ok_or(Errno::EINVAL)?;
    let device = host.devices.get(attached.device).ok_or(Errno::EINVAL)?;
    let depths = Depths {
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        flow_control: param.flow_control,
        rnr_retry_count: param.rnr_retry_count.min(7),
        srq: param.srq,
    };
    let req = Req {
        from: local,
        guid: device.guid,
        service_id: id.service_id(id.destination),
        qp_number: id.qp_number,
        qp_type: id.qp_type,
        psn: id.psn,
        depths,
        retry_count: param.retry_count.min(7),
        ece: id.ece,
        path,
        addresses: ip_addresses(id),
        private_data: request_data(id, param),
        response_timeout: RESPONSE_TIMEOUT,
        ack_timeout: ack_timeout(device.ack_delay(), path.packet_life_time()),
    };
    let gids = (Gid(path.source_gid), Gid(path.destination_gid));
    let life_time = IbConnection::milliseconds(path.packet_life_time());
    let mut connection = IbConnection::new(IbState::ReqSent, local, gids, &path);
    connection.qp_type = id.qp_type;
    connection.responder_resources = param.responder_resources;
    connection.initiator_depth = param.initiator_depth;
    connection.retry_count = req.retry_count;
    connection.address_handle = attributes::address_handle(device, attached.port, &path);
    connection.response_timeout = 2 * life_time + RESPONSE_TIMEOUT;
    state.set_connection(key, connection);
    send_reliably(state, key, CmMessage::Req(Box::new(req)));
    Ok(())
}

/// Private data shares its field with the addresses of a request over IP.
pub(super) fn check_data(id: &Id, param: &ConnParam, size: usize) -> Result<(), Errno> {
    let header = if id.is_native() { 0 } else { IP_HEADER };
    if usize::from(param.private_data_len) + header > size {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

/// `cma_format_hdr` writes its version into the first byte, also where no IP addresses follow.
pub(super) fn request_data(id: &Id, param: &ConnParam) -> Vec<u8> {
    let mut data = param.private_data().to_vec();
    if let Some(first) = data.first_mut().filter(|_| id.is_native()) {
        *first = 0;
    }
    data
}

/// `cma_format_hdr`.
pub(super) fn ip_addresses(id: &Id) -> Option<(Address, Address)> {
    let (source, destination) = (id.source?, id.destination?);
    (!id.is_native()).then_some((source, destination))
}

/// A path as its other end sees it.
pub(super) fn reversed(path: &PathRecord, service_id: u64) -> PathRecord {
    PathRecord {
        service_id: service_id.into(),
        destination_gid: path.source_gid,
        source_gid: path.destination_gid,
        destination_lid: path.source_lid,
        source_lid: path.destination_lid,
        ..*path
    }
}
