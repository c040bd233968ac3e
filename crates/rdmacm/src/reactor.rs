//! What an asynchronous runtime does for us.

use std::fmt;
use std::future::Future;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

/// A timer of a runtime.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An asynchronous runtime, as far as connections go.
///
/// `rdmacm::tokio` implements it for tokio. Any other runtime
/// that can watch a descriptor and tell the time takes about twenty lines:
///
/// ```
/// use std::ops::ControlFlow;
/// use std::os::fd::OwnedFd;
/// use std::task::{Context, Poll};
/// use std::time::Instant;
/// use rdmacm::asynchronous::{Reactor, Runtime, Sleep};
///
/// #[derive(Debug)]
/// struct Smol;
///
/// #[derive(Debug)]
/// struct SmolReactor(async_io::Async<OwnedFd>);
///
/// impl Runtime for Smol {
///     fn reactor(readiness: OwnedFd) -> std::io::Result<Box<dyn Reactor>> {
///         // The descriptor is an epoll descriptor: it has no non-blocking mode to set.
///         Ok(Box::new(SmolReactor(async_io::Async::new_nonblocking(readiness)?)))
///     }
/// }
///
/// impl Reactor for SmolReactor {
///     fn poll_read(
///         &self,
///         context: &mut Context<'_>,
///         read: &mut dyn FnMut() -> ControlFlow<()>,
///     ) -> Poll<std::io::Result<()>> {
///         loop {
///             // async-io wakes for what becomes readable after this was asked.
///             let readiness = self.0.poll_readable(context);
///             if let Poll::Ready(Err(error)) = readiness {
///                 return Poll::Ready(Err(error));
///             }
///             if read().is_break() {
///                 context.waker().wake_by_ref();
///                 return Poll::Pending;
///             }
///             if readiness.is_pending() {
///                 return Poll::Pending;
///             }
///         }
///     }
///
///     fn sleep_until(&self, at: Instant) -> Sleep {
///         Box::pin(async move {
///             async_io::Timer::at(at).await;
///         })
///     }
/// }
/// ```
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// Watches a descriptor, which is readable while there is something to read
    /// for us; called within the runtime.
    ///
    /// # Errors
    /// The error number of the runtime's registration.
    fn reactor(readiness: OwnedFd) -> io::Result<Box<dyn Reactor>>;
}

/// A descriptor that a runtime watches, and the runtime's clock.
pub trait Reactor: fmt::Debug + Send + Sync {
    /// Calls `read`, which reads all there is, until the descriptor is not
    /// readable; then wakes the context's waker as soon as it is, and answers
    /// [`Poll::Pending`]. `read` may be called once too often.
    ///
    /// Where `read` breaks, it has read its share of what a peer may never cease to
    /// send: it is not called again, the answer is [`Poll::Pending`], and the context's
    /// waker is woken once others have had their turn. Waking it at once does where
    /// the runtime's queue is a fair one.
    ///
    /// # Errors
    /// The error number of the runtime. Whoever waits is told it; the next to wait
    /// asks again.
    fn poll_read(
        &self,
        context: &mut Context<'_>,
        read: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Poll<io::Result<()>>;

    /// Ends when the moment has come.
    fn sleep_until(&self, at: Instant) -> Sleep;
}
