//! What tokio's traits of streams and those of futures have in common.

/// Implements `AsyncWrite` with this method that closes, and the methods that only this trait has.
macro_rules! write_by {
    ($AsyncWrite:ident for $type:ty, $close:ident, {$($more:item)*}) => {
        impl $AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Self::poll_write_vectored(&self, context, &[std::io::IoSlice::new(bytes)])
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                slices: &[std::io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Self::poll_write_vectored(&self, context, slices)
            }

            /// Does nothing: what was written is in flight.
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            /// Closes the stream for writing. The peer reads everything that was written
            /// before, then the end of the stream. Fails if the stream has failed.
            fn $close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                let how = rdmacm_rsocket::How::Write;
                Poll::Ready(Ok(self.inner.shut_down_or_fail(how)?))
            }

            $($more)*
        }
    };
}

/// Implements `AsyncBufRead` for [`InPlaceReader`](super::in_place_reader::InPlaceReader).
macro_rules! read_in_place_by {
    ($AsyncBufRead:ident) => {
        impl $AsyncBufRead for InPlaceReader {
            fn poll_fill_buf(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<&[u8]>> {
                self.get_mut().poll_received(context)
            }

            fn consume(self: Pin<&mut Self>, bytes: usize) {
                InPlaceReader::consume(self.get_mut(), bytes);
            }
        }
    };
}

pub(super) use {read_in_place_by, write_by};
