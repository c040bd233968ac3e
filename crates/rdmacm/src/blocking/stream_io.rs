//! Streams of threads: reading, writing, timeouts.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use rdmacm_core::Deadline;

use super::rdma_stream::{RdmaStream, how};
use super::stream_halves::{OwnedReadHalf, OwnedWriteHalf};
use crate::data::checked_timeout;
use crate::error::Result;
use crate::event_loop::block_on;
use crate::stage::Stage;
use crate::stream::{Reading, StreamHandle, StreamInterest};

/// The longest write that polls for room before it sleeps. Room for a longer one takes its time,
/// and a device in software needs the processor.
const MAX_BUSY_WRITE: usize = 4096;

impl RdmaStream {
    /// Closes one direction or both. The peer reads everything that was written before, then the
    /// end of the stream. Closing the direction of reading alone sends nothing to the peer; once both
    /// are closed, the peer is notified, and its writes fail. Never waits.
    ///
    /// Wakes threads that wait to read or write: in a direction that is closed, reads return 0 bytes
    /// and writes fail with [`BrokenPipe`](io::ErrorKind::BrokenPipe).
    ///
    /// # Errors
    /// Why the stream has failed.
    #[doc(alias = "rshutdown")]
    pub fn shutdown(&self, direction: Shutdown) -> io::Result<()> {
        Ok(self.inner.shut_down_or_fail(how(direction))?)
    }

    /// Whether reads and writes that would wait fail with
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) instead. The first time, the stream gets a
    /// [descriptor](Self::as_fd) of its own, which takes two.
    ///
    /// # Errors
    /// Those of `eventfd(2)`, `epoll_create1(2)` and `epoll_ctl(2)`, for want of descriptors or
    /// memory, and for too many such streams of one [`Node`](crate::Node).
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
        if is_nonblocking {
            self.inner.make_descriptor()?;
        }
        self.inner.timeouts().is_nonblocking = is_nonblocking;
        Ok(())
    }
}

impl AsFd for RdmaStream {
    /// A descriptor for `poll(2)`, `epoll(7)` and the crates around them. After a call has returned
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), the descriptor is readable when that call is
    /// worth repeating, for reads and writes alike. It may be readable although the call then
    /// returns `WouldBlock` again. Nothing can be read from it.
    ///
    /// After a write was refused, the descriptor is readable whenever there may be room, until you
    /// repeat the write or give it up with [`shutdown`](Self::shutdown). A later write or
    /// reservation that succeeds also ends this, and so does a write at an offset for a refused
    /// map, and the reverse. If one thread waits to read and another one to write, a call of either
    /// also checks the direction of the other.
    ///
    /// The descriptors of a node's streams depend on those of the node, and the kernel limits how
    /// many descriptors may: about five hundred for `poll(2)`, but only a hundred in an `epoll(7)`
    /// of your own, where `epoll_ctl(2)` then fails with `EINVAL`. For more streams use several
    /// nodes, threads or an async runtime. A stream that is accepted stays on the listener's node.
    ///
    /// It belongs to the stream once [`set_nonblocking`](Self::set_nonblocking) was called;
    /// before, it is that of the stream's [`Node`](crate::Node). Keep-alives are sent only by
    /// calls that wait.
    ///
    /// ```no_run
    /// # fn example(stream: &rdmacm::RdmaStream) -> std::io::Result<()> {
    /// use std::io::{ErrorKind, Read as _};
    /// use std::os::fd::AsFd as _;
    /// use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    ///
    /// stream.set_nonblocking(true)?;
    /// let mut bytes = [0; 1024];
    /// let length = loop {
    ///     match (&*stream).read(&mut bytes) {
    ///         Err(error) if error.kind() == ErrorKind::WouldBlock => {}
    ///         read => break read?,
    ///     }
    ///     let mut descriptors = [PollFd::new(stream.as_fd(), PollFlags::POLLIN)];
    ///     poll(&mut descriptors, PollTimeout::NONE)?;
    /// };
    /// # drop(length);
    /// # Ok(())
    /// # }
    /// ```
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.descriptor()
    }
}

impl AsRawFd for RdmaStream {
    /// As [`AsFd`].
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl AsFd for OwnedReadHalf {
    /// The descriptor of the stream, which is that of both halves: it is readable for reads and for
    /// writes. It belongs to the stream if [`RdmaStream::set_nonblocking`] was called before the
    /// stream was split.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.descriptor()
    }
}

impl AsRawFd for OwnedReadHalf {
    /// As [`AsFd`].
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl AsFd for OwnedWriteHalf {
    /// The descriptor of the stream, which is that of both halves: it is readable for reads and for
    /// writes. It belongs to the stream if [`RdmaStream::set_nonblocking`] was called before the
    /// stream was split.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.descriptor()
    }
}

impl AsRawFd for OwnedWriteHalf {
    /// As [`AsFd`].
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// Reads into slices, not all of which are empty.
pub(super) fn read_some(
    inner: &StreamHandle,
    reading: Reading,
    slices: &mut [IoSliceMut<'_>],
) -> io::Result<usize> {
    if let Some(outcome) = inner.try_read(reading, slices) {
        return has_read(inner, reading, outcome);
    }
    let Some(deadline) = inner.timeouts().read_deadline() else {
        let read = || inner.try_read(reading, slices);
        let outcome = inner.retry(StreamInterest::Readable, Stage::Receive, read)?;
        return has_read(inner, reading, outcome);
    };
    if deadline == Deadline::Never {
        let outcome = inner.read_busily(reading, slices);
        if let Some(outcome) = outcome.or_else(|| inner.read_on_thread(reading, slices)) {
            return Ok(outcome?);
        }
    }
    let read = inner.read(reading, slices, deadline);
    Ok(block_on(inner.event_loop(), read)?)
}

/// What a read has returned that did not wait. The end that was peeked at is still to be read.
fn has_read(inner: &StreamHandle, reading: Reading, outcome: Result<usize>) -> io::Result<usize> {
    inner.has_read(reading != Reading::Peek && matches!(outcome, Ok(0)));
    Ok(outcome?)
}

fn read(
    inner: &StreamHandle,
    reading: Reading,
    slices: &mut [IoSliceMut<'_>],
) -> io::Result<usize> {
    if slices.iter().all(|slice| slice.is_empty()) {
        return Ok(0);
    }
    read_some(inner, reading, slices)
}

fn write(inner: &StreamHandle, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    // Not a write for the descriptor: one that was refused may still wait for room.
    if slices.iter().all(|slice| slice.is_empty()) {
        return Ok(0);
    }
    if let Some(outcome) = inner.try_write(slices) {
        inner.has_written(StreamInterest::Writable);
        return Ok(outcome?);
    }
    let Some(deadline) = inner.timeouts().write_deadline() else {
        let write = || inner.try_write(slices);
        let outcome = inner.retry(StreamInterest::Writable, Stage::Send, write)?;
        inner.has_written(StreamInterest::Writable);
        return Ok(outcome?);
    };
    let lengths = slices.iter().map(|slice| slice.len());
    let is_short = lengths.fold(0, usize::saturating_add) <= MAX_BUSY_WRITE;
    if is_short && deadline == Deadline::Never {
        if let Some(outcome) = inner.write_busily(slices) {
            return Ok(outcome?);
        }
    }
    Ok(block_on(inner.event_loop(), inner.write(slices, deadline))?)
}

/// What a stream and its half that reads have in common.
macro_rules! read_by {
    ($($type:ty),+) => {
        $(impl $type {
            /// Reads what arrives next without removing it. No bytes are the end of the stream.
            ///
            /// # Errors
            /// Those of reading.
            #[doc(alias = "MSG_PEEK")]
            pub fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
                read(&self.inner, Reading::Peek, &mut [IoSliceMut::new(into)])
            }

            /// How long a read waits; without limit by default.
            ///
            /// # Errors
            /// [`InvalidInput`](io::ErrorKind::InvalidInput) for zero.
            #[doc(alias = "SO_RCVTIMEO")]
            pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.inner.timeouts().read = checked_timeout(timeout)?;
                Ok(())
            }

            /// The value set by [`set_read_timeout`](Self::set_read_timeout).
            #[must_use]
            pub fn read_timeout(&self) -> Option<Duration> {
                self.inner.timeouts().read
            }
        })+
    };
}

/// What a stream and its half that writes have in common.
macro_rules! write_by {
    ($($type:ty),+) => {
        $(impl $type {
            /// How long a write waits for room; without limit by default.
            ///
            /// # Errors
            /// [`InvalidInput`](io::ErrorKind::InvalidInput) for zero.
            #[doc(alias = "SO_SNDTIMEO")]
            pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.inner.timeouts().write = checked_timeout(timeout)?;
                Ok(())
            }

            /// The value set by [`set_write_timeout`](Self::set_write_timeout).
            #[must_use]
            pub fn write_timeout(&self) -> Option<Duration> {
                self.inner.timeouts().write
            }
        })+
    };
}

read_by!(RdmaStream, OwnedReadHalf);
write_by!(RdmaStream, OwnedWriteHalf);

macro_rules! impl_read {
    ($($type:ty),+) => {
        $(impl Read for $type {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                read(&self.inner, Reading::Take, &mut [IoSliceMut::new(into)])
            }

            fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                read(&self.inner, Reading::Take, slices)
            }
        })+
    };
}

macro_rules! impl_write {
    ($($type:ty),+) => {
        $(impl Write for $type {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                write(&self.inner, &[IoSlice::new(bytes)])
            }

            fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
                write(&self.inner, slices)
            }

            /// Does nothing: what was written is in flight.
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        })+
    };
}

impl_read!(RdmaStream, &RdmaStream, OwnedReadHalf);
impl_write!(RdmaStream, &RdmaStream, OwnedWriteHalf);
