//! Connecting, accepting and rejecting.

use nix::errno::Errno;
use rdmacm_abi::{Accept, ConnParam, Connect, Notify, Reject, RejectReason};
use rdmacm_core::Transport;

use super::{Blocked, BlockedCommand, Kernel, Outcome};
use crate::id::{CmObject, IdKey, State};
use crate::{cm, iwarp};

/// `ucma_connect` and `rdma_connect_locked`.
pub(super) fn connect(
    kernel: &mut Kernel<'_>,
    request: &Connect,
) -> Result<Option<Blocked>, Errno> {
    if request.param.valid == 0 {
        return Err(Errno::EINVAL);
    }
    let param = &request.param;
    let key = kernel.attached_key(request.id)?;
    let transport = transport(kernel, key)?;
    let id = kernel.find_attached(request.id)?;
    if id.state != State::RouteResolved {
        return Err(Errno::EINVAL);
    }
    id.state = State::Connect;
    id.ece = request.ece;
    set_queue_pair(id, param);
    let is_datagram = id.is_datagram();
    let connected = match transport {
        Transport::IWarp => iwarp::connect(kernel.state, key, param),
        _ if is_datagram => cm::connect_service(kernel.state, key, param),
        _ => cm::connect(kernel.state, key, param),
    };
    if let Err(errno) = connected {
        kernel.find_attached(request.id)?.state = State::RouteResolved;
        return Err(errno);
    }
    let blocked = Blocked {
        id: key,
        command: BlockedCommand::Connect,
    };
    Ok((transport == Transport::IWarp).then_some(blocked))
}

/// The end of TCP's handshake.
pub(super) fn resume(kernel: &mut Kernel<'_>, key: IdKey) -> Option<Outcome> {
    iwarp::take_handshake_result(kernel.state, key)
}

fn transport(kernel: &mut Kernel<'_>, key: IdKey) -> Result<Transport, Errno> {
    let host = kernel.host()?;
    let attached = host.ids.get(&key.number).and_then(|id| id.attached);
    host.transport(attached).ok_or(Errno::EINVAL)
}

/// The queue pair that the program names; its number has 24 bits.
fn set_queue_pair(id: &mut crate::id::Id, param: &ConnParam) {
    id.qp_number = param.qp_number & 0xff_ffff;
    id.srq = param.srq;
}

/// `ucma_accept` and `rdma_accept`. Any failure but that of the state rejects the
/// peer as well.
pub(super) fn accept(kernel: &mut Kernel<'_>, request: &Accept) -> Outcome {
    let key = kernel.attached_key(request.id)?;
    let transport = transport(kernel, key)?;
    let param = (request.param.valid != 0).then_some(&request.param);
    let id = kernel.find_attached(request.id)?;
    id.ece = request.ece;
    if id.state != State::Connect {
        return Err(Errno::EINVAL);
    }
    if let Some(param) = param {
        set_queue_pair(id, param);
    }
    // Before an event of the connection can be queued, as the kernel's lock ensures.
    let uid = id.uid;
    id.uid = param.map_or(uid, |_| request.uid);
    let accepted = accept_by(kernel, (key, transport), param);
    if accepted.is_err() {
        kernel.find_attached(request.id)?.uid = uid;
        let reason = RejectReason::CONSUMER_DEFINED;
        // It may be too late for that as well.
        let _ = reject_by(kernel, (key, transport), reason, &[]);
    }
    accepted
}

fn accept_by(
    kernel: &mut Kernel<'_>,
    (key, transport): (IdKey, Transport),
    param: Option<&ConnParam>,
) -> Outcome {
    let state = &mut *kernel.state;
    let is_datagram = state.id(key).is_some_and(|id| id.is_datagram());
    match (transport, param) {
        (Transport::IWarp, None) => Err(Errno::EINVAL),
        (Transport::IWarp, Some(param)) => iwarp::accept(state, key, param),
        (_, param) if is_datagram => cm::accept_service(state, key, param),
        (_, Some(param)) => cm::accept(state, key, param),
        (_, None) => cm::confirm(state, key),
    }
}

/// `ucma_reject`.
pub(super) fn reject(kernel: &mut Kernel<'_>, request: &Reject) -> Outcome {
    let reason = match request.reason {
        reason if reason == RejectReason::new(0) => RejectReason::CONSUMER_DEFINED,
        RejectReason::CONSUMER_DEFINED => RejectReason::CONSUMER_DEFINED,
        RejectReason::VENDOR_OPTION_NOT_SUPPORTED => RejectReason::VENDOR_OPTION_NOT_SUPPORTED,
        _ => return Err(Errno::EINVAL),
    };
    let key = kernel.attached_key(request.id)?;
    let transport = transport(kernel, key)?;
    let data = request
        .private_data
        .get(..request.private_data_len.into())
        .ok_or(Errno::EINVAL)?;
    reject_by(kernel, (key, transport), reason, data)
}

/// `rdma_reject`.
fn reject_by(
    kernel: &mut Kernel<'_>,
    (key, transport): (IdKey, Transport),
    reason: RejectReason,
    data: &[u8],
) -> Outcome {
    let state = &mut *kernel.state;
    let is_datagram = state.id(key).is_some_and(|id| id.is_datagram());
    match transport {
        Transport::IWarp => iwarp::reject(state, key, data),
        _ if is_datagram => cm::reject_service(state, key, data),
        _ => cm::reject(state, key, reason, data),
    }
}

/// `ucma_notify` and `rdma_notify`.
pub(super) fn notify(kernel: &mut Kernel<'_>, request: Notify) -> Outcome {
    kernel.find(request.id)?;
    let key = kernel.attached_key(request.id)?;
    let transport = transport(kernel, key)?;
    let id = kernel.find_attached(request.id)?;
    match (&id.cm, transport) {
        (CmObject::None, _) => Err(Errno::EINVAL),
        (_, Transport::IWarp) => Ok(()),
        _ => cm::establish(kernel.state, key, request.event),
    }
}
