//! Queue pairs of any verbs library.

use std::fmt;
use std::io;

use rdmacm_abi::{Ece, QpAttr, QpAttrMask};

use crate::rdma_devices::Transport;

mod pointed;

/// The operations of a queue pair that connecting it needs. Implement it for the queue
/// pairs of a verbs library; they must be on the device that the id is bound to.
///
/// Connecting and accepting then do what librdmacm does with the queue pair of an id: they
/// move it to INIT, RTR and RTS during the handshake, and to ERR to disconnect. The kernel
/// chooses the attributes; an implementation passes them with their mask, unchanged, to the
/// library's `ibv_modify_qp`.
///
/// The crate `rdmacm` also calls `modify` while a caller reads events for all others: it must not wait
/// for anything that needs these events.
///
/// On iWARP the kernel moves the queue pair itself. A queue pair that was rejected or
/// disconnected cannot connect again.
#[doc(alias = "ibv_qp")]
pub trait QueuePair: fmt::Debug + Send + Sync {
    /// The number of the queue pair, 24 bits. rxe does not check it; siw looks it up on
    /// the device.
    #[doc(alias = "qp_num")]
    fn number(&self) -> u32;

    /// The transport of the device.
    fn transport(&self) -> Transport;

    /// How many reads and atomics a queue pair of the device can have outstanding.
    fn depth_limits(&self) -> DepthLimits;

    /// Modifies the attributes in `mask` to the values in `attr`.
    ///
    /// # Errors
    /// Those of the library's modify. The calling operation returns it unchanged, see
    /// [`QueuePairError`](crate::QueuePairError).
    #[doc(alias = "ibv_modify_qp")]
    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()>;

    /// Whether it receives from a shared receive queue. Information for the peer.
    fn has_srq(&self) -> bool {
        false
    }

    /// The options of enhanced connection establishment that it supports; `None` if the
    /// device has none, as rxe and siw.
    ///
    /// # Errors
    /// Those of the library's query.
    #[doc(alias = "ibv_query_ece")]
    fn ece(&self) -> io::Result<Option<Ece>> {
        Ok(None)
    }

    /// Sets the options to use. Called only if [`ece`](Self::ece) returned some.
    ///
    /// # Errors
    /// Those of the library's set.
    #[doc(alias = "ibv_set_ece")]
    fn set_ece(&self, ece: Ece) -> io::Result<()> {
        let _ = ece;
        Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }
}

/// The largest number of reads and atomics that one queue pair of a device can have
/// outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthLimits {
    /// As responder.
    #[doc(alias = "max_qp_rd_atom")]
    pub responder_resources: u8,
    /// As initiator.
    #[doc(alias = "max_qp_init_rd_atom")]
    pub initiator_depth: u8,
}
