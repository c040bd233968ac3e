//! Options of an id, which the kernel accepts only before it is bound.

use std::sync::Arc;

use rdmacm_core::{IdHandle, PortSpace, QpType, Result};

use crate::event_loop::{EventLoop, EventQueue, ManagedId};

/// Options of an id that is about to be created and bound.
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
    /// Creates an id with these options, whose events go to the queue.
    pub(crate) fn create(
        self,
        event_loop: &Arc<EventLoop>,
        queue: Arc<EventQueue>,
    ) -> Result<ManagedId> {
        let channel = event_loop.channel();
        let id = channel.create_id_of_type(self.port_space, self.qp_type)?;
        self.apply(&id)?;
        Ok(ManagedId::new(event_loop, id, queue))
    }

    /// Sets the options, before the id is bound or resolves an address: later the kernel
    /// refuses some of them and ignores the others.
    fn apply(self, id: &IdHandle) -> Result<()> {
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

    /// Sets those options of a listener that concern its connections: the kernel gives the id of
    /// a request none (`cma_ib_new_conn_id`).
    pub(crate) fn apply_to_request(self, id: &IdHandle) -> Result<()> {
        match self.ack_timeout {
            Some(exponent) => id.set_ack_timeout(exponent),
            None => Ok(()),
        }
    }
}
