//! The tasks that wait on an event loop.

use std::task::Waker;

use super::WaiterQueue;

/// How a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaiterKind {
    /// In a future, which is polled once it is woken, or dropped.
    Future,
    /// It has called a `poll_` method. It may have gone since then: nothing tells.
    Caller,
}

/// The tasks that wait, of which one must run the event loop.
#[derive(Debug, Default)]
pub(super) struct WaitingTasks {
    futures: WaiterQueue,
    callers: WaiterQueue,
}

impl WaitingTasks {
    fn of(&mut self, kind: WaiterKind) -> &mut WaiterQueue {
        match kind {
            WaiterKind::Future => &mut self.futures,
            WaiterKind::Caller => &mut self.callers,
        }
    }

    /// Returns the waker that it replaces.
    #[must_use]
    pub(super) fn add(&mut self, kind: WaiterKind, key: u64, waker: &Waker) -> Option<Waker> {
        self.of(kind).add(key, waker)
    }

    #[must_use]
    pub(super) fn remove(&mut self, kind: WaiterKind, key: u64) -> Option<Waker> {
        self.of(kind).remove(key)
    }

    /// The waker of a caller.
    pub(super) fn caller(&self, key: u64) -> Option<&Waker> {
        self.callers.get(key)
    }

    pub(super) fn len(&self) -> usize {
        self.futures.len() + self.callers.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waker> {
        self.futures.iter().chain(self.callers.iter())
    }

    /// Those to wake so that one of them runs the loop: the first future, or all callers, of which
    /// some may have gone. Mostly there is at most one.
    pub(super) fn runners(&self) -> (Option<Waker>, Vec<Waker>) {
        if let Some(future) = self.futures.first() {
            return (Some(future.clone()), Vec::new());
        }
        let mut callers = self.callers.iter().cloned();
        (callers.next(), callers.collect())
    }
}
