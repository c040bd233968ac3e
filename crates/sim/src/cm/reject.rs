//! Rejections.

use nix::errno::Errno;
use rdmacm_abi::{EventNumber, RejectReason};

use super::event::{REJECT_DATA, data_param};
use super::message::{CmMessage, Rej};
use super::receive::report_connected;
use super::{IbState, disconnect, send};
use crate::host_state::EventDetails;
use crate::id::{CmObject, Id, IdKey};
use crate::sim_state::SimState;

/// `ib_send_cm_rej`.
pub(crate) fn reject(
    state: &mut SimState,
    key: IdKey,
    reason: RejectReason,
    data: &[u8],
) -> Result<(), Errno> {
    let connection = state.id(key).and_then(Id::ib).ok_or(Errno::EINVAL)?;
    if data.len() > REJECT_DATA {
        return Err(Errno::EINVAL);
    }
    let message = CmMessage::Rej(Box::new(Rej {
        to: connection.remote,
        from: connection.local,
        reason: reason.number(),
        private_data: data.to_vec(),
    }));
    match connection.state {
        IbState::ReqSent | IbState::ReqReceived | IbState::RepReceived => {
            connection.state = IbState::Idle;
            connection.unanswered = None;
        }
        IbState::RepSent => disconnect::enter_timewait(state, key),
        _ => return Err(Errno::EINVAL),
    }
    send(state, key, message);
    Ok(())
}

/// `cm_rej_handler`.
pub(super) fn receive(state: &mut SimState, host: usize, rej: &Rej) {
    let Some(key) = find_rejected(state, host, rej) else {
        return;
    };
    let Some(connection) = state.id(key).and_then(Id::ib) else {
        return;
    };
    let is_stale = rej.reason == RejectReason::STALE_CONN.number();
    match connection.state {
        IbState::ReqSent | IbState::RepSent | IbState::ReqReceived if !is_stale => {
            connection.unanswered = None;
            connection.state = IbState::Idle;
        }
        IbState::ReqSent
        | IbState::RepSent
        | IbState::ReqReceived
        | IbState::DreqSent
        | IbState::RepReceived
        | IbState::Established => disconnect::enter_timewait(state, key),
        _ => return,
    }
    let details = EventDetails {
        status: rej.reason.into(),
        ..EventDetails::with_param(&data_param(&rej.private_data, REJECT_DATA))
    };
    report_connected(state, key, EventNumber::REJECTED, details);
}

/// `cm_acquire_rejected_id`: a side that gives up its request does not know the
/// communication id of its peer.
fn find_rejected(state: &mut SimState, host: usize, rej: &Rej) -> Option<IdKey> {
    if rej.to != 0 {
        return state.connection(host, rej.to).map(|(key, _)| key);
    }
    let ids = &state.hosts.get(host)?.ids;
    ids.iter().find_map(|(number, id)| match &id.cm {
        CmObject::Ib(connection) if connection.is_of(rej.from) => Some(IdKey {
            host,
            number: *number,
            serial: id.serial,
        }),
        _ => None,
    })
}
