//! A descriptor for `poll(2)` of one stream or listener of a node.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// Readable while one of its sources is, or it is made so: what another caller has read of a source
/// was for its owner.
///
/// The kernel limits how many descriptors depend on one, and allows fewer the more lie between
/// (`path_limits` of fs/eventpoll.c). So a stream does not depend on the descriptor of its node, but
/// on those that the node depends on.
#[derive(Debug)]
pub(super) struct Descriptor {
    epoll: Epoll,
    ready: EventFd,
}

impl Descriptor {
    /// Marked at first: nobody has looked yet.
    pub(super) fn new<'a>(sources: impl IntoIterator<Item = BorrowedFd<'a>>) -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let ready = EventFd::from_value_and_flags(1, flags)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let readable = || EpollEvent::new(EpollFlags::EPOLLIN, 0);
        epoll.add(ready.as_fd(), readable())?;
        for source in sources {
            epoll.add(source, readable())?;
        }
        Ok(Self { epoll, ready })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    /// Fails only if it is readable already.
    pub(super) fn set_ready(&self) {
        let _ = self.ready.write(1);
    }

    /// Fails only if it is not readable.
    pub(super) fn clear_ready(&self) {
        let _ = self.ready.read();
    }

    /// From now on it is never readable.
    pub(super) fn end<'a>(&self, sources: impl IntoIterator<Item = BorrowedFd<'a>>) {
        for source in sources {
            let _ = self.epoll.delete(source);
        }
        let _ = self.epoll.delete(self.ready.as_fd());
    }
}
