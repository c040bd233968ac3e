//! The channel through which ids report.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use rdmacm_abi::{DestroyId, DestroyIdResponse};
use zerocopy::FromZeros;

use crate::deadline::Deadline;
use crate::device::{Attachment, Device, transact};
use crate::devices::{DeviceId, InfinibandPort, RdmaDevice};
use crate::dialect::{Choice, Dialect};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id::IdState;
use crate::known::Known;
use crate::token::Token;

mod create;
mod iter;
mod options;
mod posted;
mod receive;
mod waker;

pub use create::default_qp_type;
pub use iter::{Events, Pending};
pub use options::ChannelOptions;
use posted::Post;
pub(crate) use posted::Posted;
pub use waker::Waker;

/// An event channel: ids are made on it and report through it, any number of
/// them, from any number of threads.
///
/// Waiting is by call: [`next_event`](Self::next_event) waits until a deadline,
/// [`try_next_event`](Self::try_next_event) looks, and the descriptor of
/// [`AsFd`] is readable while either would find something, for event loops.
/// Each event goes to exactly one caller.
///
/// Dropping the channel leaves its ids working; the kernel's file is closed
/// with the last of them.
///
/// ```no_run
/// use std::time::Duration;
/// use rdmacm_core::{CmAddr, EventChannel, EventKind, PortSpace};
///
/// let channel = EventChannel::open()?;
/// let id = channel.create_id(PortSpace::TCP)?;
/// let timeout = Duration::from_millis(500);
/// id.resolve_addr(None, CmAddr::from(([10, 1, 0, 7], 7471)), timeout)?;
/// let event = channel.next_event(timeout)?;
/// match event.failure() {
///     None => assert_eq!(event.kind(), EventKind::AddrResolved),
///     Some(failure) => eprintln!("{failure}"),
/// }
/// # Ok::<(), rdmacm_core::Error>(())
/// ```
#[derive(Debug)]
#[doc(alias = "rdma_event_channel")]
#[doc(alias = "rdma_destroy_event_channel")]
pub struct EventChannel {
    shared: Arc<Shared>,
}

/// What the ids of a channel keep alive.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) dialect: Choice,
    pub(crate) known: Known,
    owners: Mutex<HashMap<Token, Owner>>,
    post: Post,
}

/// Whom a token in an event stands for.
#[derive(Debug)]
pub(crate) enum Owner {
    /// The id itself.
    Id(Weak<IdState>),
    /// A multicast group the id joined.
    Group(Weak<IdState>),
}

impl EventChannel {
    /// Opens the kernel's device and makes a channel on it. A missing device node makes
    /// the kernel load the module, see
    /// [`KernelDevice::open`](crate::device::KernelDevice::open).
    ///
    /// # Errors
    /// [`Error::Open`], which says whether the module, the device node or the
    /// permission is missing, and what to do.
    #[doc(alias = "rdma_create_event_channel")]
    pub fn open() -> Result<Self> {
        Self::options().open()
    }

    /// A channel with choices of the caller's.
    #[must_use]
    pub fn options() -> ChannelOptions {
        ChannelOptions::default()
    }

    /// The set of address commands in use: the one asked for, or what the
    /// kernel is known, or as yet presumed, to understand.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.shared.dialect.current()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// [`Error::DeadlinePassed`] when none came, [`Error::Woken`] when a
    /// [`Waker`] ended the wait, which goes before any event,
    /// [`Error::Command`] when the kernel refuses.
    #[doc(alias = "rdma_get_cm_event")]
    pub fn next_event(&self, deadline: impl Into<Deadline>) -> Result<Event> {
        let device = &self.shared.device;
        let until = deadline.into().until(device.now());
        loop {
            if let Some(event) = self.try_next_event()? {
                return Ok(event);
            }
            if until.is_some_and(|until| until <= device.now()) {
                return Err(Error::DeadlinePassed);
            }
            if wait(device.as_ref(), until)? {
                return Err(Error::Woken);
            }
        }
    }

    /// Waits until there may be an event, without reading it: after a look that
    /// found none, it costs no other before the wait.
    ///
    /// # Errors
    /// [`Error::DeadlinePassed`] and [`Error::Woken`] as
    /// [`next_event`](Self::next_event).
    pub fn wait(&self, deadline: impl Into<Deadline>) -> Result<()> {
        let device = &self.shared.device;
        let until = deadline.into().until(device.now());
        if wait(device.as_ref(), until)? {
            return Err(Error::Woken);
        }
        if until.is_some_and(|until| until <= device.now()) {
            return Err(Error::DeadlinePassed);
        }
        Ok(())
    }

    /// The next event if there is one; does not wait for one. (A connect
    /// request whose listener is gone is destroyed on the way, which on iWARP
    /// takes as long as the kernel takes for it. After some dozens of such events
    /// the answer is `None`, and the descriptor stays readable.)
    ///
    /// # Errors
    /// [`Error::Woken`] when a [`Waker`] asked for attention, which goes before
    /// any event; [`Error::Command`] when the kernel refuses.
    pub fn try_next_event(&self) -> Result<Option<Event>> {
        if self.shared.device.take_wake() {
            return Err(Error::Woken);
        }
        self.shared.receive()
    }

    /// Events as they come, for as long as it takes; a [`Waker`] ends it.
    #[must_use]
    pub fn events(&self) -> Events<'_> {
        Events::new(self)
    }

    /// The events that are there, without waiting for more.
    #[must_use]
    pub fn pending(&self) -> Pending<'_> {
        Pending::new(self)
    }

    /// The time by which this channel measures deadlines: its device's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.device.now()
    }

    /// The RDMA device that answers here mean by this id; `None` where nothing
    /// tells without doubt, see [`DeviceId::look_up`].
    #[must_use]
    pub fn look_up(&self, id: DeviceId) -> Option<RdmaDevice> {
        self.shared.device.look_up(id)
    }

    /// The active ports of InfiniBand that ids of this channel can be bound to,
    /// see [`InfinibandPort::list`].
    ///
    /// # Errors
    /// Those of [`InfinibandPort::list`].
    pub fn infiniband_ports(&self) -> Result<Vec<InfinibandPort>> {
        self.shared.device.infiniband_ports()
    }

    /// A handle by which another thread ends a wait for events here.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker::new(&self.shared.device)
    }
}

impl AsFd for EventChannel {
    /// A descriptor to poll: readable while an event or a wake-up is pending.
    /// It is not the kernel's file, and reading it yields nothing.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.device.readiness()
    }
}

impl AsRawFd for EventChannel {
    /// As [`AsFd`].
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

fn wait(device: &dyn Device, until: Option<Instant>) -> Result<bool> {
    device.wait(until).map_err(|error| Error::wait(&error))
}

impl Shared {
    /// The map is consistent between any two statements, so a panic elsewhere
    /// while it was locked leaves nothing broken.
    pub(crate) fn owners(&self) -> MutexGuard<'_, HashMap<Token, Owner>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Destroys an id in the kernel. Nothing is to be done about a failure: a
    /// refused destroy means that the id is gone already or that the process
    /// changed its credentials, and closing the file frees it then.
    pub(crate) fn destroy(&self, id: u32) {
        let mut events_reported = DestroyIdResponse::new_zeroed();
        let _ = transact(
            self.device.as_ref(),
            &DestroyId::new(id),
            &mut events_reported,
            Attachment::None,
        );
    }
}
