//! The ucma file, the one point where commands leave this crate: an open
//! `/dev/infiniband/rdma_cm`, or a stand-in for it.
//!
//! # Safety
//! A command contains an address of this process, through which the kernel
//! writes. Only [`KernelFile`] writes addresses, and only into a [`Call`]. A
//! `Call` is made only from a [`Command`], whose implementer proves where its
//! pointers lie, and from buffers of the sizes that the command names.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rdmacm_abi::{Command, CommandNumber, Header, Pointer};
use zerocopy::IntoBytes;

mod channel_file;
mod frame;
mod kernel;
mod node;
mod readiness;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use channel_file::ChannelFile;
pub(crate) use frame::Frame;
use frame::Layout;
pub use kernel::KernelFile;
pub(crate) use node::UDEV_TIME;
pub(crate) use readiness::Unopened;

/// The file behind an [`EventChannel`](crate::EventChannel): the kernel's
/// `/dev/infiniband/rdma_cm`, or a stand-in with its own clock.
///
/// [`KernelFile`] is the implementation that a channel opens by default. A test
/// passes another one to [`ChannelOptions::ucma`](crate::ChannelOptions::ucma).
pub trait UcmaFile: fmt::Debug + Send + Sync {
    /// Executes one command and fills in the call's response. Blocks where the
    /// kernel's command blocks; `GET_EVENT` never blocks.
    ///
    /// # Errors
    /// The kernel's error number, or [`io::ErrorKind::WriteZero`] if the file accepted only a part
    /// of the command. `GET_EVENT` may also fail with [`io::ErrorKind::Interrupted`], after which
    /// the caller repeats it, and with an error without a number if a descriptor to wait on could
    /// not be opened before: a wrapper returns both as they are.
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()>;

    /// Waits until an event or a notification may be available, a wake-up is
    /// pending, `other` is readable, or the clock reads `until`. May return
    /// early. Returns `true` if it took a wake-up.
    ///
    /// The result does not say which of these ended the wait: the caller checks
    /// for events and reads from `other` without blocking. Error conditions and
    /// a hang-up on `other` end the wait as well.
    ///
    /// # Errors
    /// The error number of `poll(2)`; never `EINTR`.
    fn wait(&self, until: Option<Instant>, other: Option<BorrowedFd<'_>>) -> io::Result<bool>;

    /// Makes the readiness descriptor readable and ends one [`wait`](Self::wait).
    fn wake(&self);

    /// Whether a wake-up or a notification may be pending. Called before every read
    /// of an event, so it should be cheap; if it is `false`, nothing is taken.
    fn has_signal(&self) -> bool {
        true
    }

    /// Takes a pending wake-up; returns `true` to exactly one caller.
    fn take_wake(&self) -> bool;

    /// Makes waiting callers check for events that the kernel does not announce,
    /// such as those of an id that migrated to this channel. Not a wake-up.
    fn notify(&self);

    /// Takes a pending notification; returns `true` once for each. A caller that
    /// then finds an event calls [`notify`](Self::notify) again, because there
    /// may be more.
    fn take_notification(&self) -> bool;

    /// The current time of the clock by which deadlines are measured.
    fn now(&self) -> Instant;

    /// The time at which a stand-in with its own clock has its next work to do,
    /// such as an event to deliver; `None` if it has none. The kernel's file
    /// returns `None`.
    ///
    /// A runtime sleeps by the machine's clock. Over a simulated clock it calls
    /// [`advance_to`](Self::advance_to) instead, with this time or that of its
    /// own first timer, whichever is earlier.
    fn next_due(&self) -> Option<Instant> {
        None
    }

    /// Advances a simulated clock to `time` and does what is due by then. Has no
    /// effect on the kernel's file, or if `time` has passed.
    fn advance_to(&self, time: Instant) {
        let _ = time;
    }

    /// Opens the descriptor of [`readiness`](Self::readiness), if that is still to be
    /// done. By default there is nothing to do.
    ///
    /// # Errors
    /// The error number of opening it.
    fn open_readiness(&self) -> io::Result<()> {
        Ok(())
    }

    /// A descriptor that is readable while an event or a wake-up is pending, the same at
    /// each call. Without [`open_readiness`](Self::open_readiness), the next event read
    /// fails if it could not be opened.
    fn readiness(&self) -> BorrowedFd<'_>;

    /// The descriptor of the kernel's file, which `MIGRATE_ID` names as the file
    /// that an id leaves; `None` for a stand-in.
    fn ucma_fd(&self) -> Option<BorrowedFd<'_>>;
}

/// A number that the kernel gives to no id and no membership, so that a command about
/// it has no effect.
pub(crate) const NO_ID: u32 = u32::MAX;

/// One command for a [`UcmaFile`].
#[derive(Debug)]
pub struct Call<'a> {
    description: &'static Description,
    /// Header and request. Only [`KernelFile`] writes addresses into it, over what was
    /// there.
    frame: &'a mut [u8],
    response: &'a mut [u8],
    attachment: Attachment<'a>,
}

/// What calls of one command have in common.
#[derive(Debug)]
struct Description {
    number: CommandNumber,
    layout: Layout,
    pointer: Pointer,
    fd: Option<usize>,
}

impl Description {
    const fn of<C: Command>() -> &'static Self {
        const {
            &Self {
                number: C::NUMBER,
                layout: Layout::of::<C>(),
                pointer: C::POINTER,
                fd: C::FD,
            }
        }
    }
}

/// What a command refers to besides its request and response.
#[derive(Clone, Copy, Debug)]
pub enum Attachment<'a> {
    /// Nothing.
    None,
    /// The value of an option.
    OptionValue(&'a [u8]),
    /// The file that a migrating id leaves.
    OldChannel(&'a dyn UcmaFile),
}

impl<'a> Call<'a> {
    /// A command with the buffer for its response.
    #[inline]
    pub(crate) fn new<C: Command>(
        frame: &'a mut Frame<C>,
        response: &'a mut C::Response,
        attachment: Attachment<'a>,
    ) -> Self {
        Self {
            description: Description::of::<C>(),
            frame: frame.as_mut_bytes(),
            response: response.as_mut_bytes(),
            attachment,
        }
    }

    /// The command's number.
    #[must_use]
    pub fn number(&self) -> CommandNumber {
        self.description.number
    }

    /// The request after the header, with zeros in place of addresses.
    #[must_use]
    pub fn request(&self) -> &[u8] {
        self.frame.get(size_of::<Header>()..).unwrap_or_default()
    }

    /// The buffer for the response.
    pub fn response(&mut self) -> &mut [u8] {
        self.response
    }

    /// What the command refers to besides its request and response.
    #[must_use]
    pub fn attachment(&self) -> Attachment<'a> {
        self.attachment
    }
}

/// Executes one command. Every command of this crate passes through this
/// function; it allocates nothing.
///
/// # Errors
/// Those of [`UcmaFile::execute`].
#[inline]
pub fn transact<C: Command>(
    ucma: &dyn UcmaFile,
    request: &C,
    response: &mut C::Response,
    attachment: Attachment<'_>,
) -> io::Result<()> {
    let mut frame = Frame::new(*request);
    ucma.execute(&mut Call::new(&mut frame, response, attachment))
}
