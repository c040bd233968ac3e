//! The file of a channel.

use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use rdmacm_abi::Command;

use super::{Attachment, Call, Frame, KernelFile, UcmaFile};

/// The kernel's file, or a stand-in for it.
///
/// The kernel's is in line, and its hot methods are called directly, so that the compiler
/// makes a few instructions and a `write(2)` of each command. Everything else goes through
/// [`UcmaFile`].
#[derive(Debug)]
pub(crate) enum ChannelFile {
    Kernel(KernelFile),
    Other(Arc<dyn UcmaFile>),
}

impl ChannelFile {
    /// Executes one command.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the layout of a command is a constant where it is sent"
    )]
    pub(crate) fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        match self {
            Self::Kernel(file) => file.write(call),
            Self::Other(file) => file.execute(call),
        }
    }

    /// Executes a request, see [`transact`](super::transact).
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the layout of a command is a constant where it is sent"
    )]
    pub(crate) fn transact<C: Command>(
        &self,
        request: &C,
        response: &mut C::Response,
        attachment: Attachment<'_>,
    ) -> io::Result<()> {
        let mut frame = Frame::new(*request);
        self.execute(&mut Call::new(&mut frame, response, attachment))
    }

    /// Whether a wake-up or a notification may be pending.
    #[inline]
    pub(crate) fn has_signal(&self) -> bool {
        match self {
            Self::Kernel(file) => file.has_signal(),
            Self::Other(file) => file.has_signal(),
        }
    }

    /// Waits like [`UcmaFile::wait`], or for the kernel only; returns `None` if the clock has
    /// reached `until` before.
    #[inline]
    pub(crate) fn wait_before(
        &self,
        until: Option<Instant>,
        only_kernel: bool,
    ) -> io::Result<Option<bool>> {
        match self {
            Self::Kernel(file) => file.wait_before(until, only_kernel),
            Self::Other(file) if until.is_some_and(|until| until <= file.now()) => Ok(None),
            Self::Other(file) => file.wait(until, None).map(Some),
        }
    }

    /// The current time of the clock by which deadlines are measured.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        match self {
            Self::Kernel(_) => Instant::now(),
            Self::Other(file) => file.now(),
        }
    }
}

impl Deref for ChannelFile {
    type Target = dyn UcmaFile;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Kernel(file) => file,
            Self::Other(file) => file.as_ref(),
        }
    }
}
