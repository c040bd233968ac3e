//! The open verbs node of a context.

use std::io;
use std::ops::Deref;

use super::{Call, KernelFile, UverbsFile};
use crate::removal::Node;

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

    /// The node; `None` for a simulated one.
    pub(super) fn node(&self) -> Option<Node> {
        match self {
            Self::Kernel(file) => Some(file.verbs_node()),
            Self::Other(file) => file.node().map(Node::with_number),
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
