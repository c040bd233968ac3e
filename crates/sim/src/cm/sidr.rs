//! Datagram services (SIDR).

use nix::errno::Errno;
use rdmacm_abi::{AhAttr, ConnParam, EventNumber, QpType, SidrStatus, UDP_QKEY};
use rdmacm_core::Gid;

use super::event::{IP_HEADER, SERVICE_REPLY_DATA, SERVICE_REQUEST_DATA, ud_param};
use super::listener::{self, NoListener, Service};
use super::message::{CmMessage, SidrRep, SidrReq};
use super::receive::report_connected;
use super::{IbConnection, IbState, attributes, connect, send, send_reliably};
use crate::host_state::EventDetails;
use crate::id::{CmObject, Id, IdKey};
use crate::network::Arrival;
use crate::sim_state::SimState;

/// `cma_resolve_ib_udp`, of an id whose route is resolved.
pub(crate) fn connect_service(
    state: &mut SimState,
    key: IdKey,
    param: &ConnParam,
) -> Result<(), Errno> {
    let local = state.next_communication_id();
    let host = state.hosts.get_mut(key.host).ok_or(Errno::EINVAL)?;
    let id = host.ids.get_mut(&key.number).ok_or(Errno::EINVAL)?;
    let path = id.path.ok_or(Errno::EINVAL)?;
    connect::check_data(id, param, SERVICE_REQUEST_DATA)?;
    let attached = id.attached.ok_or(Errno::EINVAL)?;
    let device = host.devices.get(attached.device).ok_or(Errno::EINVAL)?;
    let req = SidrReq {
        from: local,
        service_id: id.service_id(id.destination),
        path,
        addresses: connect::ip_addresses(id),
        private_data: connect::request_data(id, param),
    };
    let gids = (Gid(path.source_gid), Gid(path.destination_gid));
    let mut connection = IbConnection::new(IbState::SidrReqSent, local, gids, &path);
    connection.qp_type = QpType::UD;
    connection.address_handle = attributes::address_handle(device, attached.port, &path);
    state.set_connection(key, connection);
    send_reliably(state, key, CmMessage::SidrReq(Box::new(req)));
    Ok(())
}

/// `cm_sidr_req_handler` and `cma_ib_req_handler`.
pub(super) fn request(state: &mut SimState, arrival: Arrival, req: &SidrReq) {
    let Some(host) = state.hosts.get(arrival.host) else {
        return;
    };
    let is_duplicate = host.ids.values().any(|id| {
        matches!(&id.cm, CmObject::Ib(connection)
            if connection.remote == req.from && connection.state == IbState::SidrReqReceived)
    });
    if is_duplicate {
        return;
    }
    let service = Service {
        id: req.service_id,
        qp_type: QpType::UD,
        addresses: req.addresses,
    };
    let refuse = |status: SidrStatus| {
        CmMessage::SidrRep(Box::new(SidrRep {
            to: req.from,
            status: status.number(),
            qp_number: 0,
            qkey: 0,
            private_data: Vec::new(),
        }))
    };
    match listener::find(host, arrival, service) {
        Ok(listener) => accept_request(state, arrival, (listener, service), req),
        Err(NoListener::Absent) => arrival.answer(state, refuse(SidrStatus::UNSUPPORTED)),
        Err(NoListener::Mismatch | NoListener::Full) => {
            arrival.answer(state, refuse(SidrStatus::REJECT));
        }
    }
}

fn accept_request(
    state: &mut SimState,
    arrival: Arrival,
    (listener, service): (u32, Service),
    req: &SidrReq,
) {
    let child = listener::create_child(state, arrival, listener, service, None);
    let Ok(child) = child else {
        return;
    };
    let local = state.next_communication_id();
    let path = connect::reversed(&req.path, req.service_id);
    let gids = (arrival.destination, arrival.source);
    let mut connection = IbConnection::new(IbState::SidrReqReceived, local, gids, &path);
    connection.qp_type = QpType::UD;
    connection.remote = req.from;
    state.set_connection(child, connection);
    let host = state.hosts.get(arrival.host);
    let parent = host.and_then(|host| host.ids.get(&listener));
    let size = if parent.is_some_and(Id::is_native) {
        SERVICE_REQUEST_DATA
    } else {
        SERVICE_REQUEST_DATA - IP_HEADER
    };
    let param = ud_param((0, 0), AhAttr::default(), (&req.private_data, size));
    listener::report(state, listener, child, EventDetails::with_param(&param));
}

/// `cma_send_sidr_rep`, with the number of the queue pair that serves.
pub(crate) fn accept_service(
    state: &mut SimState,
    key: IdKey,
    param: Option<&ConnParam>,
) -> Result<(), Errno> {
    let id = state.id(key).ok_or(Errno::EINVAL)?;
    if id.qkey == 0 {
        let asked = param
            .filter(|_| id.is_native())
            .map_or(0, |param| param.qkey);
        id.qkey = if asked == 0 { UDP_QKEY } else { asked };
    }
    let (qp_number, qkey) = (id.qp_number, id.qkey);
    let data = param.map_or(&[][..], ConnParam::private_data);
    reply_with(state, key, |to| SidrRep {
        to,
        status: SidrStatus::SUCCESS.number(),
        qp_number,
        qkey,
        private_data: data.to_vec(),
    })
}

/// The same, with a refusal.
pub(crate) fn reject_service(state: &mut SimState, key: IdKey, data: &[u8]) -> Result<(), Errno> {
    reply_with(state, key, |to| SidrRep {
        to,
        status: SidrStatus::REJECT.number(),
        qp_number: 0,
        qkey: 0,
        private_data: data.to_vec(),
    })
}

/// `ib_send_cm_sidr_rep`.
fn reply_with(
    state: &mut SimState,
    key: IdKey,
    reply: impl FnOnce(u32) -> SidrRep,
) -> Result<(), Errno> {
    let connection = state.id(key).and_then(Id::ib).ok_or(Errno::EINVAL)?;
    let reply = reply(connection.remote);
    let is_too_long = reply.private_data.len() > SERVICE_REPLY_DATA;
    if is_too_long || connection.state != IbState::SidrReqReceived {
        return Err(Errno::EINVAL);
    }
    connection.state = IbState::Idle;
    send(state, key, CmMessage::SidrRep(Box::new(reply)));
    Ok(())
}

/// `cm_sidr_rep_handler` and `cma_sidr_rep_handler`.
pub(super) fn reply(state: &mut SimState, host: usize, rep: &SidrRep) {
    let Some((key, id)) = state.connection(host, rep.to) else {
        return;
    };
    let Some(connection) = id.ib() else {
        return;
    };
    if connection.state != IbState::SidrReqSent {
        return;
    }
    connection.state = IbState::Idle;
    connection.unanswered = None;
    let data = (&rep.private_data[..], SERVICE_REPLY_DATA);
    if rep.status == SidrStatus::SUCCESS.number() {
        let address_handle = connection.address_handle;
        id.qkey = rep.qkey;
        let param = ud_param((rep.qp_number, rep.qkey), address_handle, data);
        let details = EventDetails::with_param(&param);
        report_connected(state, key, EventNumber::ESTABLISHED, details);
    } else {
        let details = EventDetails {
            status: rep.status.into(),
            ..EventDetails::with_param(&ud_param((0, 0), AhAttr::default(), data))
        };
        report_connected(state, key, EventNumber::UNREACHABLE, details);
    }
}
