//! Streams as tokio's readers and writers.

use std::io::{self, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

use super::in_place_reader::InPlaceReader;
use super::rdma_stream::RdmaStream;
use super::stream_halves::{OwnedReadHalf, OwnedWriteHalf};
use super::stream_traits::{read_in_place_by, write_by};

macro_rules! read_by {
    ($($type:ty),+) => {
        $(impl AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                into: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let room = into.initialize_unfilled();
                let read = Self::poll_read_vectored(&self, context, &mut [IoSliceMut::new(room)]);
                into.advance(ready!(read)?);
                Poll::Ready(Ok(()))
            }
        })+
    };
}

read_by!(RdmaStream, OwnedReadHalf);
write_by!(AsyncWrite for RdmaStream, poll_shutdown, {
    fn is_write_vectored(&self) -> bool {
        true
    }
});
write_by!(AsyncWrite for OwnedWriteHalf, poll_shutdown, {
    fn is_write_vectored(&self) -> bool {
        true
    }
});

impl AsyncRead for InPlaceReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.half).poll_read(context, into)
    }
}

read_in_place_by!(AsyncBufRead);
