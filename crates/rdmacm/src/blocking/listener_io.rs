//! Listeners whose calls do not wait.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use super::RdmaListener;

impl RdmaListener {
    /// Whether [`accept`](Self::accept), and [`incoming`](Self::incoming), fail with
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) instead of waiting. The first time, the listener
    /// gets a [descriptor](Self::as_fd) of its own, which takes two. The streams that it accepts
    /// wait, until [`RdmaStream::set_nonblocking`](super::RdmaStream::set_nonblocking) says
    /// otherwise.
    ///
    /// # Errors
    /// Those of `eventfd(2)`, `epoll_create1(2)` and `epoll_ctl(2)`, for want of descriptors or
    /// memory, and for too many such listeners and streams of one [`Node`](crate::Node).
    #[doc(
        alias = "rfcntl",
        alias = "O_NONBLOCK",
        alias = "rpoll",
        alias = "rselect",
        alias = "repoll_create",
        alias = "repoll_ctl",
        alias = "repoll_wait"
    )]
    pub fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        let ids = self.listener.listening_ids();
        self.handshakes.set_nonblocking(ids, is_nonblocking)
    }
}

impl AsFd for RdmaListener {
    /// A descriptor for `poll(2)`, `epoll(7)` and the crates around them: after
    /// [`accept`](Self::accept) has returned [`WouldBlock`](io::ErrorKind::WouldBlock), it is
    /// readable when the call is worth repeating. It may be readable for nothing, and each step of
    /// a handshake makes it readable. Nothing can be read from it. The kernel limits how many of a
    /// node's descriptors can be waited for: about a hundred listeners for `poll(2)`, and fifty in an
    /// `epoll(7)` of the caller's. [Streams](super::RdmaStream#impl-AsFd-for-RdmaStream) can be more.
    ///
    /// The listener has a descriptor of its own once [`set_nonblocking`](Self::set_nonblocking) was
    /// called; before, this is the descriptor of its [`Node`](crate::Node). Two events do not make
    /// it readable: a peer does not complete its handshake in time, and [siw
    /// closes](crate::Listener#siw) the listener's socket. Only a call of `accept` detects them, so
    /// call it every few seconds in any case.
    ///
    /// ```no_run
    /// # fn example() -> std::io::Result<()> {
    /// use std::io::ErrorKind;
    /// use std::os::fd::AsFd as _;
    /// use nix::poll::{PollFd, PollFlags, poll};
    /// use rdmacm::RdmaListener;
    ///
    /// let listener = RdmaListener::bind("[::]:7471")?;
    /// listener.set_nonblocking(true)?;
    /// let (stream, peer) = loop {
    ///     match listener.accept() {
    ///         Err(error) if error.kind() == ErrorKind::WouldBlock => {}
    ///         accepted => break accepted?,
    ///     }
    ///     let mut descriptors = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    ///     poll(&mut descriptors, 5000_u16)?;
    /// };
    /// # drop((stream, peer));
    /// # Ok(())
    /// # }
    /// ```
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handshakes.descriptor(self.listener.listening_ids())
    }
}

impl AsRawFd for RdmaListener {
    /// As [`AsFd`].
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
