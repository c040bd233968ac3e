//! Streams of tasks: reading, writing.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::task::{Context, Poll};

use rdmacm_core::Deadline;

use super::cooperation::{consume_budget, poll_in_turn};
use super::rdma_stream::{RdmaStream, how};
use super::stream_halves::{OwnedReadHalf, OwnedWriteHalf};
use crate::error::Result;
use crate::stream::{Reading, StreamHandle};

/// Reads into slices what arrives next.
fn poll_read(
    inner: &StreamHandle,
    context: &mut Context<'_>,
    reading: Reading,
    slices: &mut [IoSliceMut<'_>],
) -> Poll<Result<usize>> {
    if slices.iter().all(|slice| slice.is_empty()) {
        return Poll::Ready(Ok(0));
    }
    poll_in_turn(context, |context| inner.poll_read(context, reading, slices))
}

async fn peek(inner: &StreamHandle, into: &mut [u8]) -> io::Result<usize> {
    if into.is_empty() {
        return Ok(0);
    }
    consume_budget().await;
    let slices = &mut [IoSliceMut::new(into)];
    let peeked = match inner.try_read(Reading::Peek, slices) {
        Some(peeked) => peeked,
        None => inner.read(Reading::Peek, slices, Deadline::Never).await,
    };
    Ok(peeked?)
}

fn try_read(inner: &StreamHandle, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    if slices.iter().all(|slice| slice.is_empty()) {
        return Ok(0);
    }
    done_at_once(inner.try_read(Reading::Take, slices))
}

fn done_at_once(outcome: Option<Result<usize>>) -> io::Result<usize> {
    let outcome = outcome.ok_or(io::ErrorKind::WouldBlock)?;
    Ok(outcome?)
}

/// What a stream and its half that reads have in common.
macro_rules! read_by {
    ($($type:ty),+) => {
        $(impl $type {
            /// Reads what arrives next, once something has, without removing it. No bytes are the
            /// end of the stream.
            ///
            /// Dropping the future reads nothing.
            ///
            /// # Errors
            /// Why the stream has failed.
            #[doc(alias = "MSG_PEEK")]
            pub async fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
                peek(&self.inner, into).await
            }

            /// Polls as [`peek`](Self::peek) does. The waker of the last caller that polls to read
            /// is woken.
            ///
            /// # Errors
            /// Why the stream has failed.
            pub fn poll_peek(
                &self,
                context: &mut Context<'_>,
                into: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                let slices = &mut [IoSliceMut::new(into)];
                let peeked = poll_read(&self.inner, context, Reading::Peek, slices);
                peeked.map_err(io::Error::from)
            }

            /// Waits until [`try_read`](Self::try_read) has something to return: bytes, the end of
            /// the stream, or its failure. Another reader may take the bytes before.
            ///
            /// ```no_run
            /// # #[cfg(feature = "tokio")]
            /// # async fn example(stream: rdmacm::tokio::RdmaStream) -> std::io::Result<()> {
            /// use std::io::ErrorKind;
            ///
            /// // The buffer is allocated once bytes have come.
            /// let mut bytes = Vec::new();
            /// loop {
            ///     stream.readable().await?;
            ///     bytes.resize(4096, 0);
            ///     match stream.try_read(&mut bytes) {
            ///         Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            ///         read => {
            ///             bytes.truncate(read?);
            ///             break;
            ///         }
            ///     }
            /// }
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// Dropping the future reads nothing.
            ///
            /// # Errors
            /// The node's events cannot be read.
            #[doc(alias = "rpoll")]
            pub async fn readable(&self) -> io::Result<()> {
                consume_budget().await;
                Ok(self.inner.readable().await?)
            }

            /// Polls as [`readable`](Self::readable) does. The waker of the last caller that polls
            /// to read is woken.
            ///
            /// # Errors
            /// The node's events cannot be read.
            pub fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                let ready = poll_in_turn(context, |context| self.inner.poll_readable(context));
                ready.map_err(io::Error::from)
            }

            /// Reads what has arrived. No bytes are the end of the stream.
            ///
            /// # Errors
            /// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing has arrived; why the stream
            /// has failed. That the connection was lost is known only once a task has waited on
            /// the node.
            #[doc(alias = "MSG_DONTWAIT")]
            pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
                try_read(&self.inner, &mut [IoSliceMut::new(into)])
            }

            /// As [`try_read`](Self::try_read), into several slices, one after the other.
            ///
            /// # Errors
            /// Those of [`try_read`](Self::try_read).
            pub fn try_read_vectored(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                try_read(&self.inner, slices)
            }

            /// Reads what arrives next, once something has. The waker of the last caller that polls
            /// to read is woken. No bytes are the end of the stream.
            ///
            /// # Errors
            /// Why the stream has failed.
            pub fn poll_read_vectored(
                &self,
                context: &mut Context<'_>,
                slices: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                let read = poll_read(&self.inner, context, Reading::Take, slices);
                read.map_err(io::Error::from)
            }
        })+
    };
}

/// What a stream and its half that writes have in common.
macro_rules! write_by {
    ($($type:ty),+) => {
        $(impl $type {
            /// Waits until [`try_write`](Self::try_write) has something to return, whatever it
            /// writes: there is room for at least one byte, or the stream has failed or is closed
            /// for writing. Another writer may take the room before.
            ///
            /// Dropping the future writes nothing.
            ///
            /// # Errors
            /// The node's events cannot be read.
            #[doc(alias = "rpoll")]
            pub async fn writable(&self) -> io::Result<()> {
                consume_budget().await;
                Ok(self.inner.writable().await?)
            }

            /// Polls as [`writable`](Self::writable) does. The waker of the last caller that polls
            /// to write is woken.
            ///
            /// # Errors
            /// The node's events cannot be read.
            pub fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                let ready = poll_in_turn(context, |context| self.inner.poll_writable(context));
                ready.map_err(io::Error::from)
            }

            /// Writes what there is room for, and returns how many bytes.
            ///
            /// # Errors
            /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is no room;
            /// [`BrokenPipe`](io::ErrorKind::BrokenPipe) if either side has closed this direction;
            /// why the stream has failed. That the connection was lost is known only once a task
            /// has waited on the node.
            #[doc(alias = "MSG_DONTWAIT")]
            pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
                self.try_write_vectored(&[IoSlice::new(bytes)])
            }

            /// As [`try_write`](Self::try_write), of several slices, one after the other.
            ///
            /// # Errors
            /// Those of [`try_write`](Self::try_write).
            pub fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
                done_at_once(self.inner.try_write(slices))
            }

            /// Writes once there is room. The waker of the last caller that polls to write is
            /// woken.
            ///
            /// # Errors
            /// Why the stream has failed.
            pub fn poll_write_vectored(
                &self,
                context: &mut Context<'_>,
                slices: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                let written =
                    poll_in_turn(context, |context| self.inner.poll_write(context, slices));
                written.map_err(io::Error::from)
            }
        })+
    };
}

read_by!(RdmaStream, OwnedReadHalf);
write_by!(RdmaStream, OwnedWriteHalf);

impl RdmaStream {
    /// Closes one direction or both. The peer reads everything that was written before, then the
    /// end of the stream. Closing the direction of reading alone sends nothing to the peer; once both
    /// are closed, the peer is notified, and its writes fail. Never waits.
    ///
    /// Wakes tasks that wait to read or write: in a direction that is closed, reads return 0 bytes
    /// and writes fail with [`BrokenPipe`](io::ErrorKind::BrokenPipe).
    ///
    /// # Errors
    /// Why the stream has failed, if it has.
    #[doc(alias = "rshutdown")]
    pub fn shut_down(&self, direction: Shutdown) -> io::Result<()> {
        Ok(self.inner.shut_down_or_fail(how(direction))?)
    }
}
