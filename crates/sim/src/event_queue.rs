//! The events of an open file.

use std::collections::VecDeque;

use rdmacm_abi::EventResponse;

use crate::readiness::Readiness;

/// An open file of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileKey {
    pub(crate) host: usize,
    pub(crate) serial: u64,
}

/// The unread events, wake-ups and notifications of an open file.
#[derive(Debug)]
pub(crate) struct EventQueue {
    pub(crate) events: VecDeque<QueuedEvent>,
    pub(crate) is_woken: bool,
    pub(crate) is_notified: bool,
    readiness: Readiness,
}

/// An unread event.
#[derive(Clone, Debug)]
pub(crate) struct QueuedEvent {
    /// The id that counts it as reported.
    pub(crate) id: u32,
    /// The multicast group that counts it as well.
    pub(crate) group: Option<u32>,
    /// The id that a connect request created.
    pub(crate) child: Option<u32>,
    pub(crate) response: EventResponse,
}

impl EventQueue {
    pub(crate) fn new(readiness: Readiness) -> Self {
        Self {
            events: VecDeque::new(),
            is_woken: false,
            is_notified: false,
            readiness,
        }
    }

    /// The descriptor's number, by which `MIGRATE_ID` names the file.
    pub(crate) fn descriptor(&self) -> i32 {
        self.readiness.descriptor()
    }

    pub(crate) fn push(&mut self, event: QueuedEvent) {
        self.events.push_back(event);
        self.update_readiness();
    }

    /// Removes the events for which `is_removed` holds.
    pub(crate) fn remove(&mut self, is_removed: impl Fn(&QueuedEvent) -> bool) -> Vec<QueuedEvent> {
        let events = std::mem::take(&mut self.events);
        let (removed, kept): (Vec<_>, Vec<_>) = events.into_iter().partition(is_removed);
        self.events = kept.into();
        self.update_readiness();
        removed
    }

    /// Called after every change.
    pub(crate) fn update_readiness(&mut self) {
        let is_ready = !self.events.is_empty() || self.is_woken || self.is_notified;
        self.readiness.set(is_ready);
    }
}
