//! An open verbs node.

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rdmacm_abi::uverbs::{PostSend, PostSendResponse};
use zerocopy::FromZeros;

use super::Call;
use crate::gid_table::GidEntry;

/// An open verbs node that is a context: the kernel's, or a simulated one.
///
/// Closing it is dropping it.
pub trait UverbsFile: fmt::Debug + Send + Sync {
    /// Executes one command. The response is in the call when this returns.
    ///
    /// # Errors
    /// The kernel's error number; `EIO` if the device is gone.
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()>;

    /// Makes the device process the send queue of this queue pair, by the kernel's handle. The
    /// same as [`execute`](Self::execute) with [`PostSend::doorbell`], and called for each
    /// request.
    ///
    /// # Errors
    /// Those of [`execute`](Self::execute).
    fn ring_doorbell(&self, queue_pair: u32) -> io::Result<()> {
        let mut response = PostSendResponse::new_zeroed();
        self.execute(&mut Call::new(
            &PostSend::doorbell(queue_pair),
            &mut response,
        ))
    }

    /// Transfers the descriptor of this number, which the last response has named: of a
    /// completion channel or of asynchronous events. `None` if it is invalid.
    fn take_fd(&self, number: u32) -> Option<OwnedFd>;

    /// The descriptor to map queues from, at the offsets that responses name. The memory must
    /// not shrink.
    fn memory(&self) -> BorrowedFd<'_>;

    /// The GID at `index` of the table of `port`, from 1; `None` for an empty entry.
    ///
    /// # Errors
    /// There is no such port or index.
    fn gid(&self, port: u8, index: u32) -> io::Result<Option<GidEntry>>;

    /// The device number of the node, by which the kernel announces its removal, as `st_rdev`
    /// of `stat(2)`; `None` for a simulated one, whose removal commands report with `EIO`.
    fn node(&self) -> Option<u64>;
}
