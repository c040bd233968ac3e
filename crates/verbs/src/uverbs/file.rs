//! An open verbs node.

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::Call;
use crate::gid_table::GidEntry;

/// An open verbs node that is a context: the kernel's, or a simulated one.
///
/// Closing it is dropping it.
pub trait UverbsFile: fmt::Debug + Send + Sync {
    /// Carries out one command. The response is in the call when this returns.
    ///
    /// # Errors
    /// The kernel's error number; `EIO` if the device is gone.
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()>;

    /// Hands over the descriptor of this number, which the response to the last command has
    /// named: of a completion channel, or of asynchronous events. `None` if there is none.
    fn take_fd(&self, number: u32) -> Option<OwnedFd>;

    /// The descriptor whose memory is mapped, at the offsets that responses name. The memory
    /// must stay as long as it is.
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
