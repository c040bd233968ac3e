//! The channel through which ids report.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use rdmacm_abi::{DestroyId, DestroyIdResponse};
use zerocopy::FromZeros;

use crate::address_abi::{AddressAbi, SelectedAbi};
use crate::command_support::CommandSupport;
use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id::IdState;
use crate::rdma_devices::{DeviceId, InfinibandPort, RdmaDevice, RdmaDevices};
use crate::token::Token;
use crate::ucma::{Attachment, UcmaFile, transact};

mod create;
mod iter;
mod local_events;
mod options;
mod receive;
mod waker;

pub use create::default_qp_type;
pub use iter::{Events, Pending};
pub(crate) use local_events::LocalEvent;
use local_events::LocalEvents;
pub use options::ChannelOptions;
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
    pub(crate) ucma: Arc<dyn UcmaFile>,
    pub(crate) devices: Arc<dyn RdmaDevices>,
    pub(crate) address_abi: SelectedAbi,
    pub(crate) command_support: CommandSupport,
    owners: Mutex<HashMap<Token, Owner>>,
    local_events: LocalEvents,
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
    /// [`KernelFile::open`](crate::ucma::KernelFile::open).
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
    pub fn address_abi(&self) -> AddressAbi {
        self.shared.address_abi.current()
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
        let ucma = &self.shared.ucma;
        let until = deadline.into().until(ucma.now());
        loop {
            if let Some(event) = self.try_next_event()? {
                return Ok(event);
            }
            if until.is_some_and(|until| until <= ucma.now()) {
                return Err(Error::DeadlinePassed);
            }
            if self.wait_until(until, None)? {
                return Err(Error::Woken);
            }
        }
    }

    /// Waits until an event may be available, without reading it. Call it after
    /// [`try_next_event`](Self::try_next_event) returned `None`; it does not check
    /// for events before it blocks.
    ///
    /// # Errors
    /// [`Error::DeadlinePassed`] and [`Error::Woken`] as
    /// [`next_event`](Self::next_event).
    pub fn wait(&self, deadline: impl Into<Deadline>) -> Result<()> {
        self.wait_for_any(None, deadline.into())
    }

    /// Waits like [`wait`](Self::wait), and also returns when `other` is readable,
    /// such as the completion channel of a queue pair.
    ///
    /// The result does not say which of them ended the wait. After each return,
    /// with or without an error, the caller checks both: it calls
    /// [`try_next_event`](Self::try_next_event), and reads `other` without
    /// blocking.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub fn wait_with(&self, other: BorrowedFd<'_>, deadline: impl Into<Deadline>) -> Result<()> {
        self.wait_for_any(Some(other), deadline.into())
    }

    fn wait_for_any(&self, other: Option<BorrowedFd<'_>>, deadline: Deadline) -> Result<()> {
        let ucma = &self.shared.ucma;
        let until = deadline.until(ucma.now());
        if self.wait_until(until, other)? {
            return Err(Error::Woken);
        }
        if until.is_some_and(|until| until <= ucma.now()) {
            return Err(Error::DeadlinePassed);
        }
        Ok(())
    }

    fn wait_until(&self, until: Option<Instant>, other: Option<BorrowedFd<'_>>) -> Result<bool> {
        let woken = self.shared.ucma.wait(until, other);
        woken.map_err(|error| Error::wait(&error))
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
        if self.shared.ucma.take_wake() {
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

    /// The current time of the clock by which this channel measures deadlines:
    /// the machine's, unless the channel's file has its own.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.ucma.now()
    }

    /// The time at which a simulated kernel has its next work to do; `None` if it
    /// has none, and on a real kernel. For runtimes that run their timers over a
    /// simulated clock, see [`UcmaFile::next_due`].
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.shared.ucma.next_due()
    }

    /// Advances the clock of a simulated kernel to `time`; has no effect on a real
    /// one. For runtimes that run their timers over a simulated clock, see
    /// [`UcmaFile::advance_to`].
    pub fn advance_to(&self, time: Instant) {
        self.shared.ucma.advance_to(time);
    }

    /// The RDMA device that the kernel names by this id; `None` if it is unknown
    /// or ambiguous. See [`DeviceId::look_up`].
    #[must_use]
    pub fn look_up(&self, id: DeviceId) -> Option<RdmaDevice> {
        self.shared.devices.look_up(id)
    }

    /// All RDMA devices that ids of this channel can use.
    ///
    /// # Errors
    /// Those of [`RdmaDevice::list`].
    #[doc(alias = "rdma_get_devices")]
    pub fn rdma_devices(&self) -> Result<Vec<RdmaDevice>> {
        self.shared.devices.list()
    }

    /// The active InfiniBand ports that ids of this channel can be bound to.
    /// See [`InfinibandPort::list`].
    ///
    /// # Errors
    /// Those of [`InfinibandPort::list`].
    pub fn infiniband_ports(&self) -> Result<Vec<InfinibandPort>> {
        self.shared.devices.infiniband_ports()
    }

    /// A handle by which another thread ends a wait for events here.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker::new(&self.shared.ucma)
    }
}

impl AsFd for EventChannel {
    /// A descriptor to poll: readable while an event or a wake-up is pending.
    /// It is not the kernel's file, and reading it yields nothing.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.ucma.readiness()
    }
}

impl AsRawFd for EventChannel {
    /// As [`AsFd`].
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
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
            self.ucma.as_ref(),
            &DestroyId::new(id),
            &mut events_reported,
            Attachment::None,
        );
    }
}
