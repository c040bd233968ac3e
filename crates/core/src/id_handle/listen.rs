//! Listening.

use rdmacm_abi::{Listen, NoResponse};

use super::IdHandle;
use crate::error::Result;
use crate::operation::Operation;
use crate::ucma::Attachment;

impl IdHandle {
    /// Listens for connect requests, which arrive as
    /// [`ConnectRequest`](crate::EventKind::ConnectRequest) events.
    ///
    /// `backlog` is the maximum number of this listener's unread requests. On InfiniBand and
    /// RoCE the kernel silently drops further ones, and their senders try again after seconds;
    /// on iWARP it rejects them (`ECONNRESET`). 0 and numbers above `net.rdma_ucm.max_backlog` (by
    /// default 1024) mean that maximum. An unbound id is bound to `0.0.0.0` and a port that the
    /// kernel chooses. A second call fails and changes the backlog nevertheless.
    ///
    /// siw closes the TCP socket it listens on, without an event, if a TCP peer disconnects
    /// before siw has accepted its connection. Destroying the id then makes the kernel use
    /// freed memory, which may crash it.
    /// Source: `rdma_listen(3)`, the kernel's `ucma.c` and `siw_cm.c`.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command): `EINVAL` for an id that
    /// listens already or has begun to resolve an address, `EADDRINUSE` if the port is
    /// in use, on iWARP also by a TCP listener, `EADDRNOTAVAIL` if another id
    /// [shares](Self::set_reuse_addr) the port and one of the two has a wildcard address, if no
    /// port is left for an unbound id, and on iWARP if this machine no longer has the address.
    #[doc(alias = "rdma_listen")]
    pub fn listen(&self, backlog: u32) -> Result<()> {
        let id = self.enter()?;
        // The kernel takes numbers out of its range as the maximum.
        let request = Listen::new(id.kernel_id(), backlog);
        let operation = Operation::Listen;
        // Before a request can arrive.
        id.set_listening();
        id.invalidating(|| id.send(|| operation, request, &mut NoResponse, Attachment::None))
    }
}
