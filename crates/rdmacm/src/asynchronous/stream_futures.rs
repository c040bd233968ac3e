//! Streams as readers and writers of futures, for any runtime.

use std::io::{self, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncBufRead, AsyncRead, AsyncWrite};

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

read_by!(RdmaStream, OwnedReadHalf);
write_by!(AsyncWrite for RdmaStream, poll_close, {});
write_by!(AsyncWrite for OwnedWriteHalf, poll_close, {});

impl AsyncRead for InPlaceReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.half).poll_read(context, into)
    }
}

read_in_place_by!(AsyncBufRead);
