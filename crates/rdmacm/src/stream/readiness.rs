//! Waiting for a stream with `poll(2)`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::{Wake, Waker};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::connection::StreamConnection;
use super::status::StreamInterest;
use crate::event_loop::EventLoop;

/// A descriptor that is readable while a call may be worth repeating: the event loop has
/// something to read, or the stream was woken after a call that would have waited.
#[derive(Debug)]
pub(super) struct Readiness {
    epoll: Epoll,
    woken: Arc<Woken>,
}

/// Readable once it was woken.
#[derive(Debug)]
struct Woken(EventFd);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Fails only if it is readable already.
        let _ = self.0.write(1);
    }
}

impl Readiness {
    /// Readable at first: nobody has looked yet.
    fn new(event_loop: &EventLoop) -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let woken = Arc::new(Woken(EventFd::from_value_and_flags(1, flags)?));
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for descriptor in [woken.0.as_fd(), event_loop.readiness()] {
            epoll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        }
        Ok(Self { epoll, woken })
    }

    /// From now on it is readable after the next wake-up.
    fn clear(&self) {
        // Fails only if it is not readable.
        let _ = self.woken.0.read();
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

    /// Handles what has come, instead of waiting for it, and calls `take` again, which has
    /// returned nothing. If it returns nothing once more, the descriptor becomes readable when
    /// the next call may return something.
    pub(crate) fn retry<T>(
        &self,
        interest: StreamInterest,
        mut take: impl FnMut() -> Option<T>,
    ) -> io::Result<T> {
        let event_loop = self.event_loop();
        let failures = event_loop.failures();
        if let Some(readiness) = self.readiness.get() {
            readiness.clear();
            self.queue_pair().arm_for(interest);
        }
        event_loop.run_once();
        if let Some(item) = take() {
            return Ok(item);
        }
        event_loop.failed_since(failures)?;
        Err(io::ErrorKind::WouldBlock.into())
    }
}
