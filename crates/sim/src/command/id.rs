//! Creating and destroying ids.

use nix::errno::Errno;
use rdmacm_abi::{CreateId, CreateIdResponse, DestroyId, DestroyIdResponse, PortSpace, QpType};
use rdmacm_core::ucma::Call;

use super::{Blocked, BlockedCommand, Kernel, Outcome, respond};
use crate::destroy;
use crate::id::{Id, IdKey, State};
use crate::iwarp;

/// `ucma_create_id`.
pub(super) fn create(kernel: &mut Kernel<'_>, request: &CreateId, call: &mut Call<'_>) -> Outcome {
    let qp_type = qp_type(request)?;
    let minimum = size_of::<CreateIdResponse>();
    if call.response().len() < minimum {
        return Err(Errno::ENOSPC);
    }
    let (index, file) = (kernel.host, kernel.file);
    let psn = kernel.state.random.sequence_number();
    let host = kernel.host()?;
    let serial = host.next_serial();
    let kind = (request.port_space, qp_type);
    let mut id = Id::new(serial, request.uid, file, kind);
    id.psn = psn;
    let id = host.add(index, id)?;
    respond(call, &CreateIdResponse { id: id.number }, minimum)
}

/// `ucma_get_qp_type`: only `RDMA_PS_IB` leaves the choice to the program.
fn qp_type(request: &CreateId) -> Result<QpType, Errno> {
    match request.port_space {
        PortSpace::TCP => Ok(QpType::RC),
        PortSpace::UDP | PortSpace::IPOIB => Ok(QpType::UD),
        PortSpace::IB => Ok(request.qp_type),
        _ => Err(Errno::EINVAL),
    }
}

/// `ucma_destroy_id`.
pub(super) fn destroy(
    kernel: &mut Kernel<'_>,
    request: &DestroyId,
    call: &mut Call<'_>,
) -> Result<Option<Blocked>, Errno> {
    if call.response().len() < size_of::<DestroyIdResponse>() {
        return Err(Errno::ENOSPC);
    }
    let file = kernel.file;
    let id = kernel.host()?.find_any(file, request.id)?;
    id.is_destroying = true;
    let serial = id.serial;
    let key = kernel.key(request.id, serial);
    match resume_destroy(kernel, key, call) {
        Some(outcome) => outcome.map(|()| None),
        None => Ok(Some(Blocked {
            id: key,
            command: BlockedCommand::Destroy,
        })),
    }
}

/// Destroys the id once the peer of an iWARP connection, or the subnet administrator, has answered;
/// `None` before.
pub(super) fn resume_destroy(
    kernel: &mut Kernel<'_>,
    key: IdKey,
    call: &mut Call<'_>,
) -> Option<Outcome> {
    let id = kernel.state.id(key);
    // `cma_cancel_operation` does not cancel that query.
    let is_queried = id.is_some_and(|id| id.state == State::AddrInfoQuery);
    if is_queried || iwarp::is_pending(kernel.state, key) {
        return None;
    }
    let events_reported = destroy::id(kernel.state, key);
    Some(respond(call, &DestroyIdResponse { events_reported }, 0))
}

/// The id is as it was before the command.
pub(super) fn abandon_destroy(kernel: &mut Kernel<'_>, key: IdKey) {
    if let Some(id) = kernel.state.id(key) {
        id.is_destroying = false;
    }
}
