//! Segments that arrive.

use nix::errno::Errno;
use rdmacm_abi::{AddressFamily, EventNumber, QpType};
use rdmacm_core::Gid;

use super::message::MpaRequest;
use super::{
    IwConnection, IwMessage, IwState, MAX_DATA, REPLY_TIMEOUT, ReadDepths, connect, disconnect,
    ends, fail_queue_pair, find, listener, report, send, set_connection, set_timeout,
    start_queue_pair,
};
use crate::cm;
use crate::host_state::EventDetails;
use crate::id::{Id, IdKey, State};
use crate::network::Arrival;
use crate::sim_state::SimState;

/// A segment arrives at a host.
pub(crate) fn receive(state: &mut SimState, arrival: Arrival, message: IwMessage) {
    let host = arrival.host;
    match message {
        IwMessage::Syn { from, destination } => {
            let listener = state
                .hosts
                .get(host)
                .and_then(|host| listener::find(host, arrival, destination));
            let answer = match listener {
                Some(_) => IwMessage::SynAck {
                    to: from,
                    from: state.next_communication_id(),
                },
                None => IwMessage::Reset { to: from },
            };
            arrival.answer_iwarp(state, answer);
        }
        IwMessage::SynAck { to, from } => connected(state, host, to, from),
        IwMessage::Reset { to } => reset(state, host, to),
        IwMessage::Request(request) => requested(state, arrival, &request),
        IwMessage::Reply {
            to,
            qp_number,
            depths,
            private_data,
        } => replied(state, host, (to, qp_number), (depths, &private_data)),
        IwMessage::Reject { to, private_data } => {
            if let Some(key) = take_answer(state, host, to) {
                connect::rejected(state, key, &private_data);
            }
        }
        IwMessage::Fin { to } => ended(state, host, to),
    }
}

/// TCP's handshake is over: CONNECT returns, and MPA's request follows.
fn connected(state: &mut SimState, host: usize, to: u32, from: u32) {
    let Some((key, connection)) = find(state, host, to) else {
        return;
    };
    if connection.state != IwState::Handshake {
        return;
    }
    connection.state = IwState::ConnectSent;
    connection.remote = from;
    connection.handshake_result = Some(Ok(()));
    let private_data = std::mem::take(&mut connection.private_data);
    let depths = connection.depths;
    let qp_number = connection.queue_pair.map_or(0, |one| one.number);
    set_timeout(state, key, REPLY_TIMEOUT);
    if private_data.len() > MAX_DATA {
        // siw garbles the frame, and the peer closes the connection.
        if let Some(key) = take_answer(state, host, to) {
            connect::rejected(state, key, &[]);
        }
        return;
    }
    let Some((source, destination)) = state.id(key).and_then(|id| ends(id)) else {
        return;
    };
    let request = MpaRequest {
        from: to,
        to: from,
        source,
        destination,
        qp_number,
        depths,
        private_data,
    };
    send(state, key, IwMessage::Request(Box::new(request)));
}

/// TCP refuses.
fn reset(state: &mut SimState, host: usize, to: u32) {
    let Some((_, connection)) = find(state, host, to) else {
        return;
    };
    if connection.state == IwState::Handshake {
        connection.state = IwState::Idle;
        connection.handshake_result = Some(Err(Errno::ECONNREFUSED));
    }
}

/// The id that awaits MPA's reply, which it awaits no longer.
fn take_answer(state: &mut SimState, host: usize, to: u32) -> Option<IdKey> {
    let (key, connection) = find(state, host, to)?;
    if connection.state != IwState::ConnectSent {
        return None;
    }
    connection.state = IwState::Idle;
    Some(key)
}

/// `iw_conn_req_handler`.
fn requested(state: &mut SimState, arrival: Arrival, request: &MpaRequest) {
    let refuse = IwMessage::Reject {
        to: request.from,
        private_data: Vec::new(),
    };
    let close = IwMessage::Fin { to: request.from };
    let Some(host) = state.hosts.get_mut(arrival.host) else {
        return;
    };
    let Some(listener) = listener::find(host, arrival, request.destination) else {
        return arrival.answer_iwarp(state, close);
    };
    let serial = host.next_serial();
    let Some(parent) = host.ids.get_mut(&listener) else {
        return;
    };
    // The wildcard of IPv6 gets an address of IPv4 that no device has.
    let is_v6 = parent
        .source
        .is_some_and(|own| own.family() == AddressFamily::INET6);
    if is_v6 && request.destination.family() == AddressFamily::INET {
        return arrival.answer_iwarp(state, close);
    }
    if parent.backlog == 0 {
        return arrival.answer_iwarp(state, refuse);
    }
    parent.backlog -= 1;
    let mut child = Id::new(serial, 0, parent.file, (parent.port_space, QpType::RC));
    child.options.tos = parent.options.tos;
    child.state = State::Connect;
    child.source = Some(request.destination);
    child.destination = Some(request.source);
    child.attached = Some(arrival.attached);
    let device = host.devices.get(arrival.attached.device);
    child.source_gid = device.map_or(Gid::UNSPECIFIED, crate::device::Device::mac_gid);
    let addresses = request.destination.ip().zip(request.source.ip());
    let (Some(addresses), Ok(child)) = (addresses, host.add(arrival.host, child)) else {
        return;
    };
    let mut connection = IwConnection::new(IwState::ConnectReceived, request.to, addresses);
    connection.remote = request.from;
    connection.depths = request.depths.swapped();
    connection.peer_qp_number = request.qp_number;
    set_connection(state, child, connection);
    // As the peer sees them, unlike those of ESTABLISHED.
    let details = connect::established(request.depths, &request.private_data);
    cm::report_request(state, listener, child, details);
}

/// MPA's reply.
fn replied(
    state: &mut SimState,
    host: usize,
    (to, qp_number): (u32, u32),
    (depths, data): (ReadDepths, &[u8]),
) {
    let Some(key) = take_answer(state, host, to) else {
        return;
    };
    if !has_new_queue_pair(state, key) {
        return fail_reply(state, key);
    }
    // The reply says what the peer does; this side does the counterpart.
    let own = depths.swapped();
    if let Some(connection) = state.id(key).and_then(Id::iw) {
        connection.state = IwState::Established;
        connection.depths = own;
        connection.peer_qp_number = qp_number;
    }
    start_queue_pair(state, key);
    let details = connect::established(own, data);
    report(state, key, EventNumber::ESTABLISHED, details);
}

/// CONNECT takes any queue pair that exists. Whether it can be connected shows now.
fn has_new_queue_pair(state: &mut SimState, key: IdKey) -> bool {
    let connection = state.id(key).and_then(Id::iw);
    let queue_pair = connection.and_then(|connection| connection.queue_pair);
    queue_pair.is_some_and(|queue_pair| state.is_unconnected(queue_pair))
}

/// The queue pair cannot be connected (`siw_proc_mpareply`). It fails, and with it a connection
/// that has it.
fn fail_reply(state: &mut SimState, key: IdKey) {
    let Some(connection) = state.id(key).and_then(Id::iw) else {
        return;
    };
    let to = connection.remote;
    send(state, key, IwMessage::Fin { to });
    fail_queue_pair(state, key);
    let details = EventDetails::with_errno(Errno::EINVAL);
    report(state, key, EventNumber::CONNECT_ERROR, details);
}

/// The TCP connection ends.
fn ended(state: &mut SimState, host: usize, to: u32) {
    let Some((key, connection)) = find(state, host, to) else {
        return;
    };
    match connection.state {
        IwState::ConnectReceived => connection.is_peer_closed = true,
        IwState::Established => disconnect::close(state, key),
        IwState::ConnectSent => {
            if let Some(key) = take_answer(state, host, to) {
                connect::rejected(state, key, &[]);
            }
        }
        _ => {}
    }
}
