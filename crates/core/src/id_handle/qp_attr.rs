//! What the queue pair of an id needs next.

use rdmacm_abi::{InitQpAttr, QpAttr, QpState};
use zerocopy::FromZeros;

use super::IdHandle;
use crate::error::Result;
use crate::operation::Operation;
use crate::ucma::Attachment;

impl IdHandle {
    /// The attributes that move the queue pair of this id to a state, and in
    /// [`QpAttr::mask`] which of them to pass on. Its `qp_state` is `state`.
    ///
    /// Before the id has sent or received a connect request the kernel answers
    /// for INIT whatever is asked, without remote access, which comes with the
    /// request: so a queue pair is moved to INIT once more before RTR. On iWARP
    /// the mask of RTR is that of INIT and the mask of RTS is the port alone:
    /// the kernel moves the queue pair itself.
    /// Source: `rdma_init_qp_attr(3)`, the kernel's `cm.c`, `iwcm.c`.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command): `EINVAL` for an id without a
    /// device or too early for the state.
    #[doc(alias = "rdma_init_qp_attr")]
    pub fn init_qp_attr(&self, state: QpState) -> Result<QpAttr> {
        let id = self.enter()?;
        let mut attr = QpAttr::new_zeroed();
        let request = InitQpAttr::new(id.kernel_id(), state);
        let operation = Operation::InitQpAttr(state);
        id.send(operation, &request, &mut attr, Attachment::None)?;
        // The kernel leaves the choice of the state to the one who asked.
        attr.qp_state = state;
        Ok(attr)
    }
}
