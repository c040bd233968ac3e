//! A step in progress, and what its errors say besides the cause.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdmacm_core::{self as core, CmAddr, Deadline, DeviceId, Event, EventKind, IdHandle};

use crate::error::{Cause, Error, Target};
use crate::event_loop::EventLoop;
use crate::stage::Stage;

/// A step in progress, with its start and its deadline.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) event_loop: Arc<EventLoop>,
    pub(crate) started: Instant,
    pub(crate) until: Option<Instant>,
    target: Target,
    device: DeviceQuery,
}

/// When errors ask the kernel for the device of the id.
#[derive(Clone, Copy, Debug)]
enum DeviceQuery {
    /// When they are made.
    Late,
    /// Before a command that may block the id, with this answer.
    Early(Option<DeviceId>),
}

impl Attempt {
    pub(crate) fn new(event_loop: &Arc<EventLoop>, until: Option<Instant>, target: Target) -> Self {
        Self {
            event_loop: Arc::clone(event_loop),
            started: event_loop.now(),
            until,
            target,
            device: DeviceQuery::Late,
        }
    }

    /// An attempt that begins now.
    pub(crate) fn until(event_loop: &Arc<EventLoop>, deadline: Deadline, target: Target) -> Self {
        let mut attempt = Self::new(event_loop, None, target);
        attempt.until = deadline.until(attempt.started);
        attempt
    }

    /// The same attempt at one of several addresses.
    pub(crate) fn at_address(&self, address: CmAddr) -> Self {
        Self {
            event_loop: Arc::clone(&self.event_loop),
            started: self.started,
            until: self.until,
            target: address.into(),
            device: self.device,
        }
    }

    /// The end of a part of the attempt that takes `limit` at the most.
    pub(crate) fn end_within(&self, limit: Option<Duration>) -> Option<Instant> {
        let sooner = limit.and_then(|limit| self.event_loop.now().checked_add(limit));
        [self.until, sooner].into_iter().flatten().min()
    }

    /// Where it goes, if that is known.
    pub(crate) fn address(&self) -> Option<CmAddr> {
        self.target.address()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.event_loop
            .now()
            .saturating_duration_since(self.started)
    }

    /// The time from the start to the deadline; `None` without one.
    pub(crate) fn time_limit(&self) -> Option<Duration> {
        let limit = |until: Instant| until.saturating_duration_since(self.started);
        self.until.map(limit)
    }

    /// The time until the deadline; `None` without one.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let left = |until: Instant| until.saturating_duration_since(self.event_loop.now());
        self.until.map(left)
    }

    /// Whether the deadline has passed.
    pub(crate) fn has_passed(&self) -> bool {
        self.time_left().is_some_and(|left| left.is_zero())
    }

    /// Queries the device for later errors, before a command that may block the id. Only an
    /// error looks its name up.
    pub(crate) fn query_device(&mut self, id: &IdHandle) {
        let addresses = id.addresses().ok();
        let destination = addresses.and_then(|addresses| addresses.destination);
        let address = self.target.address().or(destination);
        self.target = address.map_or_else(Target::default, Target::from);
        self.device = DeviceQuery::Early(addresses.and_then(|found| found.device));
    }

    pub(crate) fn fail(&self, stage: Stage, cause: impl Into<Cause>) -> Error {
        Error::with_target(stage, self.target.clone(), self.elapsed(), cause.into())
    }

    /// A failure on the id's device. While a command may block the id in the kernel,
    /// [`query_device`](Self::query_device) must have been called before.
    pub(crate) fn fail_on(&self, id: &IdHandle, stage: Stage, cause: impl Into<Cause>) -> Error {
        let address = self.target.address();
        let target = match self.device {
            DeviceQuery::Late => Target::from_id(id, address),
            DeviceQuery::Early(device) => {
                let found = device.and_then(|device| self.event_loop.channel().look_up(device));
                Target::on_device(address, found)
            }
        };
        Error::with_target(stage, target, self.elapsed(), cause.into())
    }

    /// No queue pair was created for an id.
    pub(crate) fn no_queue_pair(&self, id: &IdHandle, error: io::Error) -> Error {
        self.fail_on(id, Stage::QueuePair, Cause::queue_pair(error))
    }

    /// A failure that an event reports, or is by coming now.
    pub(crate) fn failed(&self, id: &IdHandle, stage: Stage, event: &Event) -> Error {
        self.fail_on(id, stage, cause_of(event))
            .with_private_data(event.private_data())
    }
}

/// The cause of a failure by an event. A peer that disconnects reports none.
fn cause_of(event: &Event) -> Cause {
    let is_disconnect = event.kind() == EventKind::Disconnected && event.failure().is_none();
    if is_disconnect {
        return Cause::PeerGone;
    }
    Cause::Event(event.as_failure())
}

/// The cause of a refused command that comes next in the protocol: the kernel refuses it
/// only because the peer has ended the connection meanwhile.
pub(crate) fn peer_gone_or(error: core::Error) -> Cause {
    match error {
        // ENXIO: the device is gone as well.
        core::Error::Command(refused)
            if matches!(refused.errno, libc::EINVAL | libc::ECONNRESET | libc::ENXIO) =>
        {
            Cause::PeerGone
        }
        error => error.into(),
    }
}

/// Whether the event ends an attempt. Events of the user's own and of newer kernels do not.
pub(crate) fn ends_attempt(event: &Event) -> bool {
    match event.kind() {
        EventKind::AddrError
        | EventKind::RouteError
        | EventKind::AddrChange
        | EventKind::MulticastError
        | EventKind::DeviceRemoval => true,
        EventKind::AddrResolved | EventKind::RouteResolved | EventKind::ConnectResponse => {
            event.failure().is_some()
        }
        _ => ends_handshake(event),
    }
}

/// Whether the handshake is over, with or without a connection. Until then destroying an
/// iWARP id blocks.
pub(crate) fn ends_handshake(event: &Event) -> bool {
    matches!(
        event.kind(),
        EventKind::Established
            | EventKind::ConnectError
            | EventKind::Rejected
            | EventKind::Unreachable
            | EventKind::Disconnected
    )
}
