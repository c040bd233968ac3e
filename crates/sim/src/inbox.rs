//! What an open file has to tell.

use std::collections::VecDeque;

use rdmacm_abi::EventResponse;

use crate::readiness::Readiness;

/// What an open file's readers are to hear.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) events: VecDeque<Queued>,
    pub(crate) woken: bool,
    pub(crate) look: bool,
    readiness: Readiness,
}

/// An event that nobody has read yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    /// The id that counts it as reported.
    pub(crate) id: u32,
    pub(crate) response: EventResponse,
}

impl Inbox {
    pub(crate) fn new(readiness: Readiness) -> Self {
        Self {
            events: VecDeque::new(),
            woken: false,
            look: false,
            readiness,
        }
    }

    /// To be called after every change.
    pub(crate) fn tell(&mut self) {
        let something = !self.events.is_empty() || self.woken || self.look;
        self.readiness.set(something);
    }
}
