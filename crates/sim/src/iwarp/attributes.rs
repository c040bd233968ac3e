//! The attributes of a connection's queue pair.

use nix::errno::Errno;
use rdmacm_abi::{AccessFlags, QpAttr, QpAttrMask, QpState};
use zerocopy::FromZeros;

use super::IwState;
use crate::id::{Attached, CmObject, Id};

/// `rdma_init_qp_attr` on iWARP, whose queue pairs the kernel moves itself.
pub(crate) fn qp_attr(id: &Id, attached: Attached, qp_state: QpState) -> Result<QpAttr, Errno> {
    let mut attr = QpAttr::new_zeroed();
    attr.qp_state = qp_state;
    attr.port_number = attached.port;
    attr.mask = match &id.cm {
        CmObject::Iw(connection) => {
            if connection.state == IwState::Closing {
                return Err(Errno::EINVAL);
            }
            match qp_state {
                QpState::INIT | QpState::RTR => {
                    attr.access_flags = AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ;
                    QpAttrMask::STATE | QpAttrMask::ACCESS_FLAGS
                }
                QpState::RTS => QpAttrMask::empty(),
                _ => return Err(Errno::EINVAL),
            }
        }
        CmObject::None => QpAttrMask::STATE | QpAttrMask::ACCESS_FLAGS,
        CmObject::Listener | CmObject::Ib(_) => return Err(Errno::EINVAL),
    };
    attr.mask |= QpAttrMask::PORT;
    Ok(attr)
}
