//! The asynchronous face on tokio (feature `tokio`).
//!
//! ```no_run
//! # async fn example<Q: rdmacm::core::QueuePair + 'static>(
//! #     make: impl Fn(&rdmacm::core::IdHandle) -> std::io::Result<Q> + Send + Sync,
//! # ) -> rdmacm::Result<()> {
//! use std::time::Duration;
//! use rdmacm::tokio::Connector;
//!
//! let connection = Connector::new("storage-7", "7471")
//!     .deadline(Duration::from_secs(3))
//!     .connect_with(make)
//!     .await?;
//! # drop(connection);
//! # Ok(())
//! # }
//! ```

use std::future::Future;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use ::tokio::io::Interest;
use ::tokio::io::unix::AsyncFd;
use ::tokio::runtime::Handle;
use ::tokio::{task, time};

use crate::asynchronous::{self, Reactor, Runtime, Sleep};

/// The tokio runtime, with its I/O and time drivers.
#[derive(Clone, Copy, Debug)]
pub enum Tokio {}

/// [`crate::Connection`] whose steps are awaited.
#[cfg(feature = "verbs")]
pub type Connection<Q = crate::Messages> = asynchronous::Connection<Q, Tokio>;
/// [`crate::Connection`] whose steps are awaited.
#[cfg(not(feature = "verbs"))]
pub type Connection<Q> = asynchronous::Connection<Q, Tokio>;
/// [`crate::Connector`] whose steps are awaited.
pub type Connector = asynchronous::Connector<Tokio>;
/// [`crate::DatagramSocket`] whose steps are awaited.
#[cfg(feature = "verbs")]
pub type DatagramSocket = asynchronous::DatagramSocket<Tokio>;
/// [`crate::Endpoint`] whose steps are awaited.
#[cfg(feature = "verbs")]
pub type Endpoint = asynchronous::Endpoint<Tokio>;
/// [`crate::Incoming`] whose steps are awaited.
pub type Incoming = asynchronous::Incoming<Tokio>;
/// [`crate::Listener`] whose steps are awaited.
pub type Listener = asynchronous::Listener<Tokio>;
/// [`crate::ListeningEndpoint`] whose steps are awaited.
#[cfg(feature = "verbs")]
pub type ListeningEndpoint = asynchronous::ListeningEndpoint<Tokio>;
/// [`crate::Node`] whose steps are awaited.
pub type Node = asynchronous::Node<Tokio>;
/// [`crate::Resolved`] whose steps are awaited.
pub type Resolved = asynchronous::Resolved<Tokio>;

impl Runtime for Tokio {
    fn reactor(readiness: OwnedFd) -> io::Result<Box<dyn Reactor>> {
        // Registering without a runtime panics.
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        #[expect(
            deprecated,
            reason = "its successor is new and takes a proof that an owned descriptor is one"
        )]
        let watched = AsyncFd::with_interest(readiness, Interest::READABLE)?;
        Ok(Box::new(Watched { watched, runtime }))
    }
}

#[derive(Debug)]
struct Watched {
    watched: AsyncFd<OwnedFd>,
    runtime: Handle,
}

impl Reactor for Watched {
    fn poll_read(
        &self,
        context: &mut Context<'_>,
        read: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Poll<io::Result<()>> {
        loop {
            // What becomes readable after this is not cleared below.
            let mut ready = match ready!(self.watched.poll_read_ready(context)) {
                Ok(ready) => ready,
                Err(error) => return Poll::Ready(Err(error)),
            };
            if read().is_break() {
                // It stays ready. A task that wakes itself is polled dozens of times
                // before the runtime looks at its timers; one that yields is not.
                return pin!(task::yield_now()).poll(context).map(Ok);
            }
            ready.clear_ready();
        }
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        // Whichever thread asks.
        let _runtime = self.runtime.enter();
        Box::pin(time::sleep_until(at.into()))
    }
}
