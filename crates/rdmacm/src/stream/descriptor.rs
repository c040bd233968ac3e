//! A descriptor for `poll(2)` of one stream or listener of a node.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::event_loop::EventLoop;

/// Readable while the event loop has something to read, or it is marked: what another caller has
/// read of the event loop was for its owner.
#[derive(Debug)]
pub(super) struct Descriptor {
    epoll: Epoll,
    mark: EventFd,
}

impl Descriptor {
    /// Marked at first: nobody has looked yet.
    pub(super) fn new(event_loop: &EventLoop) -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let mark = EventFd::from_value_and_flags(1, flags)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for descriptor in [mark.as_fd(), event_loop.readiness()] {
            epoll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        }
        Ok(Self { epoll, mark })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    /// Fails only if it is marked already.
    pub(super) fn set_mark(&self) {
        let _ = self.mark.write(1);
    }

    /// Fails only if it is not marked.
    pub(super) fn clear_mark(&self) {
        let _ = self.mark.read();
    }

    /// From now on it is never readable.
    pub(super) fn end(&self, event_loop: &EventLoop) {
        for descriptor in [self.mark.as_fd(), event_loop.readiness()] {
            let _ = self.epoll.delete(descriptor);
        }
    }
}
