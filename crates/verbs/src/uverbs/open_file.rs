//! The open verbs node of a context.

use std::io;
use std::ops::Deref;

use super::{Call, KernelFile, UverbsFile};
use crate::removal::DeviceNode;

/// The open verbs node of a context.
#[derive(Debug)]
// Its kind is read for each doorbell: a byte, not what some field cannot be.
#[repr(u8)]
pub(crate) enum OpenFile {
    /// The kernel's. Commands are known calls, which are inlined.
    Kernel(KernelFile),
    /// Of the caller, such as a simulated one.
    Other(Box<dyn UverbsFile>),
}

impl OpenFile {
    /// Executes one command.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the sizes of a command are constants where it is sent"
    )]
    pub(super) fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        match self {
            Self::Kernel(file) => file.execute(call),
            Self::Other(file) => file.execute(call),
        }
    }

    /// Whether an object no longer exists if the command that destroys it fails so: on a device
    /// that is gone, if its implementer [guarantees](UverbsFile) that. The kernel's commands
    /// succeed then.
    #[cold]
    pub(super) fn is_destroyed_by(&self, error: &io::Error) -> bool {
        match self {
            Self::Kernel(_) => false,
            Self::Other(_) => error.raw_os_error() == Some(libc::EIO),
        }
    }

    /// The node; `None` for a simulated one.
    pub(super) fn node(&self) -> Option<DeviceNode> {
        match self {
            Self::Kernel(file) => Some(file.verbs_node()),
            Self::Other(file) => file.node().map(DeviceNode::with_number),
        }
    }

    /// Makes the device process the send queue of this queue pair.
    #[inline]
    pub(super) fn ring_doorbell(&self, queue_pair: u32) -> io::Result<()> {
        match self {
            Self::Kernel(file) => file.ring_doorbell(queue_pair),
            Self::Other(file) => file.ring_doorbell(queue_pair),
        }
    }
}

impl Deref for OpenFile {
    type Target = dyn UverbsFile;

    fn deref(&self) -> &(dyn UverbsFile + 'static) {
        match self {
            Self::Kernel(file) => file,
            Self::Other(file) => &**file,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn no_error_of_the_kernel_shows_that_an_object_is_destroyed() {
        let null = File::open("/dev/null").unwrap();
        let file = OpenFile::Kernel(KernelFile::ordinary(null));
        for errno in [libc::EIO, libc::EACCES] {
            let error = io::Error::from_raw_os_error(errno);
            assert!(!file.is_destroyed_by(&error), "{error}");
        }
    }
}
