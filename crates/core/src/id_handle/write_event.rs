//! User events.

use rdmacm_abi::{CommandNumber, EventNumber, NoResponse, WriteCmEvent};

use super::IdHandle;
use crate::error::Result;
use crate::operation::Operation;
use crate::ucma::Attachment;

impl IdHandle {
    /// Appends a [`User`](crate::EventKind::User) event to the events of this id's
    /// channel, with a status and an argument
    /// ([`Event::argument`](crate::Event::argument)). To end a wait on any kernel, use a
    /// [`Waker`](crate::Waker).
    ///
    /// Needs Linux 6.18 or newer.
    /// Source: `rdma_write_cm_event(3)`, the kernel's `ucma_write_cm_event`.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) on older kernels.
    /// [`Error::Command`](crate::Error::Command): `EINVAL` for the id of a connect request that
    /// was not accepted yet.
    #[doc(alias = "rdma_write_cm_event")]
    pub fn write_event(&self, status: i32, argument: u64) -> Result<()> {
        let id = self.enter()?;
        let request = WriteCmEvent::new(id.kernel_id(), EventNumber::USER, status, argument);
        id.if_supported(CommandNumber::WRITE_CM_EVENT, || {
            let operation = Operation::WriteEvent;
            id.send(|| operation, request, &mut NoResponse, Attachment::None)
        })
    }
}
