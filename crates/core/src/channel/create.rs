//! Making ids on a channel.

use rdmacm_abi::{Command, CreateId, CreateIdResponse, PortSpace, QpType};
use zerocopy::FromZeros;

use super::EventChannel;
use crate::device::{Attachment, transact};
use crate::error::{Error, Result};
use crate::id::{CmId, IdState};
use crate::operation::Operation;

impl EventChannel {
    /// Makes an id in a port space, of the queue pair type that goes with it:
    /// reliable connected for [`PortSpace::TCP`] and [`PortSpace::IB`],
    /// unreliable datagram for [`PortSpace::UDP`] and [`PortSpace::IPOIB`].
    /// The id belongs to the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`Error::Command`]: `EINVAL` for a port space the kernel does not know.
    #[doc(alias = "rdma_create_id")]
    pub fn create_id(&self, port_space: PortSpace) -> Result<CmId> {
        let qp_type = match port_space {
            PortSpace::UDP | PortSpace::IPOIB => QpType::UD,
            _ => QpType::RC,
        };
        self.create_id_of_type(port_space, qp_type)
    }

    /// Makes an id for queue pairs of a given type. Only [`PortSpace::IB`]
    /// leaves the choice; in the others the kernel goes by the port space.
    ///
    /// # Errors
    /// Those of [`create_id`](Self::create_id).
    pub fn create_id_of_type(&self, port_space: PortSpace, qp_type: QpType) -> Result<CmId> {
        // Registered before the kernel can report about it.
        let state = IdState::unborn(&self.shared, port_space, qp_type);
        let request = CreateId::new(state.token().uid(), port_space, qp_type);
        let mut answer = CreateIdResponse::new_zeroed();
        let device = self.shared.device.as_ref();
        match transact(device, &request, &mut answer, Attachment::None) {
            Ok(()) => Ok(CmId::born(state, answer.id)),
            Err(error) => {
                state.withdraw();
                let operation = Operation::CreateId(port_space);
                Err(Error::command(operation, CreateId::NUMBER, &error))
            }
        }
    }
}
