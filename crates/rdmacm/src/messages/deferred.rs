//! What waits until a lock is released.

use std::task::Waker;

use rdmacm_verbs::SgList;

use crate::event_loop::wake_all;

/// What is done without the lock: dropping the last waker of a task ends the task, and
/// dropping the last reference to memory is a system call.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    /// Mostly there is at most one.
    waker: Option<Waker>,
    more: Option<Box<More>>,
}

/// What there mostly is none of.
#[derive(Debug, Default)]
struct More {
    wakers: Vec<Waker>,
    garbage: Vec<SgList>,
}

impl Deferred {
    /// Whether there is anything to do.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.waker.is_some() || self.more.is_some()
    }

    /// Wakes the tasks, and drops the memory.
    #[inline]
    pub(super) fn run(self) {
        if self.is_due() {
            self.run_all();
        }
    }

    fn run_all(self) {
        let more = self.more.map(|more| *more).unwrap_or_default();
        wake_all(self.waker.into_iter().chain(more.wakers));
    }

    /// Whether someone is woken.
    pub(super) fn wakes(&self) -> bool {
        self.waker.is_some()
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Keeps memory until then.
    pub(super) fn discard(&mut self, memory: impl IntoIterator<Item = SgList>) {
        let memory = memory.into_iter().filter(|memory| !memory.is_empty());
        let mut memory = memory.peekable();
        if memory.peek().is_some() {
            self.more().garbage.extend(memory);
        }
    }

    /// Wakes a task then.
    pub(super) fn wake(&mut self, waker: Option<&Waker>) {
        let Some(waker) = waker else {
            return;
        };
        let waker = waker.clone();
        match self.waker {
            None => self.waker = Some(waker),
            Some(_) => self.more().wakers.push(waker),
        }
    }
}
