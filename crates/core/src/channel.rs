//! Event channels.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use crate::address_abi::AddressAbi;
use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id_state::Channel;
use crate::rdma_devices::{DeviceId, DeviceLookup, InfinibandPort, RdmaDevice};
#[cfg(doc)]
use crate::ucma::UcmaFile;

mod create;
mod iter;
mod migrate;
mod options;
mod receive;
#[cfg(test)]
mod tests;
mod waker;

pub use create::default_qp_type;
pub use iter::{Events, Pending};
pub use options::ChannelOptions;
pub use waker::Waker;

/// An event channel: it creates ids and delivers their events. Any number of threads
/// may use it.
///
/// [`next_event`](Self::next_event) waits until a deadline,
/// [`try_next_event`](Self::try_next_event) never waits. For event loops, the
/// descriptor of [`AsFd`] is readable while an event is available. Each event is
/// delivered to exactly one caller.
///
/// The ids of a channel work on after it is dropped; the kernel's file is closed with
/// the last of them.
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
    state: Arc<Channel>,
}

impl EventChannel {
    /// Opens a channel on the kernel's device node. A missing node makes the kernel
    /// load the module, see
    /// [`KernelFile::open`](crate::ucma::KernelFile::open).
    ///
    /// # Errors
    /// Those of [`KernelFile::open`](crate::ucma::KernelFile::open).
    #[doc(alias = "rdma_create_event_channel")]
    pub fn open() -> Result<Self> {
        Self::options().open()
    }

    /// Options to open a channel with.
    #[must_use]
    pub fn options() -> ChannelOptions {
        ChannelOptions::default()
    }

    /// The set of address commands in use: the one that the caller chose, or the one
    /// that the kernel is known, or until then presumed, to support; see [`AddressAbi`].
    #[must_use]
    pub fn address_abi(&self) -> AddressAbi {
        self.state.address_abi.current()
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// [`Error::DeadlinePassed`] if there was none until the deadline;
    /// [`Error::Woken`] if a [`Waker`] ended the wait, which takes precedence over
    /// events; [`Error::Command`] if the kernel refuses; [`Error::Wait`] if the process cannot
    /// open or wait for a descriptor.
    #[doc(alias = "rdma_get_cm_event")]
    pub fn next_event(&self, deadline: impl Into<Deadline>) -> Result<Event> {
        self.wait_for_event(EventWait {
            channel: &self.state,
            deadline: deadline.into(),
            only_kernel: false,
        })
    }

    /// Waits for the next event like [`next_event`](Self::next_event), for a caller that is the
    /// only user of the channel and its ids. Calls of other threads need not end this wait: neither
    /// a [`Waker`] nor an event that a call causes. So it waits on the kernel's file alone.
    ///
    /// # Errors
    /// Those of [`next_event`](Self::next_event).
    #[doc(alias = "rdma_get_cm_event")]
    pub fn next_kernel_event(&self, deadline: impl Into<Deadline>) -> Result<Event> {
        self.wait_for_event(EventWait {
            channel: &self.state,
            deadline: deadline.into(),
            only_kernel: true,
        })
    }

    fn wait_for_event(&self, mut wait: EventWait<'_>) -> Result<Event> {
        // Only a read finds what the kernel does not announce.
        let is_signalled = wait.only_kernel && self.state.ucma.has_signal();
        if !is_signalled && self.state.poll_first.next() {
            match wait.poll() {
                // There may be an event nevertheless.
                Ok(()) | Err(Error::DeadlinePassed | Error::Wait { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        receive::receive(
            &self.state,
            |event| event,
            || {
                self.state.poll_first.set();
                wait.poll()?;
                Ok(None)
            },
        )
    }

    /// Waits until an event may be available, without reading it. Call it after
    /// [`try_next_event`](Self::try_next_event) returned `None`; it does not check
    /// for events before it blocks.
    ///
    /// # Errors
    /// [`Error::DeadlinePassed`], [`Error::Woken`] and [`Error::Wait`] as
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

    /// Whether waiting for the descriptor of [`AsFd`] until a time of the system's clock is
    /// the same as [`wait`](Self::wait): true for the kernel's file, false for a stand-in,
    /// which may have a clock of its own.
    #[must_use]
    pub fn waits_by_descriptor(&self) -> bool {
        self.state.ucma.ucma_fd().is_some()
    }

    fn wait_for_any(&self, other: Option<BorrowedFd<'_>>, deadline: Deadline) -> Result<()> {
        let ucma = &self.state.ucma;
        self.state.poll_first.clear();
        let until = deadline.until_by(|| ucma.now());
        if self.wait_until(until, other)? {
            return Err(Error::Woken);
        }
        if until.is_some_and(|until| until <= ucma.now()) {
            return Err(Error::DeadlinePassed);
        }
        Ok(())
    }

    fn wait_until(&self, until: Option<Instant>, other: Option<BorrowedFd<'_>>) -> Result<bool> {
        let woken = self.state.ucma.wait(until, other);
        woken.map_err(|error| Error::wait(&error))
    }

    /// Returns the next event if there is one, without waiting.
    ///
    /// Drops events of ids that are gone; it destroys the id of a connect request
    /// whose listener is gone, which on iWARP may block in the kernel. After some
    /// dozens of such events it returns `None` while the descriptor stays readable.
    ///
    /// # Errors
    /// [`Error::Woken`] if a [`Waker`] woke this channel, which takes precedence over
    /// events; [`Error::Command`] if the kernel refuses; [`Error::Wait`] once if the descriptor of
    /// [`AsFd`] could not be opened.
    #[doc(alias = "rdma_get_cm_event")]
    pub fn try_next_event(&self) -> Result<Option<Event>> {
        receive::receive(&self.state, Some, || Ok(Some(None)))
    }

    /// An iterator that waits for each event without a deadline; a [`Waker`] ends it.
    #[must_use]
    #[doc(alias = "rdma_get_cm_event")]
    pub fn events(&self) -> Events<'_> {
        Events::new(self)
    }

    /// An iterator over the available events, which does not wait.
    #[must_use]
    #[doc(alias = "rdma_get_cm_event")]
    pub fn pending(&self) -> Pending<'_> {
        Pending::new(self)
    }

    /// The current time of the clock by which this channel measures deadlines:
    /// the machine's, unless the channel's file has its own.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.state.ucma.now()
    }

    /// The time at which a simulated kernel has its next work to do; `None` if it
    /// has none, and on a real kernel. For runtimes that run their timers over a
    /// simulated clock, see [`UcmaFile::next_due`].
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.state.ucma.next_due()
    }

    /// Advances the clock of a simulated kernel to `time`; has no effect on a real
    /// one. For runtimes that run their timers over a simulated clock, see
    /// [`UcmaFile::advance_to`].
    pub fn advance_to(&self, time: Instant) {
        self.state.ucma.advance_to(time);
    }

    /// The RDMA device that the kernel names by this id; `None` if it is unknown
    /// or ambiguous. See [`DeviceId::look_up`].
    #[must_use]
    pub fn look_up(&self, id: DeviceId) -> Option<RdmaDevice> {
        self.state.devices().look_up(id)
    }

    /// Looks up devices like [`look_up`](Self::look_up), also after the channel is gone.
    #[must_use]
    pub fn device_lookup(&self) -> DeviceLookup {
        self.state.device_lookup()
    }

    /// All RDMA devices that ids of this channel can use.
    ///
    /// # Errors
    /// Those of [`RdmaDevice::list`].
    #[doc(alias = "rdma_get_devices")]
    pub fn rdma_devices(&self) -> Result<Vec<RdmaDevice>> {
        self.state.devices().list()
    }

    /// The active InfiniBand ports that ids of this channel can be bound to.
    /// See [`InfinibandPort::list`].
    ///
    /// # Errors
    /// Those of [`InfinibandPort::list`].
    pub fn infiniband_ports(&self) -> Result<Vec<InfinibandPort>> {
        self.state.devices().infiniband_ports()
    }

    /// The IP addresses of the simulated host to which ids of this channel belong; `None` if it
    /// is this machine. See [`RdmaDevices::host_addresses`](crate::RdmaDevices::host_addresses).
    #[must_use]
    pub fn host_addresses(&self) -> Option<Vec<IpAddr>> {
        self.state.devices().host_addresses()
    }

    /// The descriptor of [`AsFd`], or why it could not be opened.
    ///
    /// # Errors
    /// [`Error::Wait`] if the process cannot open it.
    pub fn readiness(&self) -> Result<BorrowedFd<'_>> {
        let opened = self.state.ucma.open_readiness();
        opened.map_err(|error| Error::wait(&error))?;
        Ok(self.as_fd())
    }

    /// A handle with which another thread ends a wait on this channel.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker::new(&self.state)
    }
}

/// A wait for the next event.
struct EventWait<'channel> {
    channel: &'channel Channel,
    /// No duration any more once the caller has waited.
    deadline: Deadline,
    /// Whether only the kernel ends the wait.
    only_kernel: bool,
}

impl EventWait<'_> {
    /// Waits until there may be an event.
    #[inline(never)]
    fn poll(&mut self) -> Result<()> {
        let ucma = &self.channel.ucma;
        let until = self.deadline.until_by(|| ucma.now());
        self.deadline = until.map_or(Deadline::Never, Deadline::At);
        match ucma.wait_before(until, self.only_kernel) {
            Ok(None) => Err(Error::DeadlinePassed),
            Ok(Some(false)) => Ok(()),
            Ok(Some(true)) => Err(Error::Woken),
            Err(error) => Err(Error::wait(&error)),
        }
    }
}

impl AsFd for EventChannel {
    /// A descriptor to poll, readable while an event or a wake-up is pending. It is
    /// not the kernel's file and cannot be read. The first call opens it; if the process
    /// cannot, the next event read returns the error, as
    /// [`readiness`](Self::readiness) does at once.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.state.ucma.readiness()
    }
}

impl AsRawFd for EventChannel {
    /// As [`AsFd`].
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
