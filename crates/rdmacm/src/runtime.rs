//! What an asynchronous runtime does for an event loop.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use std::time::Instant;

/// An asynchronous runtime that can watch a descriptor and wait for a moment.
///
/// `rdmacm::tokio::Tokio` implements it for tokio. For another runtime it takes some thirty
/// lines, and [`NodeOptions::runtime`](crate::asynchronous::NodeOptions::runtime) selects it:
///
/// ```
/// use std::future::Future;
/// use std::ops::ControlFlow;
/// use std::os::fd::OwnedFd;
/// use std::pin::Pin;
/// use std::sync::Mutex;
/// use std::task::{Context, Poll};
/// use std::time::Instant;
/// use rdmacm::asynchronous::{Reactor, Runtime};
///
/// #[derive(Debug)]
/// struct Smol;
///
/// #[derive(Debug)]
/// struct SmolReactor {
///     watched: async_io::Async<OwnedFd>,
///     timer: Mutex<async_io::Timer>,
/// }
///
/// impl Runtime for Smol {
///     fn reactor(readiness: OwnedFd) -> std::io::Result<Box<dyn Reactor>> {
///         // The descriptor is an epoll descriptor: it has no non-blocking mode to set.
///         let watched = async_io::Async::new_nonblocking(readiness)?;
///         let timer = Mutex::new(async_io::Timer::never());
///         Ok(Box::new(SmolReactor { watched, timer }))
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
///             let readiness = self.watched.poll_readable(context);
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
///     fn poll_timer(&self, context: &mut Context<'_>, at: Instant) -> Poll<()> {
///         let mut timer = self.timer.lock().unwrap_or_else(|error| error.into_inner());
///         timer.set_at(at);
///         Pin::new(&mut *timer).poll(context).map(drop)
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

/// A descriptor that a runtime watches, and a timer of the runtime.
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

    /// Sets the timer. If `at` has not passed, returns [`Poll::Pending`], and wakes the
    /// context's waker at that time; it need not any more at that of an earlier call.
    fn poll_timer(&self, context: &mut Context<'_>, at: Instant) -> Poll<()>;

    /// The timer is not needed for now. If it goes off nevertheless, that does no harm.
    fn stop_timer(&self) {}

    /// The current time of the timer's clock. A node on a simulated channel sets the
    /// channel's clock to it when it opens, if that is behind.
    fn now(&self) -> Instant {
        Instant::now()
    }
}
