//! Connecting, accepting and rejecting.

use nix::errno::Errno;
use rdmacm_abi::{ConnParam, EventNumber, EventParam};

use super::{
    IwConnection, IwMessage, IwState, MAX_DATA, MAX_DEPTH, ReadDepths, SYN_TIMEOUT, ends,
    fail_queue_pair, find_queue_pair, report, send, set_connection, set_timeout, start_queue_pair,
};
use crate::host_state::EventDetails;
use crate::id::{CmObject, Id, IdKey, State};
use crate::sim_state::SimState;

/// `cma_connect_iw` and `siw_connect`, up to TCP's handshake, whose end
/// [`take_handshake_result`] returns.
pub(crate) fn connect(state: &mut SimState, key: IdKey, param: &ConnParam) -> Result<(), Errno> {
    let local = state.next_communication_id();
    let id = state.id(key).ok_or(Errno::EINVAL)?;
    if id.is_datagram() {
        return Err(Errno::EINVAL);
    }
    let queue_pair = find_queue_pair(state, key)?;
    let id = state.id(key).ok_or(Errno::EINVAL)?;
    let (source, destination) = ends(id).ok_or(Errno::EINVAL)?;
    let addresses = source.ip().zip(destination.ip()).ok_or(Errno::EINVAL)?;
    let depths = depths_of(param);
    if depths.inbound > MAX_DEPTH || depths.outbound > MAX_DEPTH {
        return Err(Errno::ENOMEM);
    }
    let mut connection = IwConnection::new(IwState::Handshake, local, addresses);
    connection.depths = depths;
    connection.queue_pair = Some(queue_pair);
    connection.private_data = param.private_data().to_vec();
    set_connection(state, key, connection);
    send_syn(state, key);
    Ok(())
}

/// Sends TCP's first segment, and sets the time for its answer.
pub(super) fn send_syn(state: &mut SimState, key: IdKey) {
    let Some(id) = state.id(key) else {
        return;
    };
    let (Some(destination), Some(connection)) = (id.destination, id.iw()) else {
        return;
    };
    let (from, retries) = (connection.local, connection.syn_retries);
    set_timeout(state, key, SYN_TIMEOUT * (1 << retries));
    send(state, key, IwMessage::Syn { from, destination });
}

/// How the handshake of an id has ended; `None` while it lasts. After a failure the
/// id may connect again.
pub(crate) fn take_handshake_result(state: &mut SimState, key: IdKey) -> Option<Result<(), Errno>> {
    let Some(id) = state.id(key) else {
        return Some(Err(Errno::EINVAL));
    };
    let Some(connection) = id.iw() else {
        return Some(Err(Errno::EINVAL));
    };
    let (local, result) = (connection.local, connection.handshake_result.take()?);
    if result.is_err() {
        id.cm = CmObject::None;
        if id.state == State::Connect {
            id.state = State::RouteResolved;
        }
        state.forget_connection(key.host, local);
    }
    Some(result)
}

/// Nobody waits for TCP's handshake any more. The id may connect again, as after a failure.
pub(crate) fn abandon_handshake(state: &mut SimState, key: IdKey) {
    if let Some(connection) = state.id(key).and_then(Id::iw) {
        connection.handshake_result = Some(Err(Errno::EINTR));
        take_handshake_result(state, key);
    }
}

fn depths_of(param: &ConnParam) -> ReadDepths {
    ReadDepths {
        inbound: param.responder_resources,
        outbound: param.initiator_depth,
    }
}

/// `iw_cm_accept` and `siw_accept`.
pub(crate) fn accept(state: &mut SimState, key: IdKey, param: &ConnParam) -> Result<(), Errno> {
    let connection = state.id(key).and_then(Id::iw).ok_or(Errno::EINVAL)?;
    if connection.state != IwState::ConnectReceived {
        return Err(Errno::EINVAL);
    }
    if connection.is_peer_closed {
        connection.state = IwState::Idle;
        return Err(Errno::ECONNRESET);
    }
    let own = depths_of(param);
    let is_too_deep = own.inbound > MAX_DEPTH || own.outbound > MAX_DEPTH;
    if is_too_deep || param.private_data().len() > MAX_DATA {
        return Err(Errno::EINVAL);
    }
    let queue_pair = find_queue_pair(state, key)?;
    if !state.is_unconnected(queue_pair) {
        return Err(Errno::EINVAL);
    }
    let connection = state.id(key).and_then(Id::iw).ok_or(Errno::EINVAL)?;
    connection.queue_pair = Some(queue_pair);
    // The side that accepts serves as many reads as the other issues, and issues no
    // more than the other serves. Its view of the request is swapped already.
    let asked = connection.depths;
    connection.depths = ReadDepths {
        inbound: own.inbound.max(asked.inbound),
        outbound: own.outbound.min(asked.outbound),
    };
    connection.state = IwState::Established;
    let (to, depths) = (connection.remote, connection.depths);
    start_queue_pair(state, key);
    let reply = IwMessage::Reply {
        to,
        qp_number: queue_pair.number,
        depths,
        private_data: param.private_data().to_vec(),
    };
    send(state, key, reply);
    let details = established(depths, &[]);
    state.post(key, EventNumber::ESTABLISHED, details);
    Ok(())
}

/// What ESTABLISHED and connect requests carry.
pub(super) fn established(depths: ReadDepths, data: &[u8]) -> EventDetails {
    let param = ConnParam {
        responder_resources: depths.outbound,
        initiator_depth: depths.inbound,
        ..ConnParam::ZERO
    };
    let param = param.with_private_data(data).unwrap_or(param);
    EventDetails::with_param(&EventParam::from_conn(&param))
}

/// `iw_cm_reject`.
pub(crate) fn reject(state: &mut SimState, key: IdKey, data: &[u8]) -> Result<(), Errno> {
    let connection = state.id(key).and_then(Id::iw).ok_or(Errno::EINVAL)?;
    if connection.state != IwState::ConnectReceived {
        return Err(Errno::EINVAL);
    }
    connection.state = IwState::Idle;
    if connection.is_peer_closed {
        return Err(Errno::ECONNRESET);
    }
    let to = connection.remote;
    let private_data = data.to_vec();
    send(state, key, IwMessage::Reject { to, private_data });
    Ok(())
}

/// The peer rejects, or its TCP connection is reset.
pub(super) fn rejected(state: &mut SimState, key: IdKey, data: &[u8]) {
    fail_queue_pair(state, key);
    let param = ConnParam::ZERO;
    let param = param.with_private_data(data).unwrap_or(param);
    let details = EventDetails {
        status: -(Errno::ECONNRESET as i32),
        ..EventDetails::with_param(&EventParam::from_conn(&param))
    };
    report(state, key, EventNumber::REJECTED, details);
}
