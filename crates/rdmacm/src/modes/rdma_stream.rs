//! A byte stream.

use std::fmt;
use std::io;
use std::net::Shutdown;
use std::sync::Arc;

use rdmacm_core::Deadline;
use rdmacm_rsocket::How;

use super::{Connector, Incoming, Node};
use crate::connect::PeerAddr;
use crate::error::Result;
use crate::stream::{self, SendSlot, StreamHandle, StreamOptions};

by_mode! {
    /// A byte stream over RDMA, like a TCP stream: one side reads what the other side writes.
    ///
    /// It speaks the rsocket protocol of librdmacm, so the peer may be another `RdmaStream`, or
    /// a program that uses rsockets.
    ///
    blocking {
        /// ```no_run
        /// # fn example() -> std::io::Result<()> {
        /// use std::io::{Read, Write};
        /// use std::net::Shutdown;
        /// use rdmacm::RdmaStream;
        ///
        /// let mut stream = RdmaStream::connect("storage-7:7471")?;
        /// stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
        /// stream.shutdown(Shutdown::Write)?;
        /// let mut reply = String::new();
        /// stream.read_to_string(&mut reply)?;
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// `&RdmaStream` is a reader and a writer as well, so one thread can read while another one
        /// writes. Reading and writing have a lock each. A read takes the lock of writing to announce
        /// free memory or return credits to the peer, which happens once for each half of the
        /// receive buffer or of [`receives`](StreamOptions::receives), and to handle an announcement
        /// of the peer. With [`shared_receives`](StreamOptions::shared_receives), each read that
        /// finds no bytes takes it. A write tries to take the lock of reading, to handle what the peer
        /// has sent. If there is no room to write, it waits for that lock.
    }
    awaited {
        /// With the feature `tokio` it implements tokio's `AsyncRead` and `AsyncWrite`, and with
        /// the feature `futures-io` those of futures.
        ///
        /// ```no_run
        /// # #[cfg(feature = "tokio")]
        /// # async fn example() -> std::io::Result<()> {
        /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
        /// use rdmacm::tokio::RdmaStream;
        ///
        /// let mut stream = RdmaStream::connect("storage-7:7471").await?;
        /// stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
        /// stream.shutdown().await?;
        /// let mut reply = String::new();
        /// stream.read_to_string(&mut reply).await?;
        /// # Ok(())
        /// # }
        /// ```
    }
    both {
        ///
        /// As with TCP, data is in flight when a write returns. The peer writes into memory that
        /// only this stream uses. There it can overwrite bytes that have arrived and were not read.
        /// Of other memory of this process, it can only write to what was [mapped](Self::map).
        ///
        /// If the connection ends although the peer has not closed the stream, a read returns an
        /// error of kind [`ConnectionReset`](io::ErrorKind::ConnectionReset), after all bytes that
        /// have arrived, or [`NotConnected`](io::ErrorKind::NotConnected) if the device was removed.
        /// So the end of the stream means that the peer has closed it, unless this side has
        /// shut down reading.
        ///
        /// Dropping the stream closes it without waiting. If writes are in flight, a thread of the
        /// [`BlockingExecutor`](crate::BlockingExecutor) keeps the connection until they are
        /// acknowledged, for up to [`StreamOptions::linger`]; an executor without a free thread
        /// drops the connection at once. If the process exits before, they are lost: call
        /// [`Node::wait_for_dropped_streams`] then, or [`close`](Self::close), which waits for the
        /// writes and reports what was lost. If the peer has already closed the stream, the thread also
        /// waits until the peer disconnects, on RoCE and InfiniBand, for 200 ms at most.
        #[doc(alias = "rsocket")]
    }
    #[doc(
        alias = "rread",
        alias = "rwrite",
        alias = "rrecv",
        alias = "rsend",
        alias = "rreadv",
        alias = "rwritev",
        alias = "rrecvmsg",
        alias = "rsendmsg"
    )]
    pub struct RdmaStream {
        pub(super) inner: Arc<StreamHandle>,
    }
}

impl RdmaStream {
    pub(super) fn new(handle: StreamHandle) -> Self {
        Self {
            inner: Arc::new(handle),
        }
    }

    waits_on_node! {
        /// Connects to a peer, with [default options](StreamOptions::new) and
        /// [deadline](crate::CONNECT_DEADLINE), on a [`Node`](super::Node) of its own.
        /// [`Connector::connect_stream`] has options, and shares a node.
        ///
        /// # Errors
        /// An [`Error`](crate::Error) in an [`io::Error`], whose kind is TCP's where TCP has one, see
        /// [`Error`](crate::Error#impl-From<Error>-for-Error):
        /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) if nobody listens there or the
        /// listener rejects, [`TimedOut`](io::ErrorKind::TimedOut) if the peer does not answer, and
        /// [`Unsupported`](io::ErrorKind::Unsupported) if the peer is no rsocket.
        #[doc(alias = "rconnect")]
        pub fn connect(peer: impl Into<PeerAddr>) -> io::Result<Self> {
            let node = Node::open();
            async {
                let connector = Connector::new(peer);
                Ok(connector.connect_with_stream(&node, &StreamOptions::new()).await?)
            }
        }
    }

    /// The name of the RDMA device that carries the stream, such as `rxe0`.
    #[must_use]
    pub fn device_name(&self) -> &str {
        self.inner.device_name()
    }

    /// Why the stream has failed, if it has: the first call of this method after the failure returns
    /// it, later ones return `None`. Reads and writes return it every time.
    ///
    /// # Errors
    /// None.
    #[doc(alias = "SO_ERROR")]
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.inner.take_failure().map(io::Error::from))
    }

    /// Disconnects at once, without closing the stream. What was written may be lost. The peer
    /// reads what has arrived, and then gets an error of kind
    /// [`ConnectionReset`](io::ErrorKind::ConnectionReset) instead of the end, unless this side was
    /// shut down for writing before.
    ///
    /// Call this if you cannot send everything that you have begun to send, so that the peer does
    /// not take an incomplete stream for a complete one. Later operations, also
    /// those of the other half, fail with [`ConnectionAborted`](io::ErrorKind::ConnectionAborted).
    ///
    /// A librdmacm peer cannot tell the difference where it notices the abort. On RoCE and
    /// InfiniBand, a thread blocked in `rrecv` never does (before rdma-core 63, neither does a
    /// client that polls). To such a peer, drop or [`close`](Self::close) the stream instead.
    pub fn abort(self) {
        self.inner.abort();
    }

    waits! {
        /// Closes both directions, waits until the peer's device has acknowledged all that was
        /// written, and disconnects. On iWARP, it is this host's TCP that acknowledges, so the peer
        /// may miss the last bytes: let the peer confirm them. After the deadline the stream is in
        /// the same state as one that was dropped, so bytes may still arrive; if they must not,
        /// call [`abort`](Self::abort) instead.
        awaited {
            /// Dropping the future closes the stream as dropping the stream does.
        }
        both {
            ///
            /// # Errors
            /// [`TimedOut`](io::ErrorKind::TimedOut) if bytes were not acknowledged in time, with
            /// their number in the text; [`BrokenPipe`](io::ErrorKind::BrokenPipe) if the peer had
            /// closed the stream before its device acknowledged them; why the connection has failed
            /// before that.
            #[doc(alias = "rclose")]
        }
        pub fn close(self, deadline: impl Into<Deadline>) -> io::Result<()> {
            self.inner.event_loop() => async {
                Ok(self.inner.close(deadline.into()).await?)
            }
        }
    }

    waits! {
        /// Reserves registered memory for up to `bytes` of the next bytes, once the peer has room
        /// for at least one. Fill the memory, then [`SendSlot::commit`] sends it without the copy
        /// that a write makes. The memory may have fewer bytes than requested: at most 64 KiB, and
        /// at most half of [`StreamOptions::send_buffer`]. The first call registers, and pins,
        /// another `send_buffer` bytes.
        blocking {
            ///
            /// ```no_run
            /// # fn example(stream: &mut rdmacm::RdmaStream) -> std::io::Result<()> {
            /// use std::fs::File;
            /// use std::io::Read;
            ///
            /// let mut file = File::open("picture.png")?;
            /// loop {
            ///     let mut slot = stream.reserve(64 * 1024)?;
            ///     match file.read(&mut slot)? {
            ///         0 => break,
            ///         bytes => slot.commit(bytes)?,
            ///     }
            /// }
            /// # Ok(())
            /// # }
            /// ```
        }
        awaited {
            /// Dropping the future reserves nothing.
        }
        both {
            ///
            /// # Errors
            /// [`InvalidInput`](io::ErrorKind::InvalidInput) for 0 bytes; those of writing and, the
            /// first time, of registering memory.
        }
        pub fn reserve(&mut self, bytes: usize) -> io::Result<SendSlot<'_>> {
            self.inner.event_loop() => self.inner.reserve(bytes)
        }
    }

    /// Does nothing: what was written is in flight when a write returns, never held back for
    /// more. For programs that call it on a TCP stream.
    ///
    /// # Errors
    /// None.
    #[doc(alias = "TCP_NODELAY")]
    pub fn set_nodelay(&self, _nodelay: bool) -> io::Result<()> {
        Ok(())
    }

    /// Whether writes are in flight at once: `true`, also after
    /// [`set_nodelay(false)`](Self::set_nodelay).
    ///
    /// # Errors
    /// None.
    #[doc(alias = "TCP_NODELAY")]
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(true)
    }
}

impl fmt::Debug for RdmaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RdmaStream")
            .field("peer", &self.inner.peer_addr().ok())
            .finish_non_exhaustive()
    }
}

pub(super) fn how(shutdown: Shutdown) -> How {
    match shutdown {
        Shutdown::Read => How::Read,
        Shutdown::Write => How::Write,
        Shutdown::Both => How::Both,
    }
}

impl Connector {
    waits_on_node! {
        /// Connects a byte stream, set up as the options say. Its handshake takes the place of
        /// the [private data](Self::private_data).
        ///
        /// # Errors
        /// [`Error`](crate::Error), with the stage that failed. The id and the queue pair are
        /// destroyed, on iWARP once TCP's handshake has ended
        /// ([`NodeOptions::max_handshakes`](crate::NodeOptions::max_handshakes)).
        #[doc(alias = "rconnect")]
        pub fn connect_stream(mut self, options: StreamOptions) -> Result<RdmaStream> {
            let node = self.open_node();
            async { self.connect_with_stream(&node, &options).await }
        }
    }

    pub(super) async fn connect_with_stream(
        self,
        node: &Node,
        options: &StreamOptions,
    ) -> Result<RdmaStream> {
        let connected = stream::connect(&self.attempts(node), options).await;
        connected.map(RdmaStream::new)
    }
}

impl Incoming {
    waits! {
        /// Accepts a peer that requests a byte stream, set up as the options say. The handshake
        /// takes the place of the private data.
        awaited {
            /// Dropping the future rejects the peer, or disconnects it if it was accepted already.
        }
        both {
            ///
            /// # Errors
            /// [`Error`](crate::Error), with the stage that failed; [`Cause::Handshake`] if the
            /// peer does not speak the rsocket protocol. The peer is rejected, or
            /// disconnected if it was accepted already.
            ///
            /// [`Cause::Handshake`]: crate::Cause::Handshake
            #[doc(alias = "raccept")]
        }
        pub fn accept_stream(self, options: StreamOptions) -> Result<RdmaStream> {
            self.event_loop() => self.accept_with_stream(options)
        }
    }

    async fn accept_with_stream(self, options: StreamOptions) -> Result<RdmaStream> {
        let attempt = self.attempt();
        let (request, param) = self.into_request();
        let accepted = stream::accept(attempt, request, param, &options).await;
        accepted.map(RdmaStream::new)
    }
}
