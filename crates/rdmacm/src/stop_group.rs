//! Stopping several listeners and connections at once.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::stop_handle::StopHandle;

/// Listeners and connections that stop together, such as those of a server that shuts down.
///
/// A clone is the same group. The group does not keep its members alive, and forgets those
/// that are dropped.
///
/// ```
/// use rdmacm::StopGroup;
///
/// let group = StopGroup::new();
/// // Each thread adds its connection: `group.add(connection.stop_handle())`.
/// group.stop();
/// assert!(group.is_stopped());
/// ```
#[derive(Clone, Debug, Default)]
pub struct StopGroup(Arc<Mutex<Members>>);

#[derive(Debug, Default)]
struct Members {
    handles: Vec<StopHandle>,
    is_stopped: bool,
}

impl StopGroup {
    /// A group without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a member. In a group that is stopped already, it stops at once.
    pub fn add(&self, handle: StopHandle) {
        let mut members = self.members();
        if members.is_stopped {
            drop(members);
            return handle.stop();
        }
        // As long as before, on average: dropped members do not add up.
        if members.handles.len() == members.handles.capacity() {
            members.handles.retain(StopHandle::is_alive);
        }
        members.handles.push(handle);
    }

    /// Stops all members, and those that are added later.
    pub fn stop(&self) {
        let mut members = self.members();
        members.is_stopped = true;
        let handles = std::mem::take(&mut members.handles);
        drop(members);
        let mut first_panic = None;
        for handle in handles {
            // A waker that panics may be of another runtime than the next one.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| handle.stop())) {
                first_panic.get_or_insert(panic);
            }
        }
        if let Some(panic) = first_panic {
            resume_unwind(panic);
        }
    }

    /// Whether the group is stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.members().is_stopped
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_loop::EventQueue;

    #[test]
    fn members_stop_whenever_they_were_added() {
        let group = StopGroup::new();
        let queues = [(); 3].map(|()| Arc::new(EventQueue::default()));
        let [before, after, outside] = &queues;
        group.add(StopHandle::new(before));
        assert!(!before.is_closed());
        group.clone().stop();
        group.add(StopHandle::new(after));
        let closed = [before, after, outside].map(|queue| queue.is_closed());
        assert_eq!(closed, [true, true, false]);
    }

    #[test]
    fn dropped_members_do_not_add_up() {
        let group = StopGroup::new();
        let alive = Arc::new(EventQueue::default());
        group.add(StopHandle::new(&alive));
        for _ in 0..1000 {
            group.add(StopHandle::new(&Arc::new(EventQueue::default())));
        }
        assert!(group.members().handles.capacity() <= 8);
        group.stop();
        assert!(alive.is_closed());
    }
}
