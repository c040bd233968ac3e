//! What the connection manager needs of a queue pair, whoever made it.

use std::fmt;
use std::io;

use rdmacm_abi::{Ece, QpAttr, QpAttrMask};

use crate::rdma_devices::Transport;

mod pointed;

/// A queue pair, as far as connecting it goes: made by any verbs library, on
/// the device the id is attached to.
///
/// Given one, connecting and accepting do what librdmacm does with the queue
/// pair of an id: move it to INIT, RTR and RTS when the protocol is there, and
/// to the error state when the connection ends. What the attributes are is the
/// kernel's to say; an implementer passes them on with their mask, unchanged,
/// to whatever its library calls `ibv_modify_qp`.
///
/// On iWARP the kernel moves the queue pair itself while it connects, and
/// takes it for good: one that was rejected or disconnected connects no more.
#[doc(alias = "ibv_qp")]
pub trait QueuePair: fmt::Debug + Send + Sync {
    /// Its number, 24 bits. rxe believes any; siw looks it up on its device.
    #[doc(alias = "qp_num")]
    fn number(&self) -> u32;

    /// The protocol of its device.
    fn transport(&self) -> Transport;

    /// How many reads and atomics its device can have under way.
    fn depth_limits(&self) -> DepthLimits;

    /// Moves it: `attr` holds the values, `mask` says which of them count.
    ///
    /// # Errors
    /// Those of the library's modify. The operation under way returns it unchanged, see
    /// [`QueuePairError`](crate::QueuePairError).
    #[doc(alias = "ibv_modify_qp")]
    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()>;

    /// Whether it receives from a shared receive queue, which the peer is told.
    fn has_srq(&self) -> bool {
        false
    }

    /// The enhanced connection establishment options it could use; `None`
    /// where its device has none, as rxe and siw.
    ///
    /// # Errors
    /// Those of the library's query.
    #[doc(alias = "ibv_query_ece")]
    fn ece(&self) -> io::Result<Option<Ece>> {
        Ok(None)
    }

    /// Chooses among them, by what the peer said. Asked only of a queue pair
    /// that has some.
    ///
    /// # Errors
    /// Those of the library's set.
    #[doc(alias = "ibv_set_ece")]
    fn set_ece(&self, ece: Ece) -> io::Result<()> {
        let _ = ece;
        Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }
}

/// The most reads and atomics a device can have under way on one queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthLimits {
    /// As the one that answers.
    #[doc(alias = "max_qp_rd_atom")]
    pub responder_resources: u8,
    /// As the one that asks.
    #[doc(alias = "max_qp_init_rd_atom")]
    pub initiator_depth: u8,
}
