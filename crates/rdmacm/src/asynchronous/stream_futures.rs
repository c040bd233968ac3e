//! Streams as readers and writers of futures, for any runtime.

use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncBufRead, AsyncRead, AsyncWrite};
use rdmacm_rsocket::How;

use super::in_place_reader::InPlaceReader;
use super::rdma_stream::RdmaStream;
use super::stream_halves::{OwnedReadHalf, OwnedWriteHalf};

macro_rules! read_by {
    ($($type:ty),+) => {
        $(impl AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                into: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                Self::poll_read_vectored(&self, context, &mut [IoSliceMut::new(into)])
            }

            fn poll_read_vectored(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                slices: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                Self::poll_read_vectored(&self, context, slices)
            }
        })+
    };
}

macro_rules! write_by {
    ($($type:ty),+) => {
        $(impl AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Self::poll_write_vectored(&self, context, &[IoSlice::new(bytes)])
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                slices: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Self::poll_write_vectored(&self, context, slices)
            }

            /// Does nothing: what was written is in flight.
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            /// Closes the stream for writing. The peer reads everything that was written
            /// before, then the end of the stream. Fails if the stream has failed.
            fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(self.inner.shut_down_or_fail(How::Write)?))
            }
        })+
    };
}

read_by!(RdmaStream, OwnedReadHalf);
write_by!(RdmaStream, OwnedWriteHalf);

impl AsyncRead for InPlaceReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.half).poll_read(context, into)
    }
}

impl AsyncBufRead for InPlaceReader {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.get_mut().poll_received(context)
    }

    fn consume(self: Pin<&mut Self>, bytes: usize) {
        InPlaceReader::consume(self.get_mut(), bytes);
    }
}
