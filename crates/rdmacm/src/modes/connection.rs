//! A connection that carries messages.

use std::io::IoSlice;
use std::sync::Arc;

use rdmacm_core::{AccessFlags, CmAddr, ConnInfo, Deadline, IdHandle, QueuePair};
use rdmacm_verbs::{Buffer, ProtectionDomain, RemoteAccessRegion, RemoteMemory};

use super::{Node, ReceiveHalf, SendHalf, Transfer};
#[cfg(doc)]
use crate::Cause;
use crate::close_reason::CloseReason;
use crate::error::Result;
use crate::messages::{
    Message, MessageConnection, MessageOptions, NewTransfer, RegisteredBuffer, TransferError,
    TrySent,
};
use crate::stop_handle::StopHandle;

by_mode! {
    /// A connection that sends and receives messages, and reads and writes memory of the peer.
    ///
    blocking {
        /// ```no_run
        /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use std::time::Duration;
        /// use rdmacm::{CLOSE_DEADLINE, Connector};
        ///
        /// let connection = Connector::new("storage-7:7471").connect()?;
        /// connection.set_deadline(Duration::from_secs(1));
        /// connection.send(b"ping")?;
        /// if let Some(message) = connection.receive()? {
        ///     println!("{message:?}");
        /// }
        /// connection.close(CLOSE_DEADLINE)?;
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// All methods take `&self`: any number of threads may use a connection.
    }
    awaited {
        /// ```no_run
        /// # #[cfg(feature = "tokio")]
        /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use std::time::Duration;
        /// use rdmacm::CLOSE_DEADLINE;
        /// use rdmacm::tokio::Connector;
        ///
        /// let connection = Connector::new("storage-7:7471").connect().await?;
        /// connection.set_deadline(Duration::from_secs(1));
        /// connection.send(b"ping").await?;
        /// if let Some(message) = connection.receive().await? {
        ///     println!("{message:?}");
        /// }
        /// connection.close(CLOSE_DEADLINE).await?;
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// All methods take `&self`: any number of tasks may use a connection.
    }
    both {
        /// If several callers wait for a message, each message goes to one of them.
        ///
        /// Requests are posted in the order of the calls, if one returns before the next begins, and
        /// messages arrive in this order. What
        /// [`write`](Self::write) has written is in place when the peer receives a message that was
        /// sent after it. A message or a write that is posted after [`start_read`](Self::start_read)
        /// may overtake the read: wait for the read first.
        ///
        /// There is no flow control beyond the limits in [`MessageOptions`]. A message longer than
        /// the receiver's [size](MessageOptions::size) ends the connection.
        ///
        /// A RoCE or InfiniBand peer that disconnects (DREQ) waits for this side's reply (DREP).
        /// Any call that waits on this connection, or on another object of its [`Node`], sends it;
        /// so does [`Node::drive`].
        ///
        /// Dropping the connection aborts it without waiting: requests that have not completed are
        /// cancelled, their data may be lost, and the peer is notified. [`close`](Self::close)
        /// closes it in order.
        ///
        /// A siw device, or an rxe device before Linux 7.3, is removed only after every process has
        /// closed it. A call that waits on the connection detects the removal and closes the
        /// device, except in a rootless container with a network namespace of its own. If no call
        /// waits on the connection, it delays the removal until it is used or dropped, even if it
        /// is closed.
    }
    #[derive(Debug)]
    pub struct Connection {
        pub(super) inner: Arc<MessageConnection>,
    }
}

impl Connection {
    pub(super) fn new(inner: MessageConnection) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(super) fn from_shared(inner: Arc<MessageConnection>) -> Self {
        Self { inner }
    }

    /// Splits the connection into halves that different tasks or threads can own. It is
    /// aborted when both are dropped.
    #[must_use]
    pub fn into_split(self) -> (SendHalf, ReceiveHalf) {
        let send = SendHalf::new(Arc::clone(&self.inner));
        (send, ReceiveHalf::new(self.inner))
    }

    /// The id, by which to query its device, addresses, GIDs and path records.
    #[must_use]
    pub fn id(&self) -> &IdHandle {
        self.inner.established().id.id()
    }

    /// The local address.
    ///
    /// # Errors
    /// [`Stage::Bind`](crate::Stage::Bind): those of [`IdHandle::addresses`].
    #[doc(alias = "rdma_get_local_addr")]
    pub fn local_addr(&self) -> Result<CmAddr> {
        self.inner.established().local_addr()
    }

    /// The peer's address.
    ///
    /// # Errors
    /// [`Stage::Bind`](crate::Stage::Bind): those of [`IdHandle::addresses`].
    #[doc(alias = "rdma_get_peer_addr")]
    pub fn peer_addr(&self) -> Result<CmAddr> {
        self.inner.established().peer_addr()
    }

    /// On the connecting side, the private data of the peer's reply, as
    /// [`Event::private_data`](rdmacm_core::Event::private_data) returns it. The accepting side
    /// finds the peer's private data in [`Incoming::private_data`](super::Incoming::private_data).
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.inner.established().private_data
    }

    /// The parameters of the peer's queue pair, from its request or reply; `None` if the event had
    /// none.
    #[must_use]
    pub fn peer(&self) -> Option<ConnInfo> {
        self.inner.established().peer
    }

    /// The queue pair, by which to query its number and transport. The connection posts to it
    /// itself.
    #[must_use]
    #[doc(alias = "qp_num")]
    pub fn queue_pair(&self) -> &dyn QueuePair {
        self.inner.queue_pair().as_ref()
    }

    /// The options that the connection was made with.
    #[must_use]
    pub fn options(&self) -> &MessageOptions {
        self.inner.queue_pair().options()
    }

    /// The protection domain in which memory for its requests is registered.
    #[must_use]
    #[doc(alias = "ibv_pd")]
    pub fn protection_domain(&self) -> &ProtectionDomain {
        self.inner.queue_pair().protection_domain()
    }

    /// Sets the timeout of later calls that send, receive, flush, read or write, measured from each
    /// call. There is none by default. After a given [`Instant`](std::time::Instant) has passed,
    /// every call that would have to wait fails.
    pub fn set_deadline(&self, deadline: impl Into<Deadline>) {
        self.inner.set_deadline(deadline.into());
    }

    /// Allocates and registers `length` bytes, all zero, for [`send_buffer`](Self::send_buffer),
    /// [`read`](Self::read) and [`write`](Self::write). Registering takes time: use a buffer
    /// again rather than registering another.
    ///
    /// # Errors
    /// [`Stage::Register`](crate::Stage::Register): those of [`ProtectionDomain::allocate`].
    #[doc(alias = "rdma_reg_msgs", alias = "ibv_reg_mr")]
    pub fn allocate(&self, length: usize) -> Result<Buffer> {
        self.inner.allocate(length)
    }

    /// Allocates and registers `length` bytes, all zero, that the peer may access as `access` says,
    /// once it knows
    /// [`RemoteAccessRegion::remote`], from a message for example. `REMOTE_WRITE` and `REMOTE_ATOMIC`
    /// also need `LOCAL_WRITE`. siw does not check the right to
    /// read: there, every peer that knows the key can also read.
    ///
    /// ```no_run
    /// # fn example(connection: &rdmacm::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// use rdmacm::core::AccessFlags;
    ///
    /// let table = connection.expose(4096, AccessFlags::REMOTE_READ)?;
    /// table.write(16, b"an entry");
    /// let key = table.remote().to_bytes(); // the peer needs it to read
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Stage::Register`](crate::Stage::Register): those of [`ProtectionDomain::expose`].
    #[doc(
        alias = "rdma_reg_read",
        alias = "rdma_reg_write",
        alias = "ibv_reg_mr"
    )]
    pub fn expose(&self, length: usize, access: AccessFlags) -> Result<RemoteAccessRegion> {
        self.inner.expose(length, access)
    }

    /// Moves the connection to another node, with what was not read.
    ///
    /// # Errors
    /// [`Stage::Migrate`](crate::Stage::Migrate): the kernel refused, and the connection is where
    /// it was.
    #[doc(alias = "rdma_migrate_id")]
    pub fn migrate(&mut self, to: &Node) -> Result<()> {
        match Arc::get_mut(&mut self.inner) {
            Some(inner) => inner.migrate(&to.event_loop),
            // Halves take the connection, so nobody else shares it.
            None => Ok(()),
        }
    }

    /// Wakes all callers that wait to send or to receive: [`receive`](Self::receive) returns
    /// the messages that have arrived, then `None`; sending fails with [`Cause::Stopped`]. The
    /// peer is notified when the connection is closed or dropped. Calls that wait for the end of
    /// what is in flight ([`flush`](Self::flush), [`send_buffer`](Self::send_buffer),
    /// [`read`](Self::read), [`write`](Self::write), [`Transfer::wait`]), or for
    /// [`closed`](Self::closed), go on: set a [deadline](Self::set_deadline).
    pub fn stop(&self) {
        self.inner.stop();
    }

    /// A handle that [stops](Self::stop) the connection from another thread or task. It does not
    /// keep the connection alive.
    ///
    /// ```no_run
    /// # fn example(connection: &rdmacm::Connection) {
    /// let handle = connection.stop_handle();
    /// std::thread::spawn(move || {
    ///     // A signal has arrived, or a file was written.
    ///     handle.stop();
    /// });
    /// # }
    /// ```
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle::new(self.inner.established().id.queue())
    }

    /// Returns the next message, or `None` if none has arrived yet or the connection has ended in
    /// order. To distinguish the two, call [`closed`](Self::closed) with a deadline of zero: it
    /// returns the reason if the connection is closed, and
    /// [`Cause::Deadline`](crate::Cause::Deadline) if it is open.
    ///
    /// # Errors
    /// Those of [`receive`](Self::receive) but the deadline. That the connection was closed
    /// is known only once a caller has waited on the node, as `closed` does.
    pub fn try_receive(&self) -> Result<Option<Message>> {
        self.inner.try_receive()
    }

    /// Sends a copy of a message if there is room for it now, as [`send`](Self::send).
    ///
    /// ```no_run
    /// # fn example(connection: &rdmacm::Connection) -> rdmacm::Result<()> {
    /// use rdmacm::TrySent;
    ///
    /// let mut lost = 0;
    /// match connection.try_send(b"temperature 21")? {
    ///     TrySent::Sent => {}
    ///     TrySent::Full => lost += 1, // the peer is slow, and the next value replaces this one
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`send`](Self::send) but the deadline.
    pub fn try_send(&self, message: &[u8]) -> Result<TrySent> {
        self.inner.try_send(&[IoSlice::new(message)])
    }

    waits! {
        /// Sends a copy of a message, which may be empty. If [`MessageOptions::sends`] requests are
        /// already in flight, waits until one of them completes; does not wait until the message
        /// has arrived. If the message is lost, a later call returns the error;
        /// [`flush`](Self::flush) and [`close`](Self::close) wait until the outcome is known.
        awaited {
            /// If the future is dropped before it is ready, nothing was sent.
        }
        both {
            ///
            /// # Errors
            /// [`Cause::MessageTooLong`]: nothing was sent. [`Cause::Closed`], [`Cause::Request`]
            /// or [`Cause::Device`]: the connection is closed. [`Cause::Stopped`]: this side has
            /// closed or stopped it. [`Cause::Deadline`]: there was no room in time, and nothing
            /// was sent.
            #[doc(alias = "rdma_post_send", alias = "ibv_post_send")]
        }
        pub fn send(&self, message: &[u8]) -> Result<()> {
            self.inner.event_loop() => async { self.inner.send(&[IoSlice::new(message)]).await },
            at_once: self.inner.send_now(&[IoSlice::new(message)])
        }
    }

    waits! {
        /// Sends a copy of several slices as one message, see [`send`](Self::send).
        ///
        blocking {
            /// ```no_run
            /// # fn example(connection: &rdmacm::Connection, body: &[u8]) -> rdmacm::Result<()> {
            /// use std::io::IoSlice;
            ///
            /// let header = (body.len() as u64).to_be_bytes();
            /// connection.send_vectored(&[IoSlice::new(&header), IoSlice::new(body)])?;
            /// # Ok(())
            /// # }
            /// ```
        }
        awaited {
            /// ```no_run
            /// # #[cfg(feature = "tokio")]
            /// # use rdmacm::tokio::Connection;
            /// # #[cfg(feature = "tokio")]
            /// # async fn example(connection: &Connection, body: &[u8]) -> rdmacm::Result<()> {
            /// use std::io::IoSlice;
            ///
            /// let header = (body.len() as u64).to_be_bytes();
            /// connection.send_vectored(&[IoSlice::new(&header), IoSlice::new(body)]).await?;
            /// # Ok(())
            /// # }
            /// ```
        }
        both {
            ///
            /// # Errors
            /// Those of [`send`](Self::send).
            #[doc(alias = "rdma_post_sendv")]
        }
        pub fn send_vectored(&self, slices: &[IoSlice<'_>]) -> Result<()> {
            self.inner.event_loop() => self.inner.send(slices),
            at_once: self.inner.send_now(slices)
        }
    }

    waits! {
        /// Waits for the next message. Returns `None` after the last one if either side has
        /// closed the connection in order, and after [`stop`](Self::stop). A peer whose program
        /// was killed may look the same, see [`CloseReason::failure`].
        awaited {
            /// Dropping the future loses no message.
        }
        both {
            ///
            /// # Errors
            /// [`Cause::Closed`], [`Cause::Request`] or [`Cause::Device`] after the last message:
            /// the connection was closed by a failure. [`Cause::Deadline`]: none came in time.
            #[doc(alias = "rdma_post_recv", alias = "ibv_post_recv")]
            #[doc(alias = "rdma_get_recv_comp")]
        }
        pub fn receive(&self) -> Result<Option<Message>> {
            self.inner.event_loop() => self.inner.receive(),
            at_once: self.inner.receive_now()
        }
    }

    waits! {
        /// Waits until everything that was sent before has arrived: on RoCE at the peer's
        /// device, on iWARP in this host's TCP. (`flush` of a stream does not wait: a stream has no
        /// buffer that is not in flight.)
        ///
        /// # Errors
        /// [`Cause::Closed`], [`Cause::Request`] or [`Cause::Device`]: something was lost, or a request
        /// has failed, of which its caller may have learned before.
        /// [`Cause::Stopped`]: this side has closed the connection, and the peer did not reply.
        /// [`Cause::Deadline`]: something has not arrived yet, and still may.
        #[doc(alias = "rdma_get_send_comp")]
        pub fn flush(&self) -> Result<()> {
            self.inner.event_loop() => self.inner.flush()
        }
    }

    waits! {
        /// Sends registered memory as one message, without copying it, and returns it once the
        /// message has arrived. It may be longer than what [`send`](Self::send) copies.
        blocking {
            ///
            /// ```no_run
            /// # fn example(connection: &rdmacm::Connection) -> rdmacm::Result<()> {
            /// let mut buffer = connection.allocate(1 << 20)?;
            /// for block in 0..10 {
            ///     buffer.fill(block);
            ///     buffer = connection.send_buffer(buffer)?;
            /// }
            /// # Ok(())
            /// # }
            /// ```
        }
        awaited {
            ///
            /// ```no_run
            /// # #[cfg(feature = "tokio")]
            /// # use rdmacm::tokio::Connection;
            /// # #[cfg(feature = "tokio")]
            /// # async fn example(connection: &Connection) -> rdmacm::Result<()> {
            /// let mut buffer = connection.allocate(1 << 20)?;
            /// for block in 0..10 {
            ///     buffer.fill(block);
            ///     buffer = connection.send_buffer(buffer).await?;
            /// }
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// If the future is dropped, the message may have been sent. Its memory stays with
            /// the queue pair until the device is done with it, and is freed then.
        }
        both {
            ///
            /// # Errors
            /// [`Cause::Deadline`] with the memory: there was no room in time, and nothing was
            /// posted. [`Cause::Deadline`] without the memory: the request is in flight and may
            /// still be carried out, and the queue pair keeps the memory. [`Cause::Device`] with an
            /// invalid input: the buffer has 2 GiB or more. The other errors are those of
            /// [`send`](Self::send), with the memory.
        }
        pub fn send_buffer<B: RegisteredBuffer>(&self, buffer: B) -> Result<B, TransferError<B>> {
            self.inner.event_loop() => self.inner.transfer(NewTransfer::send(buffer))
        }
    }

    waits! {
        /// Reads as many bytes as the buffer has from memory that the peer exposes. On siw, do not
        /// read 0 bytes, and do not read 32 bytes or fewer across a page boundary of the peer's
        /// memory: siw closes the connection, or returns wrong bytes
        /// ([`SendOperation::Read`](rdmacm_verbs::SendOperation::Read)).
        blocking {
            ///
            /// ```no_run
            /// # fn example(connection: &rdmacm::Connection) -> Result<(), Box<dyn std::error::Error>> {
            /// use rdmacm::verbs::RemoteMemory;
            ///
            /// // The peer sends `expose(4096, access)?.remote().to_bytes()`.
            /// let message = connection.receive()?.ok_or("no memory")?;
            /// let table = RemoteMemory::from_bytes(&message).ok_or("no memory")?;
            /// let entry = table.slice(16..24).ok_or("a short table")?;
            /// let bytes = connection.read(connection.allocate(8)?, entry)?;
            /// println!("{:?}", &bytes[..]);
            /// # Ok(())
            /// # }
            /// ```
        }
        awaited {
            ///
            /// ```no_run
            /// # #[cfg(feature = "tokio")]
            /// # use rdmacm::tokio::Connection;
            /// # #[cfg(feature = "tokio")]
            /// # async fn example(connection: &Connection) -> Result<(), Box<dyn std::error::Error>> {
            /// use rdmacm::verbs::RemoteMemory;
            ///
            /// // The peer sends `expose(4096, access)?.remote().to_bytes()`.
            /// let message = connection.receive().await?.ok_or("no memory")?;
            /// let table = RemoteMemory::from_bytes(&message).ok_or("no memory")?;
            /// let entry = table.slice(16..24).ok_or("a short table")?;
            /// let bytes = connection.read(connection.allocate(8)?, entry).await?;
            /// println!("{:?}", &bytes[..]);
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// Dropping the future is as with [`send_buffer`](Self::send_buffer).
        }
        both {
            ///
            /// # Errors
            /// Those of [`send_buffer`](Self::send_buffer). [`Cause::Device`] with an invalid
            /// input, and nothing is posted: the peer's memory is shorter than the buffer; the
            /// connection allows no reads
            /// ([`ConnParam::initiator_depth`](crate::core::ConnParam::initiator_depth)); or, on
            /// siw, the memory is from [`register`](rdmacm_verbs::ProtectionDomain::register), or is
            /// a part of a buffer while other parts exist. If the peer refuses a read or a write,
            /// the connection is closed.
            #[doc(alias = "rdma_post_read")]
        }
        pub fn read<B: RegisteredBuffer>(
            &self,
            into: B,
            from: RemoteMemory
        ) -> Result<B, TransferError<B>> {
            self.inner.event_loop() => self.inner.transfer(NewTransfer::read(into, from))
        }
    }

    waits! {
        /// Writes to memory that the peer exposes. The peer is not notified: send a message
        /// after it.
        blocking {
            ///
            /// ```no_run
            /// # use rdmacm::verbs::RemoteMemory;
            /// # fn example(connection: &rdmacm::Connection, to: RemoteMemory) -> rdmacm::Result<()> {
            /// let mut buffer = connection.allocate(4096)?;
            /// buffer.fill(7);
            /// connection.write(buffer, to)?;
            /// connection.send(b"written")?;
            /// # Ok(())
            /// # }
            /// ```
        }
        awaited {
            ///
            /// ```no_run
            /// # #[cfg(feature = "tokio")]
            /// # use rdmacm::tokio::Connection;
            /// # use rdmacm::verbs::RemoteMemory;
            /// # #[cfg(feature = "tokio")]
            /// # async fn example(connection: &Connection, to: RemoteMemory) -> rdmacm::Result<()> {
            /// let mut buffer = connection.allocate(4096)?;
            /// buffer.fill(7);
            /// connection.write(buffer, to).await?;
            /// connection.send(b"written").await?;
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// Dropping the future is as with [`send_buffer`](Self::send_buffer).
        }
        both {
            ///
            /// # Errors
            /// Those of [`read`](Self::read).
            #[doc(alias = "rdma_post_write")]
        }
        pub fn write<B: RegisteredBuffer>(
            &self,
            from: B,
            to: RemoteMemory
        ) -> Result<B, TransferError<B>> {
            self.inner.event_loop() => self.inner.transfer(NewTransfer::write(from, to))
        }
    }

    waits! {
        /// Posts what [`send_buffer`](Self::send_buffer) sends, without waiting until it has
        /// arrived. Waits for room only.
        ///
        /// # Errors
        /// Those of [`send`](Self::send), with the memory.
        pub fn start_send<B: RegisteredBuffer>(
            &self,
            buffer: B
        ) -> Result<Transfer<'_, B>, TransferError<B>> {
            let transfer = Transfer::start_now(&self.inner, NewTransfer::send(buffer));
            self.inner.event_loop() => Transfer::start(&self.inner, transfer)
        }
    }

    waits! {
        /// Posts a [`read`](Self::read) without waiting until it is done; waits only for room. So
        /// up to [`MessageOptions::sends`] reads can be in flight, of which the device carries out
        /// at most the connection's [initiator depth](rdmacm_core::ConnParam::initiator_depth) at a
        /// time.
        ///
        /// # Errors
        /// Those of [`read`](Self::read), with the memory.
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
        /// Posts a [`write`](Self::write) without waiting until it is done. Waits for room only.
        ///
        /// # Errors
        /// Those of [`write`](Self::write), with the memory.
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
        /// Waits until the connection is closed, and returns why: the peer disconnected or is
        /// lost, the device was removed, or a request failed. Any number of callers may wait.
        ///
        blocking {
            /// ```no_run
            /// # fn example(connection: &rdmacm::Connection) -> rdmacm::Result<()> {
            /// use rdmacm::core::Deadline;
            ///
            /// let reason = connection.closed(Deadline::Never)?;
            /// println!("closed: {reason}");
            /// # Ok(())
            /// # }
            /// ```
        }
        awaited {
            /// ```no_run
            /// # #[cfg(feature = "tokio")]
            /// # use rdmacm::tokio::Connection;
            /// # #[cfg(feature = "tokio")]
            /// # async fn example(connection: &Connection) -> rdmacm::Result<()> {
            /// use rdmacm::core::Deadline;
            ///
            /// tokio::select! {
            ///     reason = connection.closed(Deadline::Never) => println!("closed: {}", reason?),
            ///     _ = tokio::signal::ctrl_c() => connection.stop(),
            /// }
            /// # Ok(())
            /// # }
            /// ```
        }
        both {
            ///
            /// # Errors
            /// [`Cause::Deadline`]: the connection is still open. [`Cause::Device`]: the device
            /// refused, and the connection is closed. If the program itself closed the device's
            /// context, that is reported up to ten seconds late.
        }
        pub fn closed(&self, deadline: impl Into<Deadline>) -> Result<CloseReason> {
            self.inner.event_loop() => self.inner.closed(deadline.into())
        }
    }

    waits! {
        /// Closes the connection: waits until the messages that were sent before have arrived,
        /// disconnects, and waits until the peer has replied. On iWARP they have arrived when this
        /// host's TCP has them ([`flush`](Self::flush)), and the peer may miss the last ones: let
        /// it confirm them before you close. Callers that wait for messages receive `None`.
        /// [`CLOSE_DEADLINE`](crate::CLOSE_DEADLINE) is a good deadline.
        awaited {
            ///
            /// If the future is dropped, the connection may be disconnected already.
        }
        both {
            ///
            /// # Errors
            /// [`Cause::Deadline`]: either what was sent had not arrived in time, and the
            /// connection stays connected until it is closed again or dropped; or the peer did not
            /// reply in time. [`Cause::Event`]: the kernel gave up. If a message was lost, or a
            /// request has failed: the error that closed the connection before. In each case, dropping
            /// the connection ends it.
            #[doc(alias = "rdma_disconnect")]
        }
        pub fn close(&self, deadline: impl Into<Deadline>) -> Result<()> {
            self.inner.event_loop() => self.inner.close(deadline.into())
        }
    }
}
