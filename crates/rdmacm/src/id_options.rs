//! Options of an id, set at the only moment the kernel takes them.

use rdmacm_core::{IdHandle, Result};

/// Options of an id that is about to be bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IdOptions {
    pub(crate) tos: Option<u8>,
    pub(crate) ack_timeout: Option<u8>,
    pub(crate) reuse_addr: bool,
    pub(crate) v6_only: bool,
}

impl IdOptions {
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
