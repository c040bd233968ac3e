//! A runtime of the caller's own, on async-io.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use std::time::Instant;

use async_io::{Async, Timer};
use rdmacm::asynchronous::{Reactor, Runtime, Sleep};

#[derive(Debug)]
pub(crate) struct AsyncIo;

#[derive(Debug)]
struct Watched(Async<OwnedFd>);

impl Runtime for AsyncIo {
    fn reactor(readiness: OwnedFd) -> io::Result<Box<dyn Reactor>> {
        Ok(Box::new(Watched(Async::new_nonblocking(readiness)?)))
    }
}

impl Reactor for Watched {
    fn poll_read(
        &self,
        context: &mut Context<'_>,
        read: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Poll<io::Result<()>> {
        loop {
            let readiness = self.0.poll_readable(context);
            if let Poll::Ready(Err(error)) = readiness {
                return Poll::Ready(Err(error));
            }
            if read().is_break() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if readiness.is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        Box::pin(async move {
            Timer::at(at).await;
        })
    }
}
