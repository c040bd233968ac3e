//! Waiting for a stream with `poll(2)`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::connection::StreamConnection;
use super::status::StreamInterest;
use crate::error::Result;
use crate::event_loop::EventLoop;
use crate::stage::Stage;

/// A descriptor that is readable while a call may be worth repeating: the event loop has
/// something to read, or the stream was woken after a call that would have waited.
#[derive(Debug)]
pub(super) struct Readiness {
    epoll: Epoll,
    woken: Arc<Woken>,
}

/// A descriptor that is readable while a direction is worth a look.
#[derive(Debug)]
struct Woken {
    event: EventFd,
    directions: Mutex<Directions>,
}

#[derive(Debug)]
struct Directions {
    reading: Attention,
    writing: Attention,
    /// No call has looked yet.
    is_new: bool,
}

/// What a direction's calls have found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attention {
    /// There is nothing to wait for.
    None,
    /// The last one would have waited.
    Waiting,
    /// The next one may return something.
    Due,
}

impl Directions {
    fn of(&mut self, interest: StreamInterest) -> &mut Attention {
        match interest {
            StreamInterest::Readable => &mut self.reading,
            _ => &mut self.writing,
        }
    }

    fn are_ready(&self) -> bool {
        self.is_new || [self.reading, self.writing].contains(&Attention::Due)
    }
}

impl Woken {
    /// Each statement leaves the directions consistent, so it is after a panic as well.
    fn directions(&self) -> MutexGuard<'_, Directions> {
        self.directions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the descriptor readable or not. Fails only if it is so already.
    fn publish(&self, directions: &Directions) {
        if directions.are_ready() {
            let _ = self.event.write(1);
        } else {
            let _ = self.event.read();
        }
    }

    fn set(&self, interest: StreamInterest, attention: Attention) {
        let mut directions = self.directions();
        let before = std::mem::replace(directions.of(interest), attention);
        if std::mem::take(&mut directions.is_new) || before != attention {
            self.publish(&directions);
        }
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// The other direction may have been meant: a call finds that out.
    fn wake_by_ref(self: &Arc<Self>) {
        let mut directions = self.directions();
        for interest in [StreamInterest::Readable, StreamInterest::Writable] {
            let attention = directions.of(interest);
            if *attention == Attention::Waiting {
                *attention = Attention::Due;
            }
        }
        self.publish(&directions);
    }
}

impl Readiness {
    /// Readable at first: nobody has looked yet.
    fn new(event_loop: &EventLoop) -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let event = EventFd::from_value_and_flags(1, flags)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for descriptor in [event.as_fd(), event_loop.readiness()] {
            epoll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        }
        let directions = Mutex::new(Directions {
            reading: Attention::None,
            writing: Attention::None,
            is_new: true,
        });
        let woken = Arc::new(Woken { event, directions });
        Ok(Self { epoll, woken })
    }
}

impl StreamConnection {
    /// A descriptor that is readable while something may have come for the stream.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        match self.readiness.get() {
            Some(readiness) => readiness.epoll.0.as_fd(),
            None => self.event_loop().readiness(),
        }
    }

    /// From now on the stream has a descriptor of its own.
    pub(crate) fn make_descriptor(&self) -> io::Result<()> {
        if self.readiness.get().is_some() {
            return Ok(());
        }
        let new = Readiness::new(self.event_loop())?;
        // Another thread may have made one meanwhile.
        let readiness = self.readiness.get_or_init(|| new);
        let waker = Waker::from(Arc::clone(&readiness.woken));
        self.queue_pair().status().wake_descriptor(waker);
        Ok(())
    }

    /// The owner is gone: the descriptor is never readable again. In a forked child it stays as it
    /// is, for the parent.
    pub(super) fn end_descriptor(&self) {
        if self.queue_pair().device().context().is_in_child() {
            return;
        }
        if let Some(Readiness { epoll, woken }) = self.readiness.get() {
            for descriptor in [woken.event.as_fd(), self.event_loop().readiness()] {
                let _ = epoll.delete(descriptor);
            }
        }
    }

    /// A call has not had to wait. A read may have left bytes, and the descriptor is readable
    /// until a call has found that there are none. There mostly is room, which is no reason to
    /// write.
    pub(crate) fn has_transferred(&self, interest: StreamInterest) {
        if let Some(readiness) = self.readiness.get() {
            let attention = match interest {
                StreamInterest::Readable => Attention::Due,
                _ => Attention::None,
            };
            readiness.woken.set(interest, attention);
        }
    }

    /// Handles what has come, instead of waiting for it, and calls `take` again, which has
    /// returned nothing. If it returns nothing once more, the descriptor becomes readable when
    /// the next call may return something.
    pub(crate) fn retry<T>(
        &self,
        interest: StreamInterest,
        stage: Stage,
        mut take: impl FnMut() -> Option<Result<T>>,
    ) -> io::Result<T> {
        let event_loop = self.event_loop();
        let failures = event_loop.failures();
        if let Some(readiness) = self.readiness.get() {
            readiness.woken.set(interest, Attention::Waiting);
            self.queue_pair().arm_and_look(interest);
        }
        event_loop.run_once();
        loop {
            if let Some(outcome) = take() {
                self.has_transferred(interest);
                return Ok(outcome?);
            }
            if self.readiness.get().is_none() || !self.queue_pair().arm_and_look(interest) {
                break;
            }
        }
        let failed = event_loop.failed_since(failures);
        failed.map_err(|error| self.fail_at_once(stage, error.into()))?;
        Err(io::ErrorKind::WouldBlock.into())
    }
}
