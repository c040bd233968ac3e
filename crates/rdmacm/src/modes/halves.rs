//! The two halves of a connection.

use std::io::IoSlice;
use std::sync::Arc;

use rdmacm_core::{AccessFlags, Deadline};
use rdmacm_verbs::{Buffer, RemoteAccessRegion, RemoteMemory};

use super::{Connection, Transfer};
use crate::close_reason::CloseReason;
use crate::error::Result;
use crate::messages::{
    Message, MessageConnection, NewTransfer, RegisteredBuffer, TransferError, TrySent,
};
use crate::reunite_error::ReuniteError;

by_mode! {
    /// The half of a connection that sends, reads and writes, see
    /// [`Connection::into_split`].
    ///
    blocking {
        /// ```no_run
        /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use std::thread;
        /// use rdmacm::{CLOSE_DEADLINE, Connector};
        ///
        /// let (send, receive) = Connector::new("storage-7:7471").connect()?.into_split();
        /// let replies = thread::spawn(move || -> rdmacm::Result<usize> {
        ///     let mut count = 0;
        ///     while receive.receive()?.is_some() {
        ///         count += 1;
        ///     }
        ///     Ok(count)
        /// });
        /// send.send(b"one")?;
        /// send.send(b"two")?;
        /// send.close(CLOSE_DEADLINE)?;
        /// println!("{:?} replies", replies.join());
        /// # Ok(())
        /// # }
        /// ```
    }
    awaited {
        /// ```no_run
        /// # #[cfg(feature = "tokio")]
        /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use rdmacm::CLOSE_DEADLINE;
        /// use rdmacm::tokio::Connector;
        ///
        /// let connection = Connector::new("storage-7:7471").connect().await?;
        /// let (send, receive) = connection.into_split();
        /// let replies = tokio::spawn(async move {
        ///     let mut count = 0;
        ///     while receive.receive().await?.is_some() {
        ///         count += 1;
        ///     }
        ///     Ok::<usize, rdmacm::Error>(count)
        /// });
        /// send.send(b"one").await?;
        /// send.send(b"two").await?;
        /// send.close(CLOSE_DEADLINE).await?;
        /// println!("{} replies", replies.await??);
        /// # Ok(())
        /// # }
        /// ```
    }
    /// Dropping only this half does not notify the peer, which goes on waiting: [`close`](Self::close)
    /// disconnects.
    #[derive(Debug)]
    pub struct SendHalf {
        inner: Arc<MessageConnection>,
    }
}

/// The half of a connection that receives, see [`Connection::into_split`].
#[derive(Debug)]
pub struct ReceiveHalf {
    inner: Arc<MessageConnection>,
}

impl SendHalf {
    pub(super) fn new(inner: Arc<MessageConnection>) -> Self {
        Self { inner }
    }

    /// The whole connection again.
    ///
    /// # Errors
    /// The halves, if they are of different connections.
    pub fn reunite(
        self,
        receive: ReceiveHalf,
    ) -> Result<Connection, ReuniteError<Self, ReceiveHalf>> {
        if Arc::ptr_eq(&self.inner, &receive.inner) {
            drop(receive);
            Ok(Connection::from_shared(self.inner))
        } else {
            Err(ReuniteError(self, receive))
        }
    }

    /// As [`Connection::allocate`].
    ///
    /// # Errors
    /// Those of [`Connection::allocate`].
    pub fn allocate(&self, length: usize) -> Result<Buffer> {
        self.inner.allocate(length)
    }

    /// As [`Connection::expose`].
    ///
    /// # Errors
    /// Those of [`Connection::expose`].
    pub fn expose(&self, length: usize, access: AccessFlags) -> Result<RemoteAccessRegion> {
        self.inner.expose(length, access)
    }

    /// As [`Connection::set_deadline`], for both halves.
    pub fn set_deadline(&self, deadline: impl Into<Deadline>) {
        self.inner.set_deadline(deadline.into());
    }

    /// As [`Connection::try_send`].
    ///
    /// # Errors
    /// Those of [`Connection::try_send`].
    pub fn try_send(&self, message: &[u8]) -> Result<TrySent> {
        self.inner.try_send(&[IoSlice::new(message)])
    }

    waits! {
        /// As [`Connection::send`].
        ///
        /// # Errors
        /// Those of [`Connection::send`].
        pub fn send(&self, message: &[u8]) -> Result<()> {
            self.inner.event_loop() => async { self.inner.send(&[IoSlice::new(message)]).await },
            at_once: self.inner.send_now(&[IoSlice::new(message)])
        }
    }

    waits! {
        /// As [`Connection::send_vectored`].
        ///
        /// # Errors
        /// Those of [`Connection::send`].
        pub fn send_vectored(&self, slices: &[IoSlice<'_>]) -> Result<()> {
            self.inner.event_loop() => self.inner.send(slices),
            at_once: self.inner.send_now(slices)
        }
    }

    waits! {
        /// As [`Connection::flush`].
        ///
        /// # Errors
        /// Those of [`Connection::flush`].
        pub fn flush(&self) -> Result<()> {
            self.inner.event_loop() => self.inner.flush()
        }
    }

    waits! {
        /// As [`Connection::send_buffer`].
        ///
        /// # Errors
        /// Those of [`Connection::send_buffer`].
        pub fn send_buffer<B: RegisteredBuffer>(&self, buffer: B) -> Result<B, TransferError<B>> {
            self.inner.event_loop() => self.inner.transfer(NewTransfer::send(buffer))
        }
    }

    waits! {
        /// As [`Connection::read`].
        ///
        /// # Errors
        /// Those of [`Connection::read`].
        pub fn read<B: RegisteredBuffer>(
            &self,
            into: B,
            from: RemoteMemory
        ) -> Result<B, TransferError<B>> {
            self.inner.event_loop() => self.inner.transfer(NewTransfer::read(into, from))
        }
    }

    waits! {
        /// As [`Connection::write`].
        ///
        /// # Errors
        /// Those of [`Connection::write`].
        pub fn write<B: RegisteredBuffer>(
            &self,
            from: B,
            to: RemoteMemory
        ) -> Result<B, TransferError<B>> {
            self.inner.event_loop() => self.inner.transfer(NewTransfer::write(from, to))
        }
    }

    waits! {
        /// As [`Connection::start_send`].
        ///
        /// # Errors
        /// Those of [`Connection::start_send`].
        pub fn start_send<B: RegisteredBuffer>(
            &self,
            buffer: B
        ) -> Result<Transfer<'_, B>, TransferError<B>> {
            let transfer = Transfer::start_now(&self.inner, NewTransfer::send(buffer));
            self.inner.event_loop() => Transfer::start(&self.inner, transfer)
        }
    }

    waits! {
        /// As [`Connection::start_read`].
        ///
        /// # Errors
        /// Those of [`Connection::start_read`].
        pub fn start_read<B: RegisteredBuffer>(
            &self,
            into: B,
            from: RemoteMemory
        ) -> Result<Transfer<'_, B>, TransferError<B>> {
            let transfer = Transfer::start_now(&self.inner, NewTransfer::read(into, from));
            self.inner.event_loop() => Transfer::start(&self.inner, transfer)
        }
    }

    waits! {
        /// As [`Connection::start_write`].
        ///
        /// # Errors
        /// Those of [`Connection::start_write`].
        pub fn start_write<B: RegisteredBuffer>(
            &self,
            from: B,
            to: RemoteMemory
        ) -> Result<Transfer<'_, B>, TransferError<B>> {
            let transfer = Transfer::start_now(&self.inner, NewTransfer::write(from, to));
            self.inner.event_loop() => Transfer::start(&self.inner, transfer)
        }
    }

    waits! {
        /// As [`Connection::close`]. The other half receives `None`.
        ///
        /// # Errors
        /// Those of [`Connection::close`].
        pub fn close(&self, deadline: impl Into<Deadline>) -> Result<()> {
            self.inner.event_loop() => self.inner.close(deadline.into())
        }
    }
}

impl ReceiveHalf {
    pub(super) fn new(inner: Arc<MessageConnection>) -> Self {
        Self { inner }
    }

    /// As [`Connection::try_receive`].
    ///
    /// # Errors
    /// Those of [`Connection::try_receive`].
    pub fn try_receive(&self) -> Result<Option<Message>> {
        self.inner.try_receive()
    }

    waits! {
        /// As [`Connection::receive`].
        ///
        /// # Errors
        /// Those of [`Connection::receive`].
        pub fn receive(&self) -> Result<Option<Message>> {
            self.inner.event_loop() => self.inner.receive(),
            at_once: self.inner.receive_now()
        }
    }

    waits! {
        /// As [`Connection::closed`].
        ///
        /// # Errors
        /// Those of [`Connection::closed`].
        pub fn closed(&self, deadline: impl Into<Deadline>) -> Result<CloseReason> {
            self.inner.event_loop() => self.inner.closed(deadline.into())
        }
    }
}
