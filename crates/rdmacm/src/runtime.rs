//! What an asynchronous runtime does for an event loop.

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

/// An asynchronous runtime that can watch a descriptor and wait for a moment.
///
/// `rdmacm::tokio::Tokio` implements it for tokio. For another runtime it takes some twenty
/// lines, and [`NodeOptions::runtime`](crate::asynchronous::NodeOptions::runtime) selects it:
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
    /// Watches a descriptor, which is readable while the event loop has something to read.
    /// Called within the runtime.
    ///
    /// # Errors
    /// The error number of the runtime's registration.
    fn reactor(readiness: OwnedFd) -> io::Result<Box<dyn Reactor>>;
}

/// A descriptor that a runtime watches, and the runtime's timers.
pub trait Reactor: fmt::Debug + Send + Sync {
    /// Calls `read` until the descriptor is not readable. Then returns [`Poll::Pending`],
    /// and wakes the context's waker when the descriptor becomes readable. An additional
    /// call of `read` does no harm.
    ///
    /// If `read` breaks, there may be more to read, and other tasks run first: the reactor
    /// does not call it again, returns [`Poll::Pending`], and wakes the context's waker
    /// after other tasks have run. With a fair run queue it may wake the waker at once.
    ///
    /// # Errors
    /// The error number of the runtime. All waiters receive it; later waits try again.
    fn poll_read(
        &self,
        context: &mut Context<'_>,
        read: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Poll<io::Result<()>>;

    /// A timer that completes at `at`.
    fn sleep_until(&self, at: Instant) -> Sleep;

    /// The current time of the timers' clock. A node on a simulated channel sets the
    /// channel's clock to it when it opens, if that is behind.
    fn now(&self) -> Instant {
        Instant::now()
    }
}
