//! A step that is under way, and what its errors say besides the cause.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdmacm_core::{CmAddr, Event, IdHandle};

use crate::error::{Cause, Error, Target};
use crate::event_loop::EventLoop;
use crate::stage::Stage;

/// A step that is under way, with its start and its deadline.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) event_loop: Arc<EventLoop>,
    pub(crate) started: Instant,
    pub(crate) until: Option<Instant>,
    target: Target,
    /// Whether the target has the device of the id.
    has_device: bool,
}

impl Attempt {
    pub(crate) fn new(event_loop: &Arc<EventLoop>, until: Option<Instant>, target: Target) -> Self {
        Self {
            event_loop: Arc::clone(event_loop),
            started: event_loop.now(),
            until,
            target,
            has_device: false,
        }
    }

    /// The same attempt at one of several addresses.
    pub(crate) fn at_address(&self, address: CmAddr) -> Self {
        Self {
            target: address.into(),
            ..self.clone()
        }
    }

    /// The same attempt, which ends after `limit` at the latest.
    pub(crate) fn with_limit(&self, limit: Option<Duration>) -> Self {
        let sooner = limit.and_then(|limit| self.event_loop.now().checked_add(limit));
        Self {
            until: [self.until, sooner].into_iter().flatten().min(),
            ..self.clone()
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.event_loop
            .now()
            .saturating_duration_since(self.started)
    }

    /// The time until the deadline; `None` without one.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let left = |until: Instant| until.saturating_duration_since(self.event_loop.now());
        self.until.map(left)
    }

    /// Queries the device for later errors, before a command that may block the id.
    pub(crate) fn query_device(&mut self, id: &IdHandle) {
        self.target = Target::from_id(id, self.target.address());
        self.has_device = true;
    }

    pub(crate) fn fail(&self, stage: Stage, cause: impl Into<Cause>) -> Error {
        Error::with_target(stage, self.target.clone(), self.elapsed(), cause.into())
    }

    /// A failure on the id's device. While a command may block the id in the kernel,
    /// [`query_device`](Self::query_device) must have been called before.
    pub(crate) fn fail_on(&self, id: &IdHandle, stage: Stage, cause: impl Into<Cause>) -> Error {
        let mut with_device = self.clone();
        if !with_device.has_device {
            with_device.query_device(id);
        }
        with_device.fail(stage, cause)
    }

    /// A failure that an event reports.
    pub(crate) fn failed(&self, id: &IdHandle, stage: Stage, event: &Event) -> Error {
        let cause = event.failure().map_or(Cause::PeerGone, Cause::Event);
        self.fail_on(id, stage, cause)
            .with_private_data(event.private_data())
    }
}
