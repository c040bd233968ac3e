//! What an event loop watches.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use rdmacm_core::{Deadline, Error, Result};

use super::cm_events::CmEvents;
use crate::sync::{Mutex, MutexGuard};

/// How many events a source handles in one call of [`drain`](EventSource::drain). A peer
/// that never stops sending delays timers and other sources for no longer than that.
pub(crate) const MAX_EVENTS: usize = 32;

/// A descriptor that an event loop watches.
pub(crate) trait EventSource: fmt::Debug + Send + Sync {
    /// The descriptor.
    ///
    /// # Errors
    /// The error number of opening it, if it is not open yet.
    fn readiness(&self) -> Result<BorrowedFd<'_>, Errno>;

    /// Handles what is there, at most [`MAX_EVENTS`] events, and wakes the waiters that
    /// it concerns. Called when the descriptor is readable, and again for what it leaves.
    /// One thread or task at a time calls it.
    ///
    /// # Errors
    /// Why the source could not be read. All waiters receive the error.
    fn drain(&self) -> Result<Drained>;

    /// Whether this process has inherited it by `fork(2)`: what watches it is the parent's.
    fn is_in_child(&self) -> bool;
}

/// What becomes of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// Its share is not used up: mostly there is no more now.
    Open,
    /// It has handled [`MAX_EVENTS`] events, or what comes before them: there may be more now.
    Share,
    /// There never will be more: the source is not watched any more.
    Closed,
}

impl Drained {
    /// Of a source that is open, by the number of events that were handled.
    pub(crate) fn after(events: usize) -> Self {
        if events < MAX_EVENTS {
            Self::Open
        } else {
            Self::Share
        }
    }
}

/// The event channel and all other sources, under one descriptor.
#[derive(Debug)]
pub(crate) struct Sources {
    epoll: Epoll,
    cm: Arc<CmEvents>,
    others: Mutex<Others>,
}

/// The sources besides the event channel, by the number that epoll reports.
#[derive(Debug, Default)]
struct Others {
    sources: Vec<(u64, Weak<dyn EventSource>)>,
    last_number: u64,
}

/// The number of the event channel.
const CM: u64 = 0;

/// How many sources are drained in turn. More are drained the next time.
const MAX_READY: usize = 16;

impl Sources {
    pub(super) fn new(cm: &Arc<CmEvents>) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(cm.channel(), readable(CM))?;
        Ok(Self {
            epoll,
            cm: Arc::clone(cm),
            others: Mutex::default(),
        })
    }

    /// Waits until a source is readable, at most until a timer, which is given with the time
    /// now, and fills in those that are: none after a wake-up, or after a signal.
    pub(super) fn wait(
        &self,
        timer: Option<(Instant, Instant)>,
        ready: &mut ReadySources,
    ) -> Result<()> {
        let channel = self.cm.channel();
        if channel.waits_by_descriptor() {
            let left = timer.map(|(at, now)| at.saturating_duration_since(now));
            return self.poll(timeout(left), ready);
        }
        let until = timer.map_or(Deadline::Never, |(at, _)| Deadline::At(at));
        match channel.wait_with(self.epoll.0.as_fd(), until) {
            // At the deadline too: what came in time is read in time.
            Ok(()) | Err(Error::DeadlinePassed) => self.readable(ready),
            Err(Error::Woken) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Fills in the sources that are readable now.
    pub(super) fn readable(&self, ready: &mut ReadySources) -> Result<()> {
        self.poll(EpollTimeout::ZERO, ready)
    }

    /// Whether a source is readable now.
    pub(super) fn is_any_readable(&self) -> Result<bool> {
        let mut ready = ReadySources::default();
        self.readable(&mut ready)?;
        Ok(!ready.is_empty())
    }

    fn poll(&self, timeout: EpollTimeout, ready: &mut ReadySources) -> Result<()> {
        loop {
            match self.epoll.wait(&mut ready.events, timeout) {
                Ok(count) => ready.count = count,
                // A runtime takes none for proof that there are none.
                Err(Errno::EINTR) if timeout == EpollTimeout::ZERO => continue,
                Err(Errno::EINTR) => {}
                Err(errno) => {
                    let errno = errno as i32;
                    return Err(Error::Wait { errno });
                }
            }
            return Ok(());
        }
    }

    /// Drains sources; of the event channel, at most so many events. Returns whether a source has
    /// more than its share, or there may be more sources.
    ///
    /// # Errors
    /// That of a source. The other ones have been drained then as well.
    pub(super) fn drain(&self, ready: &ReadySources, max_events: usize) -> Result<bool> {
        let mut outcome = Ok(ready.count == MAX_READY);
        for event in ready.events.iter().take(ready.count) {
            match self.drain_one(event.data(), max_events) {
                Ok(Drained::Share) => outcome = outcome.map(|_| true),
                Ok(Drained::Open | Drained::Closed) => {}
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    fn drain_one(&self, number: u64, max_events: usize) -> Result<Drained> {
        if number == CM {
            return self.cm.drain(max_events);
        }
        // It may have been dropped meanwhile.
        let Some(source) = self.others().find(number) else {
            return Ok(Drained::Closed);
        };
        let drained = source.drain()?;
        if drained == Drained::Closed {
            self.unwatch(&*source);
        }
        Ok(drained)
    }

    /// Whether it is the first one besides the event channel.
    pub(super) fn watch(&self, source: &Arc<dyn EventSource>) -> Result<bool, Errno> {
        let mut others = self.others();
        if others
            .sources
            .iter()
            .any(|(_, other)| is_same(other, &**source))
        {
            return Ok(false);
        }
        let number = others.last_number + 1;
        self.epoll.add(source.readiness()?, readable(number))?;
        others.last_number = number;
        let is_first = others.sources.is_empty();
        others.sources.retain(|(_, other)| other.strong_count() > 0);
        others.sources.push((number, Arc::downgrade(source)));
        Ok(is_first)
    }

    /// A source must be unwatched before its descriptor is closed. The kernel does so by itself
    /// only if no forked child has the descriptor as well.
    pub(super) fn unwatch(&self, source: &dyn EventSource) {
        if source.is_in_child() {
            return;
        }
        let mut others = self.others();
        others.sources.retain(|(_, other)| !is_same(other, source));
        if let Ok(descriptor) = source.readiness() {
            let _ = self.epoll.delete(descriptor);
        }
    }

    fn others(&self) -> MutexGuard<'_, Others> {
        self.others.lock()
    }
}

/// Sources that are readable.
#[derive(Debug)]
pub(super) struct ReadySources {
    events: [EpollEvent; MAX_READY],
    count: usize,
}

impl ReadySources {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Default for ReadySources {
    fn default() -> Self {
        Self {
            events: [EpollEvent::empty(); MAX_READY],
            count: 0,
        }
    }
}

impl Others {
    fn find(&self, number: u64) -> Option<Arc<dyn EventSource>> {
        let mut sources = self.sources.iter();
        let (_, source) = sources.find(|(known, _)| *known == number)?;
        source.upgrade()
    }
}

impl AsFd for Sources {
    /// Readable while a source is.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

fn is_same(one: &Weak<dyn EventSource>, other: &dyn EventSource) -> bool {
    std::ptr::addr_eq(one.as_ptr(), other)
}

fn readable(number: u64) -> EpollEvent {
    EpollEvent::new(EpollFlags::EPOLLIN, number)
}

/// Rounds up, so that a wait does not end just before its deadline and spin. A time that is
/// too long is cut off: the caller waits again.
fn timeout(left: Option<Duration>) -> EpollTimeout {
    let Some(left) = left else {
        return EpollTimeout::NONE;
    };
    EpollTimeout::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(EpollTimeout::MAX)
}
