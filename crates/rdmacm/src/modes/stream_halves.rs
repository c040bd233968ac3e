//! A byte stream in two halves.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rdmacm_rsocket::How;

use super::RdmaStream;
use crate::reunite_error::ReuniteError;
use crate::stream::{SendSlot, StreamHandle};

/// The half of a stream that reads, see [`RdmaStream::into_split`].
///
/// Dropping it sends nothing to the peer. The stream is closed with its other half.
#[derive(Debug)]
pub struct OwnedReadHalf {
    pub(super) inner: Arc<StreamHandle>,
    is_reunited: bool,
}

/// The half of a stream that writes, see [`RdmaStream::into_split`].
///
/// Dropping it closes the stream for writing: the peer reads everything that was written before,
/// then the end of the stream. [`forget`](Self::forget) does not do so.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    pub(super) inner: Arc<StreamHandle>,
    on_drop: WriterDrop,
}

/// What dropping a half that writes does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriterDrop {
    Closes,
    Forgets,
    /// It is part of the whole stream again.
    Nothing,
}

impl RdmaStream {
    /// Splits the stream into halves that different threads or tasks can own. A read and a write
    /// wait for each other only while the read handles or sends a message about memory or credits.
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        let write = OwnedWriteHalf {
            inner: Arc::clone(&self.inner),
            on_drop: WriterDrop::Closes,
        };
        let read = OwnedReadHalf {
            inner: self.inner,
            is_reunited: false,
        };
        (read, write)
    }
}

impl OwnedReadHalf {
    /// The whole stream again.
    ///
    /// # Errors
    /// The halves, if they are of different streams.
    pub fn reunite(
        mut self,
        mut write: OwnedWriteHalf,
    ) -> Result<RdmaStream, ReuniteError<Self, OwnedWriteHalf>> {
        if !Arc::ptr_eq(&self.inner, &write.inner) {
            return Err(ReuniteError(self, write));
        }
        self.is_reunited = true;
        write.on_drop = WriterDrop::Nothing;
        let inner = Arc::clone(&self.inner);
        Ok(RdmaStream { inner })
    }
}

impl Drop for OwnedReadHalf {
    fn drop(&mut self) {
        if !self.is_reunited && !self.inner.is_in_child() {
            self.inner.has_given_up_reading();
        }
    }
}

impl OwnedWriteHalf {
    waits! {
        /// As [`RdmaStream::reserve`].
        ///
        /// # Errors
        /// Those of [`RdmaStream::reserve`].
        pub fn reserve(&mut self, bytes: usize) -> io::Result<SendSlot<'_>> {
            self.inner.event_loop() => self.inner.reserve(bytes)
        }
    }

    /// Disconnects at once, as [`RdmaStream::abort`] does.
    pub fn abort(self) {
        self.inner.abort();
    }

    /// Drops the half without closing the stream for writing. The stream is closed when the other
    /// half is dropped, and now if it was.
    pub fn forget(mut self) {
        self.on_drop = WriterDrop::Forgets;
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.inner.is_in_child() {
            return;
        }
        match self.on_drop {
            WriterDrop::Closes => self.inner.shut_down(How::Write),
            WriterDrop::Forgets => self.inner.has_given_up_writing(),
            WriterDrop::Nothing => {}
        }
    }
}

/// What a stream and its halves have in common.
macro_rules! addresses {
    ($($type:ty),+) => {
        $(impl $type {
            /// The address of this side.
            ///
            /// # Errors
            /// The id was destroyed, or has an address that is not of IP.
            #[doc(alias = "rgetsockname")]
            pub fn local_addr(&self) -> io::Result<SocketAddr> {
                Ok(self.inner.local_addr()?)
            }

            /// The address of the peer.
            ///
            /// # Errors
            /// The id was destroyed, or has an address that is not of IP.
            #[doc(alias = "rgetpeername")]
            pub fn peer_addr(&self) -> io::Result<SocketAddr> {
                Ok(self.inner.peer_addr()?)
            }
        })+
    };
}

addresses!(RdmaStream, OwnedReadHalf, OwnedWriteHalf);
