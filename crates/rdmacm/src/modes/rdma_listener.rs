//! Waiting for byte streams.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rdmacm_core::{CmAddr, Deadline};

use super::{IncomingStreams, Listener, RdmaStream};
use crate::error::Result;
use crate::event_loop::EventLoop;
use crate::stop_handle::StopHandle;
use crate::stream::{PendingHandshakes, StreamOptions};

by_mode! {
    /// Waits for byte streams on an address, as a TCP listener does.
    ///
    blocking {
        /// ```no_run
        /// # fn example() -> std::io::Result<()> {
        /// use std::io::copy;
        /// use std::thread;
        /// use rdmacm::{Error, RdmaListener};
        ///
        /// let listener = RdmaListener::bind("[::]:7471")?;
        /// loop {
        ///     let (stream, peer) = match listener.accept() {
        ///         Ok(accepted) => accepted,
        ///         Err(error) if Error::from_io(&error).is_some_and(Error::ends_listener) => {
        ///             return Err(error);
        ///         }
        ///         // One peer could not be accepted. The listener goes on.
        ///         Err(error) => {
        ///             eprintln!("{error}");
        ///             continue;
        ///         }
        ///     };
        ///     println!("{peer}");
        ///     thread::spawn(move || copy(&mut &stream, &mut &stream));
        /// }
        /// # }
        /// ```
    }
    awaited {
        /// ```no_run
        /// # #[cfg(feature = "tokio")]
        /// # async fn example() -> std::io::Result<()> {
        /// use rdmacm::Error;
        /// use rdmacm::tokio::RdmaListener;
        ///
        /// let listener = RdmaListener::bind("[::]:7471")?;
        /// loop {
        ///     let (stream, _) = match listener.accept().await {
        ///         Ok(accepted) => accepted,
        ///         Err(error) if Error::from_io(&error).is_some_and(Error::ends_listener) => {
        ///             return Err(error);
        ///         }
        ///         // One peer could not be accepted. The listener goes on.
        ///         Err(error) => {
        ///             eprintln!("{error}");
        ///             continue;
        ///         }
        ///     };
        ///     tokio::spawn(async move {
        ///         let (mut read, mut write) = stream.into_split();
        ///         tokio::io::copy(&mut read, &mut write).await
        ///     });
        /// }
        /// # }
        /// ```
    }
    both {
        ///
        /// [Up to 64](Self::max_handshakes) peers are accepted at a time while a caller waits in
        /// [`accept`](Self::accept), so one that does not complete its handshake delays no other.
        /// Peers that do not speak the rsocket protocol are rejected.
        #[doc(alias = "rlisten")]
    }
    pub struct RdmaListener {
        pub(super) listener: Listener,
        pub(super) options: StreamOptions,
        pub(super) handshakes: PendingHandshakes,
    }
}

impl RdmaListener {
    /// Listens on an address, see [`Listener::bind`]. Streams have
    /// [default options](StreamOptions::new).
    ///
    /// # Errors
    /// An [`Error`](crate::Error) in an [`io::Error`].
    #[doc(alias = "rbind")]
    pub fn bind<A>(address: A) -> io::Result<Self>
    where
        A: TryInto<CmAddr>,
    {
        let listener = Listener::bind(address)?;
        Ok(Self::new(listener, StreamOptions::new()))
    }

    /// Waits for streams on a listener, which are set up as the options say.
    #[must_use]
    pub fn new(listener: Listener, options: StreamOptions) -> Self {
        Self {
            listener,
            options,
            handshakes: PendingHandshakes::default(),
        }
    }

    /// How many handshakes may be in flight at a time: 64 by default, at least one. Each further
    /// caller that waits adds one. A handshake takes the memory of a stream. Peers that do not
    /// complete their handshakes delay other peers only if there are as many of them as this limit,
    /// and only until their [deadline](Self::handshake_deadline) has passed.
    #[must_use]
    pub fn max_handshakes(mut self, limit: usize) -> Self {
        self.handshakes.limit = limit.max(1);
        self
    }

    /// How long a peer may take to complete its handshake;
    /// [`ACCEPT_DEADLINE`](crate::ACCEPT_DEADLINE) by default. If nobody waits for a stream when it
    /// passes, a peer may have until a second after the next call: its answer may be there, unread.
    /// On siw the listener does not notice meanwhile that its
    /// [socket was closed](super::Listener#siw).
    #[must_use]
    pub fn handshake_deadline(mut self, deadline: impl Into<Deadline>) -> Self {
        self.handshakes.deadline = deadline.into();
        self
    }

    /// The address it listens on, with its port.
    ///
    /// # Errors
    /// The address is not of IP.
    #[doc(alias = "rgetsockname")]
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let address = self.listener.local_addr().socket_addr();
        address.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// Stops the listener from another thread or task. Callers that wait for a stream, and later
    /// ones, receive an error with [`Cause::Stopped`](crate::Cause::Stopped), and
    /// [`incoming`](Self::incoming) ends. The first of these calls rejects the peers that are queued,
    /// and gives up those whose handshake is in flight; without one, dropping the listener does.
    /// Streams that were accepted live on.
    pub fn stop(&self) {
        self.listener.stop();
    }

    /// A handle that [stops](Self::stop) the listener from elsewhere, and does not keep it alive.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.listener.stop_handle()
    }

    pub(super) fn event_loop(&self) -> &Arc<EventLoop> {
        self.listener.event_loop()
    }

    pub(super) async fn next_stream(&self) -> Result<RdmaStream> {
        let ids = self.listener.listening_ids();
        let accepted = self.handshakes.accept(ids, &self.options);
        accepted.await.map(RdmaStream::new)
    }

    /// The next stream of a listener whose calls do not wait, if there is one.
    pub(super) fn next_at_once(&self) -> Option<Result<Option<RdmaStream>>> {
        let ids = self.listener.listening_ids();
        let accepted = self.handshakes.accept_at_once(ids, &self.options)?;
        Some(accepted.map(|stream| stream.map(RdmaStream::new)))
    }

    fn accepted_at_once(&self) -> Option<io::Result<(RdmaStream, SocketAddr)>> {
        let with_peer = |stream: Option<RdmaStream>| {
            let stream = stream.ok_or(io::ErrorKind::WouldBlock)?;
            let peer = stream.peer_addr()?;
            Ok((stream, peer))
        };
        let next = self.next_at_once()?;
        Some(next.map_err(io::Error::from).and_then(with_peer))
    }

    waits! {
        /// Waits for the next stream, and returns its peer's address with it. Any number of
        /// callers may wait.
        awaited {
            /// Dropping the future loses no stream.
        }
        both {
            ///
            /// # Errors
            /// An [`Error`](crate::Error) in an [`io::Error`]
            /// ([`Error::from_io`](crate::Error::from_io)): the listener was stopped, this side is
            /// out of a resource, such as memory that may be locked, or the options are invalid.
            /// [`Error::ends_listener`](crate::Error::ends_listener) says whether no more streams
            /// come; after other errors, wait again. A handshake that a peer does not complete is
            /// no error.
            #[doc(alias = "raccept")]
        }
        pub fn accept(&self) -> io::Result<(RdmaStream, SocketAddr)> {
            self.event_loop() => async {
                let stream = self.next_stream().await?;
                let peer = stream.peer_addr()?;
                Ok((stream, peer))
            }, at_once: self.accepted_at_once()
        }
    }

    by_mode! {
        /// Accepted streams, one after another, until the listener is [stopped](Self::stop).
        ///
        blocking {
            /// The iterator also yields the errors of [`accept`](Self::accept), after which it goes
            /// on. After an error that ends the listener, such as the removal of its device, it
            /// yields `None`.
            ///
            /// ```no_run
            /// # fn example() -> std::io::Result<()> {
            /// use std::io::copy;
            /// use rdmacm::RdmaListener;
            ///
            /// let listener = RdmaListener::bind("[::]:7471")?;
            /// for stream in listener.incoming() {
            ///     match stream {
            ///         Ok(stream) => {
            ///             std::thread::spawn(move || copy(&mut &stream, &mut &stream));
            ///         }
            ///         // One peer could not be accepted; or the listener has ended, and so does the loop.
            ///         Err(error) => eprintln!("{error}"),
            ///     }
            /// }
            /// # Ok(())
            /// # }
            /// ```
        }
        awaited {
            /// A `Stream` with the feature `stream`, which also yields the errors of
            /// [`accept`](Self::accept), after which it goes on. After an error that ends the
            /// listener, such as the removal of its device, it ends.
            ///
            /// ```no_run
            /// # #[cfg(feature = "tokio")]
            /// # async fn example() -> std::io::Result<()> {
            /// use rdmacm::tokio::RdmaListener;
            /// use tokio::io::AsyncWriteExt;
            ///
            /// let listener = RdmaListener::bind("[::]:7471")?;
            /// let mut incoming = listener.incoming();
            /// while let Some(stream) = incoming.next().await {
            ///     match stream {
            ///         Ok(mut stream) => {
            ///             tokio::spawn(async move { stream.write_all(b"hello").await });
            ///         }
            ///         // One peer could not be accepted; or the listener has ended, and so does the loop.
            ///         Err(error) => eprintln!("{error}"),
            ///     }
            /// }
            /// # Ok(())
            /// # }
            /// ```
        }
        both {
            #[must_use]
        }
        pub fn incoming(&self) -> IncomingStreams<'_> {
            IncomingStreams::new(self)
        }
    }
}

impl Drop for RdmaListener {
    fn drop(&mut self) {
        let (ids, handshakes) = (self.listener.listening_ids(), &self.handshakes);
        handshakes.end_polling(ids, &handshakes.poll_slot);
    }
}

impl fmt::Debug for RdmaListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RdmaListener")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}
