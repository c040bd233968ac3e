//! Disconnecting.

use nix::errno::Errno;
use rdmacm_abi::Disconnect;

use super::{Blocked, BlockedCommand, Kernel, Outcome};
use crate::id::{CmObject, IdKey};
use crate::{cm, iwarp};

/// `ucma_disconnect` and `rdma_disconnect`.
pub(super) fn disconnect(
    kernel: &mut Kernel<'_>,
    request: Disconnect,
) -> Result<Option<Blocked>, Errno> {
    let key = kernel.attached_key(request.id)?;
    let host = kernel.host()?;
    let id = host.ids.get(&request.id).ok_or(Errno::ENOENT)?;
    match &id.cm {
        CmObject::None => Err(Errno::EINVAL),
        CmObject::Listener => match host.transport(id.attached) {
            Some(rdmacm_core::Transport::IWarp) => Err(Errno::EINVAL),
            _ => Ok(None),
        },
        CmObject::Ib(_) => {
            cm::disconnect(kernel.state, key);
            Ok(None)
        }
        CmObject::Iw(_) => match resume(kernel, key) {
            Some(outcome) => outcome.map(|()| None),
            None => Ok(Some(Blocked {
                id: key,
                command: BlockedCommand::Disconnect,
            })),
        },
    }
}

/// Disconnects once the peer has answered; `None` before.
pub(super) fn resume(kernel: &mut Kernel<'_>, key: IdKey) -> Option<Outcome> {
    if iwarp::is_pending(kernel.state, key) {
        return None;
    }
    Some(iwarp::disconnect(kernel.state, key))
}
