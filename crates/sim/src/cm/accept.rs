//! Accepting requests, and confirming replies.

use nix::errno::Errno;
use rdmacm_abi::{ConnParam, EventNumber, Notify};

use super::event::REPLY_DATA;
use super::message::{CmMessage, Depths, Rep};
use super::receive::report_connected;
use super::{IbState, send, send_reliably};
use crate::host_state::EventDetails;
use crate::id::{Id, IdKey};
use crate::sim_state::SimState;

/// `cma_accept_ib`.
pub(crate) fn accept(state: &mut SimState, key: IdKey, param: &ConnParam) -> Result<(), Errno> {
    let host = state.hosts.get_mut(key.host).ok_or(Errno::EINVAL)?;
    let id = host.ids.get_mut(&key.number).ok_or(Errno::EINVAL)?;
    let attached = id.attached.ok_or(Errno::EINVAL)?;
    let device = host.devices.get(attached.device).ok_or(Errno::EINVAL)?;
    let (guid, ack_delay) = (device.guid, device.ack_delay());
    let (qp_number, psn, ece) = (id.qp_number, id.psn, id.ece);
    let connection = id.ib().ok_or(Errno::EINVAL)?;
    let is_too_long = usize::from(param.private_data_len) > REPLY_DATA;
    if is_too_long || connection.state != IbState::ReqReceived {
        return Err(Errno::EINVAL);
    }
    connection.state = IbState::RepSent;
    connection.responder_resources = param.responder_resources;
    connection.initiator_depth = param.initiator_depth;
    let rep = Rep {
        to: connection.remote,
        from: connection.local,
        guid,
        qp_number,
        psn,
        depths: Depths {
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            flow_control: param.flow_control,
            rnr_retry_count: param.rnr_retry_count.min(7),
            srq: param.srq,
        },
        ece,
        private_data: param.private_data().to_vec(),
        ack_delay,
    };
    send_reliably(state, key, CmMessage::Rep(Box::new(rep)));
    Ok(())
}

/// `ib_send_cm_rtu`, by the side that connects.
pub(crate) fn confirm(state: &mut SimState, key: IdKey) -> Result<(), Errno> {
    let connection = state.id(key).and_then(Id::ib).ok_or(Errno::EINVAL)?;
    if connection.state != IbState::RepReceived {
        return Err(Errno::EINVAL);
    }
    connection.state = IbState::Established;
    let to = connection.remote;
    send(state, key, CmMessage::Rtu { to });
    Ok(())
}

/// `ib_cm_notify`: what the queue pair has seen.
pub(crate) fn establish(state: &mut SimState, key: IdKey, event: u32) -> Result<(), Errno> {
    let connection = state.id(key).and_then(Id::ib).ok_or(Errno::EINVAL)?;
    match (event, connection.state) {
        (Notify::COMM_EST, IbState::RepSent) => {
            connection.unanswered = None;
            connection.state = IbState::Established;
            report_connected(state, key, EventNumber::ESTABLISHED, EventDetails::NONE);
            Ok(())
        }
        (Notify::COMM_EST, IbState::Established) => Err(Errno::EISCONN),
        (Notify::PATH_MIG, IbState::Established) => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}
