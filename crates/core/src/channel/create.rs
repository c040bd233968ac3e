//! Creating ids on a channel.

use rdmacm_abi::{Command, CreateId, CreateIdResponse, PortSpace, QpType};
use zerocopy::FromZeros;

use super::EventChannel;
use crate::error::{Error, Result};
use crate::id::CmId;
use crate::id_state::IdState;
use crate::operation::Operation;
use crate::ucma::Attachment;

impl EventChannel {
    /// Creates an id in a port space, for the queue pair type of that port space:
    /// reliable connected for [`PortSpace::TCP`] and [`PortSpace::IB`],
    /// unreliable datagram for [`PortSpace::UDP`] and [`PortSpace::IPOIB`].
    /// The id belongs to the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`Error::Command`]: `EINVAL` for a port space the kernel does not know.
    #[doc(alias = "rdma_create_id")]
    pub fn create_id(&self, port_space: PortSpace) -> Result<CmId> {
        self.create_id_of_type(port_space, default_qp_type(port_space))
    }

    /// Creates an id for queue pairs of a given type. Only [`PortSpace::IB`] leaves
    /// the choice; in the other port spaces the kernel ignores the type it is given.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a type that the port space does not have; those of [`create_id`](Self::create_id).
    #[doc(alias = "rdma_create_id")]
    pub fn create_id_of_type(&self, port_space: PortSpace, qp_type: QpType) -> Result<CmId> {
        let has_one_type = matches!(
            port_space,
            PortSpace::TCP | PortSpace::UDP | PortSpace::IPOIB
        );
        if has_one_type && qp_type != default_qp_type(port_space) {
            let operation = Operation::CreateId(port_space);
            let reason = "the port space has queue pairs of another type";
            return Err(Error::invalid(operation, reason));
        }
        // Registered before the kernel can report an event.
        let state = IdState::register_new(&self.state, port_space, qp_type, None);
        let request = CreateId::new(state.token().uid(), port_space, qp_type);
        let mut answer = CreateIdResponse::new_zeroed();
        let ucma = &self.state.ucma;
        match ucma.transact(&request, &mut answer, Attachment::None) {
            Ok(()) => Ok(CmId::new(state, answer.id)),
            Err(error) => {
                state.abandon();
                let operation = Operation::CreateId(port_space);
                Err(Error::command(operation, CreateId::NUMBER, &error))
            }
        }
    }
}

/// The type of queue pair that a port space is for by default. Source: `ucma_get_qp_type` of the kernel's `ucma.c`.
#[must_use]
pub fn default_qp_type(port_space: PortSpace) -> QpType {
    match port_space {
        PortSpace::UDP | PortSpace::IPOIB => QpType::UD,
        _ => QpType::RC,
    }
}
