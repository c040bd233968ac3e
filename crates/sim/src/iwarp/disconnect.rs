//! The end of connections.

use nix::errno::Errno;
use rdmacm_abi::EventNumber;

use super::{IwMessage, IwState, connect, fail_queue_pair, report, send};
use crate::host_state::EventDetails;
use crate::id::{CmObject, Id, IdKey};
use crate::sim_state::SimState;
use crate::verbs::{self, QpKey};

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

/// The queue pair has failed or is destroyed: its connection ends.
pub(crate) fn end_connection_of(state: &mut SimState, queue_pair: QpKey) {
    let Some(host) = state.hosts.get_mut(queue_pair.host) else {
        return;
    };
    let mut ids = host.ids.iter_mut();
    let found = ids.find_map(|(number, id)| {
        let serial = id.serial;
        let connection = id.iw()?;
        let is_it =
            connection.queue_pair == Some(queue_pair) && connection.state == IwState::Established;
        let key = IdKey {
            host: queue_pair.host,
            number: *number,
            serial,
        };
        is_it.then_some((key, connection.remote))
    });
    if let Some((key, to)) = found {
        send(state, key, IwMessage::Fin { to });
        close(state, key);
    }
}

/// The TCP connection has ended, and with it the queue pair.
pub(super) fn close(state: &mut SimState, key: IdKey) {
    let Some(connection) = state.id(key).and_then(Id::iw) else {
        return;
    };
    connection.state = IwState::Idle;
    fail_queue_pair(state, key);
    let details = EventDetails::NONE;
    report(state, key, EventNumber::DISCONNECTED, details);
}

/// `iw_destroy_cm_id`: rejects a request that was not answered, and ends a
/// connection.
pub(crate) fn destroy(state: &mut SimState, key: IdKey) {
    // Fails in any other state.
    let _ = connect::reject(state, key, &[]);
    let Some(connection) = state.id(key).and_then(Id::iw) else {
        return;
    };
    let (local, to, queue_pair) = (connection.local, connection.remote, connection.queue_pair);
    if [IwState::Established, IwState::ConnectSent].contains(&connection.state) {
        send(state, key, IwMessage::Fin { to });
    }
    if let Some(id) = state.id(key) {
        id.cm = CmObject::None;
    }
    if let Some(queue_pair) = queue_pair {
        verbs::fail(state, queue_pair);
    }
    state.forget_connection(key.host, local);
}
