//! The end of connections.

use nix::errno::Errno;
use rdmacm_abi::EventNumber;

use super::{IwMessage, IwState, connect, report, send};
use crate::host_state::EventDetails;
use crate::id::{CmObject, Id, IdKey};
use crate::sim_state::SimState;

/// Whether an answer of the peer is awaited, for which DISCONNECT and DESTROY wait.
pub(crate) fn is_pending(state: &mut SimState, key: IdKey) -> bool {
    let connection = state.id(key).and_then(Id::iw);
    connection.is_some_and(|connection| {
        [IwState::Handshake, IwState::ConnectSent].contains(&connection.state)
            || connection.handshake_result.is_some()
    })
}

/// `iw_cm_disconnect`, of an id that awaits no answer.
pub(crate) fn disconnect(state: &mut SimState, key: IdKey) -> Result<(), Errno> {
    let connection = state.id(key).and_then(Id::iw).ok_or(Errno::EINVAL)?;
    if connection.state == IwState::Established {
        let to = connection.remote;
        send(state, key, IwMessage::Fin { to });
        close(state, key);
    }
    Ok(())
}

/// The TCP connection has ended.
pub(super) fn close(state: &mut SimState, key: IdKey) {
    if let Some(connection) = state.id(key).and_then(Id::iw) {
        connection.state = IwState::Idle;
        let details = EventDetails::NONE;
        report(state, key, EventNumber::DISCONNECTED, details);
    }
}

/// `iw_destroy_cm_id`: rejects a request that was not answered, and ends a
/// connection.
pub(crate) fn destroy(state: &mut SimState, key: IdKey) {
    // Fails in any other state.
    let _ = connect::reject(state, key, &[]);
    let Some(connection) = state.id(key).and_then(Id::iw) else {
        return;
    };
    let (local, to) = (connection.local, connection.remote);
    if [IwState::Established, IwState::ConnectSent].contains(&connection.state) {
        send(state, key, IwMessage::Fin { to });
    }
    if let Some(id) = state.id(key) {
        id.cm = CmObject::None;
    }
    state.forget_connection(key.host, local);
}
