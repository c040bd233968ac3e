//! A transfer that is in flight.

use crate::messages::{
    MessageConnection, NewTransfer, RegisteredBuffer, StartedTransfer, TransferError,
};

by_mode! {
    /// A transfer that is in flight: a message, a read or a write that was posted, and its
    /// memory.
    ///
    blocking {
        /// ```no_run
        /// # use rdmacm::{Connection, Error, verbs::RemoteMemory};
        /// # fn example(connection: &Connection, from: [RemoteMemory; 8]) -> Result<(), Error> {
        /// let mut reads = Vec::new();
        /// for from in from {
        ///     let buffer = connection.allocate(4096)?;
        ///     reads.push(connection.start_read(buffer, from)?);
        /// }
        /// for read in reads {
        ///     let buffer = read.wait()?;
        ///     println!("{}", buffer.len());
        /// }
        /// # Ok(())
        /// # }
        /// ```
        ///
    }
    awaited {
        /// ```no_run
        /// # #[cfg(feature = "tokio")]
        /// # use rdmacm::{Error, tokio::Connection, verbs::RemoteMemory};
        /// # #[cfg(feature = "tokio")]
        /// # async fn example(connection: &Connection, from: [RemoteMemory; 8]) -> Result<(), Error> {
        /// let mut reads = Vec::new();
        /// for from in from {
        ///     let buffer = connection.allocate(4096)?;
        ///     reads.push(connection.start_read(buffer, from).await?);
        /// }
        /// for read in reads {
        ///     let buffer = read.wait().await?;
        ///     println!("{}", buffer.len());
        /// }
        /// # Ok(())
        /// # }
        /// ```
        ///
    }
    both {
        /// If it is dropped before it is done, its memory stays with the queue pair until then,
        /// and is freed.
    }
    #[derive(Debug)]
    #[must_use = "dropping it frees its memory"]
    pub struct Transfer<'connection, B: RegisteredBuffer> {
        started: StartedTransfer<'connection, B>,
    }
}

impl<'connection, B: RegisteredBuffer> Transfer<'connection, B> {
    /// Posts a transfer if there is room for it now.
    pub(super) fn start_now(
        connection: &'connection MessageConnection,
        transfer: NewTransfer<B>,
    ) -> Result<Result<Self, TransferError<B>>, NewTransfer<B>> {
        let started = connection.start_now(transfer)?;
        Ok(started.map(|started| Self { started }))
    }

    /// Posts a transfer once there is room for it.
    pub(super) async fn start(
        connection: &'connection MessageConnection,
        transfer: NewTransfer<B>,
    ) -> Result<Self, TransferError<B>> {
        let started = connection.start(transfer).await?;
        Ok(Self { started })
    }

    /// Whether it is done, so that [`wait`](Self::wait) returns at once after a success. It does not
    /// run the event loop: what only an event ends, as on a connection that closes, is done once a
    /// caller has waited on the node.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.started.is_finished()
    }

    waits! {
        /// Waits until it is done, and returns its memory.
        ///
        /// # Errors
        /// Those of the method that started it, with the memory unless the queue pair still has it.
        pub fn wait(self) -> Result<B, TransferError<B>> {
            let started = self.started.finish_now();
            started.event_loop() => started.finish()
        }
    }
}
