//! What a step's errors say besides their cause.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdmacm_core::{CmAddr, Event, IdHandle};

use crate::error::{Cause, Error, Target};
use crate::hub::Hub;
use crate::step::Step;

/// Something under way, with its beginning and its end.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) hub: Arc<Hub>,
    pub(crate) started: Instant,
    pub(crate) until: Option<Instant>,
    target: Target,
    /// The id has been asked about its device.
    learnt: bool,
}

impl Attempt {
    pub(crate) fn new(hub: &Arc<Hub>, until: Option<Instant>, target: Target) -> Self {
        Self {
            hub: Arc::clone(hub),
            started: hub.now(),
            until,
            target,
            learnt: false,
        }
    }

    /// The same attempt, aimed at one of several addresses.
    pub(crate) fn at(&self, address: CmAddr) -> Self {
        Self {
            target: address.into(),
            ..self.clone()
        }
    }

    /// The same attempt, given up after `limit`.
    pub(crate) fn limited(&self, limit: Option<Duration>) -> Self {
        let sooner = limit.and_then(|limit| self.hub.now().checked_add(limit));
        Self {
            until: [self.until, sooner].into_iter().flatten().min(),
            ..self.clone()
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.hub.now().saturating_duration_since(self.started)
    }

    /// How long there is still; `None` for ever.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let left = |until: Instant| until.saturating_duration_since(self.hub.now());
        self.until.map(left)
    }

    /// Learns the device, for a step after which the id must not be asked.
    pub(crate) fn learn(&mut self, id: &IdHandle) {
        self.target = Target::of_id(id, self.target.address());
        self.learnt = true;
    }

    pub(crate) fn fail(&self, step: Step, cause: impl Into<Cause>) -> Error {
        Error::new(step, self.target.clone(), self.elapsed(), cause.into())
    }

    /// A failure with the device the id is attached to. An id of which a command
    /// may be blocked in the kernel must have been asked before.
    pub(crate) fn fail_on(&self, id: &IdHandle, step: Step, cause: impl Into<Cause>) -> Error {
        let mut known = self.clone();
        if !known.learnt {
            known.learn(id);
        }
        known.fail(step, cause)
    }

    /// A failure that an event reports.
    pub(crate) fn failed(&self, id: &IdHandle, step: Step, event: &Event) -> Error {
        let cause = event.failure().map_or(Cause::Gone, Cause::Event);
        self.fail_on(id, step, cause)
            .with_private_data(event.private_data())
    }
}
