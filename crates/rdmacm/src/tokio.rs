//! The asynchronous types on tokio (feature `tokio`).
//!
//! ```no_run
//! # #[cfg(feature = "verbs")]
//! # async fn example() -> rdmacm::Result<()> {
//! use std::time::Duration;
//! use rdmacm::CLOSE_DEADLINE;
//! use rdmacm::tokio::Connector;
//!
//! let connector = Connector::new("storage-7:7471").deadline(Duration::from_secs(3));
//! let connection = connector.connect().await?;
//! connection.send(b"ping").await?;
//! while let Some(message) = connection.receive().await? {
//!     println!("{message:?}");
//! }
//! connection.close(CLOSE_DEADLINE).await?;
//! # Ok(())
//! # }
//! ```
//!
//! They are the types of [`asynchronous`](crate::asynchronous), which says how they share an
//! event channel and what dropping a future does.

use std::future::{Future, poll_fn};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use ::tokio::io::Interest;
use ::tokio::io::unix::AsyncFd;
use ::tokio::runtime::Handle;
use ::tokio::task::{unconstrained, yield_now};
use ::tokio::time;
use parking_lot::{Mutex, MutexGuard};

#[doc(inline)]
pub use crate::asynchronous::*;

/// The tokio runtime, with its I/O and time drivers.
#[derive(Clone, Copy, Debug)]
pub enum Tokio {}

impl Runtime for Tokio {
    fn reactor(readiness: OwnedFd) -> io::Result<Box<dyn Reactor>> {
        // Registering without a runtime panics.
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        #[expect(
            deprecated,
            reason = "its successor is new and takes a proof that an owned descriptor is one"
        )]
        let descriptor = AsyncFd::with_interest(readiness, Interest::READABLE)?;
        Ok(Box::new(Watched {
            descriptor,
            runtime,
            timer: Mutex::default(),
        }))
    }
}

#[derive(Debug)]
struct Watched {
    descriptor: AsyncFd<OwnedFd>,
    runtime: Handle,
    /// Made when it is first needed: a runtime need not have timers until then.
    timer: Mutex<Option<Pin<Box<time::Sleep>>>>,
}

impl Watched {
    fn timer(&self) -> MutexGuard<'_, Option<Pin<Box<time::Sleep>>>> {
        self.timer.lock()
    }

    /// Wakes the waker once other tasks have run and timers have fired, or the runtime shuts down. In
    /// a task of its own: tokio forgets the yield of a task that is not polled again, as the
    /// caller's may be.
    fn wake_after_others(&self, waker: Waker) {
        let guard = scopeguard::guard(waker, Waker::wake);
        self.runtime.spawn(async move {
            yield_now().await;
            drop(guard);
        });
    }
}

impl Reactor for Watched {
    fn poll_read(
        &self,
        context: &mut Context<'_>,
        read: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Poll<io::Result<()>> {
        loop {
            // What becomes readable after this is not cleared below. Not within the budget of the
            // task: tokio would keep the waker, and lose it if that task ends.
            let readiness = poll_fn(|context| self.descriptor.poll_read_ready(context));
            let mut ready = match ready!(pin!(unconstrained(readiness)).poll(context)) {
                Ok(ready) => ready,
                Err(error) => return Poll::Ready(Err(error)),
            };
            if read().is_break() {
                // It stays ready.
                self.wake_after_others(context.waker().clone());
                return Poll::Pending;
            }
            ready.clear_ready();
        }
    }

    fn poll_timer(&self, context: &mut Context<'_>, at: Instant) -> Poll<()> {
        // tokio rounds up to whole milliseconds, and a time beyond the clock's range panics.
        if at.checked_add(Duration::from_millis(1)).is_none() {
            return Poll::Pending;
        }
        let at = at.into();
        let mut timer = self.timer();
        let timer = timer.get_or_insert_with(|| {
            // On any thread.
            let _runtime = self.runtime.enter();
            Box::pin(time::sleep_until(at))
        });
        if timer.deadline() != at {
            timer.as_mut().reset(at);
        }
        pin!(unconstrained(timer.as_mut())).poll(context)
    }

    fn stop_timer(&self) {
        let timer = self.timer().take();
        drop(timer);
    }

    /// That of a paused clock, in tests.
    fn now(&self) -> Instant {
        let _runtime = self.runtime.enter();
        time::Instant::now().into_std()
    }
}
