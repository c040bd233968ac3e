//! The events of a queue, in order.

use std::collections::VecDeque;

use super::QueuedEvent;

/// Events, of which there is mostly one at most: the first is stored in line.
#[derive(Debug, Default)]
pub(super) struct PendingEvents {
    first: Option<QueuedEvent>,
    /// Empty without a first one.
    rest: VecDeque<QueuedEvent>,
}

impl PendingEvents {
    pub(super) fn push(&mut self, event: QueuedEvent) {
        if self.first.is_none() {
            self.first = Some(event);
        } else {
            self.rest.push_back(event);
        }
    }

    pub(super) fn pop(&mut self) -> Option<QueuedEvent> {
        let first = self.first.take();
        if !self.rest.is_empty() {
            self.first = self.rest.pop_front();
        }
        first
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }
}
