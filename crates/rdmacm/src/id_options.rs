//! Options of an id, set at the only moment the kernel takes them.

use rdmacm_core::{CmId, EventChannel, IdHandle, PortSpace, QpType, Result};

/// Options of an id that is about to be made and bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdOptions {
    pub(crate) port_space: PortSpace,
    pub(crate) qp_type: QpType,
    pub(crate) tos: Option<u8>,
    pub(crate) ack_timeout: Option<u8>,
    pub(crate) reuse_addr: bool,
    pub(crate) v6_only: bool,
}

impl Default for IdOptions {
    fn default() -> Self {
        Self {
            port_space: PortSpace::TCP,
            qp_type: QpType::RC,
            tos: None,
            ack_timeout: None,
            reuse_addr: false,
            v6_only: false,
        }
    }
}

impl IdOptions {
    /// An id without the other options yet.
    pub(crate) fn create(self, channel: &EventChannel) -> Result<CmId> {
        channel.create_id_of_type(self.port_space, self.qp_type)
    }

    /// Before the id is bound or resolves: later the kernel refuses some of them
    /// and overlooks the others.
    pub(crate) fn apply(self, id: &IdHandle) -> Result<()> {
        if let Some(tos) = self.tos {
            id.set_tos(tos)?;
        }
        if let Some(exponent) = self.ack_timeout {
            id.set_ack_timeout(exponent)?;
        }
        if self.reuse_addr {
            id.set_reuse_addr(true)?;
        }
        Ok(())
    }
}
