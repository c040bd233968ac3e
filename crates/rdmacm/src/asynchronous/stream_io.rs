//! Streams of tasks: reading, writing.

use std::io::{IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::task::{Context, Poll};

use super::rdma_stream::{RdmaStream, how};
use crate::error::Result;
use crate::stream::{Reading, StreamHandle};

/// Reads into slices what arrives next.
pub(super) fn poll_read(
    inner: &StreamHandle,
    context: &mut Context<'_>,
    slices: &mut [IoSliceMut<'_>],
) -> Poll<Result<usize>> {
    if slices.iter().all(|slice| slice.is_empty()) {
        return Poll::Ready(Ok(0));
    }
    inner.poll_read(context, Reading::Take, slices)
}

impl RdmaStream {
    /// Reads what arrives next, once something has. The last caller's waker is woken. No bytes
    /// are the end of the stream.
    ///
    /// # Errors
    /// Why the stream has failed.
    pub fn poll_read_vectored(
        &self,
        context: &mut Context<'_>,
        slices: &mut [IoSliceMut<'_>],
    ) -> Poll<Result<usize>> {
        poll_read(&self.inner, context, slices)
    }

    /// Writes once there is room. The last caller's waker is woken.
    ///
    /// # Errors
    /// Why the stream has failed.
    pub fn poll_write_vectored(
        &self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.inner.poll_write(context, slices)
    }

    /// Closes one direction or both. The peer reads everything that was written before, then the
    /// end of the stream; closing the direction of reading tells the peer nothing. Never waits.
    #[doc(alias = "rshutdown")]
    pub fn shut_down(&self, direction: Shutdown) {
        self.inner.shut_down(how(direction));
    }
}
