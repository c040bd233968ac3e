//! Messages that arrive.

use rdmacm_abi::{EventNumber, RejectReason};

use super::message::{CmMessage, Rep, Req};
use super::{
    IbConnection, IbState, ack_timeout, attributes, connect, disconnect, event, extend_timeout,
    listener, reject, send, sidr,
};
use crate::host_state::EventDetails;
use crate::id::{Id, IdKey, State};
use crate::network::{Arrival, MessageKind};
use crate::sim_state::SimState;

/// A message arrives at a host.
pub(crate) fn receive(state: &mut SimState, arrival: Arrival, message: CmMessage) {
    let host = arrival.host;
    match message {
        CmMessage::Req(req) => request(state, arrival, &req),
        CmMessage::Rep(rep) => reply(state, arrival, &rep),
        CmMessage::Rtu { to } => ready_to_use(state, host, to),
        CmMessage::Rej(rej) => reject::receive(state, host, &rej),
        CmMessage::Mra { to, of } => acknowledgment(state, host, to, of),
        CmMessage::Dreq { to, from } => disconnect::request(state, arrival, to, from),
        CmMessage::Drep { to } => disconnect::reply(state, host, to),
        CmMessage::SidrReq(req) => sidr::request(state, arrival, &req),
        CmMessage::SidrRep(rep) => sidr::reply(state, host, &rep),
    }
}

/// `cm_req_handler` and `cma_ib_req_handler`.
fn request(state: &mut SimState, arrival: Arrival, req: &Req) {
    if let Some(key) = find_duplicate(state, arrival.host, req) {
        return duplicate_request(state, key, arrival, req);
    }
    let refuse = |reason: RejectReason| CmMessage::reject(req.from, 0, reason.number());
    if end_stale(state, arrival.host, (req.guid.0, req.qp_number), None) {
        return arrival.answer(state, refuse(RejectReason::STALE_CONN));
    }
    let Some(host) = state.hosts.get(arrival.host) else {
        return;
    };
    let found = listener::find(host, arrival, listener::Service::of(req));
    match found {
        Ok(listener) => accept_request(state, arrival, listener, req),
        Err(listener::NoListener::Absent) => {
            arrival.answer(state, refuse(RejectReason::INVALID_SERVICE_ID));
        }
        Err(listener::NoListener::Mismatch) => {
            arrival.answer(state, refuse(RejectReason::CONSUMER_DEFINED));
        }
        // The peer sends it again.
        Err(listener::NoListener::Full) => {}
    }
}

/// The selector of a path record's field (`IB_SA_EQ`).
const EXACTLY: u8 = 2 << 6;

fn accept_request(state: &mut SimState, arrival: Arrival, listener: u32, req: &Req) {
    let mut path = connect::reversed(&req.path, req.service_id);
    // `cm_format_paths_from_req`
    path.life_selector_packet_life_time = EXACTLY | (req.ack_timeout - 1);
    let service = listener::Service::of(req);
    let child = listener::create_child(state, arrival, listener, service, Some(path));
    let Ok(child) = child else {
        return;
    };
    let local = state.next_communication_id();
    let gids = (arrival.destination, arrival.source);
    let mut connection = IbConnection::new(IbState::ReqReceived, local, gids, &path);
    connection.remote = req.from;
    connection.peer_guid = req.guid;
    connection.peer_qp_number = req.qp_number;
    connection.qp_type = req.qp_type;
    connection.sq_psn = req.psn;
    connection.responder_resources = req.depths.initiator_depth;
    connection.initiator_depth = req.depths.responder_resources;
    connection.retry_count = req.retry_count;
    connection.rnr_retry_count = req.depths.rnr_retry_count;
    connection.response_timeout = req.response_timeout;
    let host = state.hosts.get(arrival.host);
    let device = host.and_then(|host| host.devices.get(arrival.attached.device));
    if let Some(device) = device {
        let port = arrival.attached.port;
        connection.address_handle = attributes::address_handle(device, port, &path);
    }
    state.set_connection(child, connection);
    let host = state.hosts.get(arrival.host);
    let parent = host.and_then(|host| host.ids.get(&listener));
    let details = event::request_details(req, parent.is_some_and(Id::is_native));
    listener::report(state, listener, child, details);
}

/// The id of a request that has come before.
fn find_duplicate(state: &SimState, host: usize, req: &Req) -> Option<IdKey> {
    let host_state = state.hosts.get(host)?;
    host_state.ids.iter().find_map(|(number, id)| {
        let crate::id::CmObject::Ib(connection) = &id.cm else {
            return None;
        };
        let is_it = connection.is_of(req.from) && connection.state != IbState::SidrReqReceived;
        is_it.then_some(IdKey {
            host,
            number: *number,
            serial: id.serial,
        })
    })
}

/// `cm_dup_req_handler`.
fn duplicate_request(state: &mut SimState, key: IdKey, arrival: Arrival, req: &Req) {
    let connection = state.id(key).and_then(Id::ib);
    if connection.is_some_and(|connection| connection.state == IbState::ReqReceived) {
        let message = CmMessage::Mra {
            to: req.from,
            of: MessageKind::Request,
        };
        arrival.answer(state, message);
    }
}

/// Whether a live connection has this peer and queue pair, as after the peer's
/// restart. The old connection is disconnected.
fn end_stale(
    state: &mut SimState,
    host: usize,
    (guid, qp_number): (u64, u32),
    except: Option<IdKey>,
) -> bool {
    let Some(host_state) = state.hosts.get_mut(host) else {
        return false;
    };
    let live = [
        IbState::ReqReceived,
        IbState::RepSent,
        IbState::RepReceived,
        IbState::Established,
        IbState::DreqSent,
        IbState::DreqReceived,
    ];
    let old = host_state.ids.iter_mut().find_map(|(number, id)| {
        let serial = id.serial;
        let connection = id.ib()?;
        let is_stale = live.contains(&connection.state)
            && connection.peer_guid.0 == guid
            && connection.peer_qp_number == qp_number;
        let key = IdKey {
            host,
            number: *number,
            serial,
        };
        (is_stale && Some(key) != except).then_some(key)
    });
    let Some(old) = old else {
        return false;
    };
    disconnect::send_request(state, old);
    true
}

/// `cm_rep_handler`.
fn reply(state: &mut SimState, arrival: Arrival, rep: &Rep) {
    let Some((key, id)) = state.connection(arrival.host, rep.to) else {
        return;
    };
    let Some(connection) = id.ib() else {
        return;
    };
    match connection.state {
        IbState::ReqSent => {}
        // The confirmation was lost, or is still to come.
        IbState::Established => return send(state, key, CmMessage::Rtu { to: rep.from }),
        IbState::RepReceived => {
            let message = CmMessage::Mra {
                to: rep.from,
                of: MessageKind::Reply,
            };
            return send(state, key, message);
        }
        _ => return,
    }
    connection.remote = rep.from;
    if end_stale(state, arrival.host, (rep.guid.0, rep.qp_number), Some(key)) {
        // The program gets no event at all.
        if let Some(connection) = state.id(key).and_then(Id::ib) {
            connection.unanswered = None;
        }
        let reason = RejectReason::STALE_CONN.number();
        return arrival.answer(state, CmMessage::reject(rep.from, rep.to, reason));
    }
    let Some(connection) = state.id(key).and_then(Id::ib) else {
        return;
    };
    connection.unanswered = None;
    connection.state = IbState::RepReceived;
    connection.ack_timeout = ack_timeout(rep.ack_delay, connection.ack_timeout - 1);
    connection.peer_guid = rep.guid;
    connection.peer_qp_number = rep.qp_number;
    connection.sq_psn = rep.psn;
    connection.initiator_depth = rep.depths.responder_resources;
    connection.responder_resources = rep.depths.initiator_depth;
    connection.rnr_retry_count = rep.depths.rnr_retry_count;
    report_connected(
        state,
        key,
        EventNumber::CONNECT_RESPONSE,
        event::reply_details(rep),
    );
}

/// `cm_rtu_handler`.
fn ready_to_use(state: &mut SimState, host: usize, to: u32) {
    let Some((key, id)) = state.connection(host, to) else {
        return;
    };
    let Some(connection) = id.ib() else {
        return;
    };
    if connection.state == IbState::RepSent {
        connection.unanswered = None;
        connection.state = IbState::Established;
        report_connected(state, key, EventNumber::ESTABLISHED, EventDetails::NONE);
    }
}

/// `cm_mra_handler`: the peer has the message and takes longer.
fn acknowledgment(state: &mut SimState, host: usize, to: u32, of: MessageKind) {
    let Some((key, id)) = state.connection(host, to) else {
        return;
    };
    let Some(connection) = id.ib() else {
        return;
    };
    let is_awaited = match of {
        MessageKind::Request => connection.state == IbState::ReqSent,
        _ => connection.state == IbState::RepSent,
    };
    if is_awaited {
        extend_timeout(state, key);
    }
}

/// Queues an event of an id that is connecting (`cma_ib_handler`).
pub(super) fn report_connected(
    state: &mut SimState,
    key: IdKey,
    event: EventNumber,
    details: EventDetails,
) {
    if state.id(key).is_some_and(|id| id.state == State::Connect) {
        state.post(key, event, details);
    }
}
