//! Waiting for peers.

use rdmacm_abi::{Listen, NoResponse};

use super::IdHandle;
use crate::error::Result;
use crate::operation::Operation;
use crate::ucma::Attachment;

impl IdHandle {
    /// Listens for connect requests, which arrive as
    /// [`ConnectRequest`](crate::EventKind::ConnectRequest) events.
    ///
    /// `backlog` is how many requests may wait to be read from the channel; the
    /// kernel silently drops those beyond it, and their senders try again after
    /// seconds. 0 and anything above `net.rdma_ucm.max_backlog` (1024 unless
    /// changed) mean that maximum. An id that is not bound is bound to
    /// `0.0.0.0` and a port of the kernel's choice. A second call is refused and
    /// changes the backlog all the same.
    ///
    /// siw closes the TCP socket it listens on, without an event, if a TCP peer disconnects
    /// before siw has accepted its connection. Destroying the id makes the kernel use freed
    /// memory then, which may crash it.
    /// Source: `rdma_listen(3)`, the kernel's `ucma.c` and `siw_cm.c`.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command): `EINVAL` for an id that
    /// listens already or has begun to resolve an address, `EADDRINUSE` where
    /// the port is taken; on iWARP also by a TCP listener.
    #[doc(alias = "rdma_listen")]
    pub fn listen(&self, backlog: u32) -> Result<()> {
        let id = self.enter()?;
        // The kernel reads an int, and anything out of its range as the maximum.
        let request = Listen::new(id.kernel_id(), backlog);
        let operation = Operation::Listen;
        // Before a request can come.
        id.set_listening();
        id.invalidating(|| id.send(operation, &request, &mut NoResponse, Attachment::None))
    }
}
