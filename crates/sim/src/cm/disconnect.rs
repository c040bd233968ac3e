//! The end of connections.

use rdmacm_abi::{EventNumber, RejectReason};

use super::message::CmMessage;
use super::{IbState, reject, send, send_reliably, sidr};
use crate::host_state::EventDetails;
use crate::id::{CmObject, Id, IdKey, State};
use crate::network::Arrival;
use crate::sim_state::SimState;
use crate::timer::Timer;

/// `rdma_disconnect`: asks for the end of the connection, or answers the peer that
/// has asked. Succeeds in any state.
pub(crate) fn disconnect(state: &mut SimState, key: IdKey) {
    if send_request(state, key) {
        return;
    }
    send_reply(state, key);
}

/// `ib_send_cm_dreq`; `false` unless the connection is established.
pub(super) fn send_request(state: &mut SimState, key: IdKey) -> bool {
    let Some(connection) = state.id(key).and_then(Id::ib) else {
        return false;
    };
    if connection.state != IbState::Established {
        return false;
    }
    connection.state = IbState::DreqSent;
    let message = CmMessage::Dreq {
        to: connection.remote,
        from: connection.local,
    };
    send_reliably(state, key, message);
    true
}

/// `ib_send_cm_drep`.
fn send_reply(state: &mut SimState, key: IdKey) {
    let Some(connection) = state.id(key).and_then(Id::ib) else {
        return;
    };
    if connection.state == IbState::DreqReceived {
        let to = connection.remote;
        enter_timewait(state, key);
        send(state, key, CmMessage::Drep { to });
    }
}

/// `cm_dreq_handler`.
pub(super) fn request(state: &mut SimState, arrival: Arrival, to: u32, from: u32) {
    let Some((key, id)) = state.connection(arrival.host, to) else {
        // The id was destroyed.
        return arrival.answer(state, CmMessage::Drep { to: from });
    };
    let Some(connection) = id.ib() else {
        return;
    };
    match connection.state {
        IbState::RepSent | IbState::DreqSent | IbState::Established => {
            connection.unanswered = None;
            connection.state = IbState::DreqReceived;
            report(state, key, EventDetails::NONE);
        }
        IbState::Timewait => send(state, key, CmMessage::Drep { to: from }),
        _ => {}
    }
}

/// `cm_drep_handler`.
pub(super) fn reply(state: &mut SimState, host: usize, to: u32) {
    let Some((key, id)) = state.connection(host, to) else {
        return;
    };
    let Some(connection) = id.ib() else {
        return;
    };
    if [IbState::DreqSent, IbState::DreqReceived].contains(&connection.state) {
        enter_timewait(state, key);
        report(state, key, EventDetails::NONE);
    }
}

/// Reports the end of the connection, once.
pub(super) fn report(state: &mut SimState, key: IdKey, details: EventDetails) {
    let Some(id) = state.id(key) else {
        return;
    };
    if id.state == State::Connect {
        id.state = State::Disconnect;
        state.post(key, EventNumber::DISCONNECTED, details);
    }
}

/// `cm_enter_timewait`.
pub(super) fn enter_timewait(state: &mut SimState, key: IdKey) {
    let Some(connection) = state.id(key).and_then(Id::ib) else {
        return;
    };
    connection.unanswered = None;
    connection.state = IbState::Timewait;
    let (communication_id, timewait) = (connection.local, connection.timewait());
    let timer = Timer::TimewaitExit {
        id: key,
        communication_id,
    };
    state.clock.schedule(timewait, timer);
}

/// `cm_timewait_handler`.
pub(crate) fn exit_timewait(state: &mut SimState, key: IdKey, communication_id: u32) {
    let Some(id) = state.id(key) else {
        return;
    };
    let id_state = id.state;
    let Some(connection) = id.ib() else {
        return;
    };
    if connection.state == IbState::Timewait && connection.local == communication_id {
        connection.state = IbState::Idle;
        if id_state == State::Disconnect {
            state.post(key, EventNumber::TIMEWAIT_EXIT, EventDetails::NONE);
        }
    }
}

/// `ib_destroy_cm_id`: the peer gets one message, if the state allows one.
pub(crate) fn destroy(state: &mut SimState, key: IdKey) {
    let Some(connection) = state.id(key).and_then(Id::ib) else {
        return;
    };
    let (local, remote) = (connection.local, connection.remote);
    connection.unanswered = None;
    match connection.state {
        IbState::ReqSent => {
            send(
                state,
                key,
                CmMessage::reject(0, local, RejectReason::TIMEOUT.number()),
            );
        }
        IbState::ReqReceived | IbState::RepSent | IbState::RepReceived => {
            // Without private data it fails in no such state.
            let _ = reject(state, key, RejectReason::CONSUMER_DEFINED, &[]);
        }
        IbState::Established => {
            let (to, from) = (remote, local);
            send(state, key, CmMessage::Dreq { to, from });
        }
        IbState::DreqReceived => send(state, key, CmMessage::Drep { to: remote }),
        IbState::SidrReqReceived => {
            let _ = sidr::reject_service(state, key, &[]);
        }
        IbState::Idle | IbState::DreqSent | IbState::Timewait | IbState::SidrReqSent => {}
    }
    if let Some(id) = state.id(key) {
        id.cm = CmObject::None;
    }
    state.forget_connection(key.host, local);
}
