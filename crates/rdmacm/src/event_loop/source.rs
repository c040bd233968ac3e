//! What an event loop watches.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, PoisonError, Weak};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use rdmacm_core::{Deadline, Result};

use super::cm_events::CmEvents;
use crate::sync::{Mutex, MutexGuard};

/// How many events a source handles in one call of [`drain`](EventSource::drain). A peer
/// that never stops sending delays timers and other sources for no longer than that.
pub(crate) const MAX_EVENTS: usize = 32;

/// A descriptor that an event loop watches.
pub(crate) trait EventSource: AsFd + fmt::Debug + Send + Sync {
    /// Handles what is there, at most [`MAX_EVENTS`] events, and wakes the waiters that
    /// it concerns. One thread or task at a time calls it.
    ///
    /// # Errors
    /// Why the source could not be read. All waiters receive the error.
    fn drain(&self) -> Result<Drained>;
}

/// What is left in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// Nothing for now.
    Empty,
    /// There may be more.
    More,
    /// Nothing, and there never will be: the source is not watched any more.
    Closed,
}

/// The event channel and all other sources, under one descriptor.
#[derive(Debug)]
pub(crate) struct Sources {
    epoll: Epoll,
    cm: Arc<CmEvents>,
    others: Mutex<Vec<Weak<dyn EventSource>>>,
}

impl Sources {
    pub(super) fn new(cm: &Arc<CmEvents>) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(cm.channel(), readable())?;
        Ok(Self {
            epoll,
            cm: Arc::clone(cm),
            others: Mutex::default(),
        })
    }

    /// Waits until a source is readable.
    pub(super) fn wait(&self, until: Deadline) -> Result<()> {
        if self.others().is_empty() {
            return self.cm.channel().wait(until);
        }
        self.cm.channel().wait_with(self.epoll.0.as_fd(), until)
    }

    /// Reads all sources.
    ///
    /// # Errors
    /// That of the event channel. The other sources have been read then as well.
    pub(super) fn drain(&self) -> Result<Drained> {
        let mut events = self.cm.drain();
        let others: Vec<_> = self.others().iter().filter_map(Weak::upgrade).collect();
        for source in others {
            match source.drain() {
                Ok(Drained::Empty) => {}
                Ok(Drained::More) => events = events.map(|_| Drained::More),
                Ok(Drained::Closed) => self.unwatch(&source),
                Err(error) => events = events.and(Err(error)),
            }
        }
        events
    }

    /// Whether it is the first one besides the event channel.
    pub(super) fn watch(&self, source: &Arc<dyn EventSource>) -> Result<bool, Errno> {
        let mut others = self.others();
        if others.iter().any(|other| is_same(other, source)) {
            return Ok(false);
        }
        self.epoll.add(source.as_ref(), readable())?;
        let is_first = others.is_empty();
        // The kernel removes those that were closed.
        others.retain(|other| other.strong_count() > 0);
        others.push(Arc::downgrade(source));
        Ok(is_first)
    }

    pub(super) fn unwatch(&self, source: &Arc<dyn EventSource>) {
        let mut others = self.others();
        others.retain(|other| !is_same(other, source));
        let _ = self.epoll.delete(source.as_ref());
    }

    fn others(&self) -> MutexGuard<'_, Vec<Weak<dyn EventSource>>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Sources {
    /// Readable while a source is.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

fn is_same(one: &Weak<dyn EventSource>, other: &Arc<dyn EventSource>) -> bool {
    std::ptr::addr_eq(one.as_ptr(), Arc::as_ptr(other))
}

fn readable() -> EpollEvent {
    EpollEvent::new(EpollFlags::EPOLLIN, 0)
}
