//! Attributes for queue pairs.

use rdmacm_abi::{InitQpAttr, QpAttr, QpState};
use zerocopy::FromZeros;

use super::IdHandle;
use crate::error::Result;
use crate::operation::Operation;
use crate::ucma::Attachment;

impl IdHandle {
    /// Returns the attributes that move the queue pair of this id to a state, with
    /// [`QpAttr::mask`] naming those to pass on. Its `qp_state` is `state`.
    ///
    /// Before the id has sent or received a connect request, the kernel returns the
    /// attributes of INIT for every state, without remote access rights, which depend on
    /// the request. So move the queue pair to INIT once more before RTR. On iWARP the
    /// mask of RTR is that of INIT, and the mask of RTS is the port only: the kernel
    /// moves the queue pair itself.
    /// Source: `rdma_init_qp_attr(3)`, the kernel's `cm.c`, `iwcm.c`.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command): `EINVAL` for an id without a
    /// device or too early for the state, `ENOENT` on InfiniBand if the port's table lacks the
    /// id's partition key.
    #[doc(alias = "rdma_init_qp_attr")]
    pub fn init_qp_attr(&self, state: QpState) -> Result<QpAttr> {
        let id = self.enter()?;
        let mut attr = QpAttr::new_zeroed();
        let request = InitQpAttr::new(id.kernel_id(), state);
        let operation = Operation::InitQpAttr(state);
        id.send(|| operation, request, &mut attr, Attachment::None)?;
        // The first kernels did not set it.
        attr.qp_state = state;
        Ok(attr)
    }
}
