//! The attributes that a queue pair needs next.

use nix::errno::Errno;
use rdmacm_abi::{InitQpAttr, QpAttr, QpState};
use rdmacm_core::Transport;
use rdmacm_core::ucma::Call;

use super::{Kernel, Outcome, respond};
use crate::{cm, iwarp};

/// `ucma_init_qp_attr` and `rdma_init_qp_attr`.
pub(super) fn init(kernel: &mut Kernel<'_>, request: &InitQpAttr, call: &mut Call<'_>) -> Outcome {
    let minimum = size_of::<QpAttr>();
    if call.response().len() < minimum {
        return Err(Errno::ENOSPC);
    }
    if request.qp_state > QpState::ERR {
        return Err(Errno::EINVAL);
    }
    let attached = kernel.find_attached(request.id)?.attached;
    let attached = attached.ok_or(Errno::EINVAL)?;
    let host = kernel.host()?;
    let id = host.ids.get(&request.id).ok_or(Errno::ENOENT)?;
    let attr = match host.transport(Some(attached)) {
        Some(Transport::IWarp) => iwarp::qp_attr(id, attached, request.qp_state)?,
        _ => cm::qp_attr(host, request.id, attached, request.qp_state)?,
    };
    respond(call, &attr, minimum)
}
