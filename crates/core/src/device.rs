//! The one point where commands leave this crate: the kernel's device, or
//! something that stands in for it.
//!
//! # Safety
//! Sending a command means writing an address of this process into it and
//! letting the kernel write there. Only [`KernelDevice`] does that, and only
//! with a [`Call`], which can be made only from a [`Command`] (whose implementer
//! has proved where its pointers lie) and buffers of the sizes it names.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rdmacm_abi::{Command, CommandNumber, Header, Pointer};
use zerocopy::IntoBytes;

use crate::devices::{DeviceId, InfinibandPort, RdmaDevice};
use crate::error::Result;

mod frame;
mod kernel;
mod node;
mod readiness;
#[cfg(test)]
pub(crate) mod testing;

pub use kernel::KernelDevice;

/// What an [`EventChannel`](crate::EventChannel) talks to: the kernel's
/// `/dev/infiniband/rdma_cm`, or a stand-in with a clock of its own.
pub trait Device: fmt::Debug + Send + Sync {
    /// Carries out one command; the answer is in the call's response when this
    /// returns. May sleep where the kernel's command does; `GET_EVENT` does not.
    ///
    /// # Errors
    /// The kernel's error number, or [`io::ErrorKind::WriteZero`] when only a
    /// part of the command was taken.
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()>;

    /// Waits until an event may be there, a wake-up is pending or `until` has
    /// come; may return early. `true` when it took a wake-up.
    ///
    /// # Errors
    /// The error number of `poll(2)`; never `EINTR`.
    fn wait(&self, until: Option<Instant>) -> io::Result<bool>;

    /// Makes the readiness descriptor readable and ends one [`wait`](Self::wait).
    fn wake(&self);

    /// Takes a pending wake-up; `true` for the one caller that got it. Asked
    /// before every look for an event, so it should cost next to nothing.
    fn take_wake(&self) -> bool;

    /// Makes whoever waits look for events that came without the kernel's saying
    /// so, as those of an id that moved here; not a wake-up.
    fn look_again(&self);

    /// Asked before a look for an event: whether one was called for. The answer
    /// is `true` once; who then finds an event calls for another look.
    fn take_look(&self) -> bool;

    /// The time by which deadlines are measured.
    fn now(&self) -> Instant;

    /// A descriptor that is readable while an event or a wake-up is pending.
    fn readiness(&self) -> BorrowedFd<'_>;

    /// The descriptor of the kernel's device, which `MIGRATE_ID` names to move
    /// an id away from it; `None` for a stand-in.
    fn ucma_fd(&self) -> Option<BorrowedFd<'_>>;

    /// The RDMA device that answers mean by this id, see [`DeviceId::look_up`]:
    /// this machine's, unless the stand-in has its own.
    fn look_up(&self, id: DeviceId) -> Option<RdmaDevice> {
        id.look_up()
    }

    /// The active ports of InfiniBand, see [`InfinibandPort::list`]: this
    /// machine's, unless the stand-in has its own.
    ///
    /// # Errors
    /// Those of [`InfinibandPort::list`].
    fn infiniband_ports(&self) -> Result<Vec<InfinibandPort>> {
        InfinibandPort::list()
    }
}

/// One command on its way to a [`Device`].
#[derive(Debug)]
pub struct Call<'a> {
    header: Header,
    request: &'a [u8],
    pointer: Pointer,
    fd: Option<usize>,
    response: &'a mut [u8],
    attachment: Attachment<'a>,
}

/// What a command refers to besides its request and response.
#[derive(Clone, Copy, Debug)]
pub enum Attachment<'a> {
    /// Nothing.
    None,
    /// The value of an option.
    OptionValue(&'a [u8]),
    /// The channel's device an id moves away from.
    OldChannel(&'a dyn Device),
}

impl<'a> Call<'a> {
    /// A command with its request and the place for its response.
    pub fn new<C: Command>(
        request: &'a C,
        response: &'a mut C::Response,
        attachment: Attachment<'a>,
    ) -> Self {
        Self {
            header: Header::of::<C>(),
            request: request.as_bytes(),
            pointer: C::POINTER,
            fd: C::FD,
            response: response.as_mut_bytes(),
            attachment,
        }
    }

    /// The command's number.
    #[must_use]
    pub fn number(&self) -> CommandNumber {
        self.header.cmd
    }

    /// The request behind the header, with zeros where addresses go.
    #[must_use]
    pub fn request(&self) -> &[u8] {
        self.request
    }

    /// The place for the response.
    pub fn response(&mut self) -> &mut [u8] {
        self.response
    }

    /// What the command refers to besides.
    #[must_use]
    pub fn attachment(&self) -> Attachment<'a> {
        self.attachment
    }
}

/// Sends one command: the way down that every command of this crate takes.
/// Nothing is allocated on it.
///
/// # Errors
/// Those of [`Device::execute`].
pub fn transact<C: Command>(
    device: &dyn Device,
    request: &C,
    response: &mut C::Response,
    attachment: Attachment<'_>,
) -> io::Result<()> {
    device.execute(&mut Call::new(request, response, attachment))
}
