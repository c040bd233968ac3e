//! An open verbs node.
//!
//! # Safety
//! One of the modules with `unsafe`: it declares the trait [`UverbsFile`], whose implementer is
//! trusted with memory. Nothing else here is unsafe.
#![expect(unsafe_code, reason = "declares what implementers guarantee")]

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
///
/// # Safety
/// Whoever opens a context on it maps memory where responses say, accesses it without a check,
/// and frees memory once responses and queues say that the device is done with it. An
/// implementer guarantees:
/// - It is a device of one driver, with one version of its structs. Whoever can reach it opens it
///   ([`Context::with_file`](crate::Context::with_file)) with no others.
/// - A queue that a response describes is within [`memory`](Self::memory), which does not shrink,
///   and no byte of it is in any other queue, also after it was destroyed.
/// - The device follows the driver's protocol: it accesses a slot of a queue only while the slot
///   is its own, and reports a request as complete after the last access to the request's memory.
/// - It accesses other memory of this process only while that is registered, within its bounds,
///   and as its keys and posted requests allow. It accesses none for an object after a command
///   that destroys the object has succeeded, or has failed with `EIO`. `EIO` of other commands says
///   nothing about memory.
/// - No method panics, nor does dropping it.
pub unsafe trait UverbsFile: fmt::Debug + Send + Sync {
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

    /// The descriptor to map queues from, at the offsets that responses name.
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

/// Safe code cannot implement it.
///
/// ```compile_fail,E0200
/// use std::io;
/// use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
/// use rdmacm_verbs::{Call, GidEntry, UverbsFile};
///
/// #[derive(Debug)]
/// struct Safe(OwnedFd);
///
/// impl UverbsFile for Safe {
///     fn execute(&self, _: &mut Call<'_>) -> io::Result<()> {
///         Ok(())
///     }
///     fn take_fd(&self, _: u32) -> Option<OwnedFd> {
///         None
///     }
///     fn memory(&self) -> BorrowedFd<'_> {
///         self.0.as_fd()
///     }
///     fn gid(&self, _: u8, _: u32) -> io::Result<Option<GidEntry>> {
///         Ok(None)
///     }
///     fn node(&self) -> Option<u64> {
///         None
///     }
/// }
/// ```
#[cfg(doctest)]
struct IsUnsafe;
