//! A runtime of the caller's own, on async-io.

use std::future::Future as _;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::Instant;

use async_io::{Async, Timer};
use rdmacm::asynchronous::{Reactor, Runtime};

#[derive(Debug)]
pub(crate) struct AsyncIo;

#[derive(Debug)]
struct Watched {
    watched: Async<OwnedFd>,
    timer: Mutex<Timer>,
}

impl Runtime for AsyncIo {
    fn reactor(readiness: OwnedFd) -> io::Result<Box<dyn Reactor>> {
        Ok(Box::new(Watched {
            watched: Async::new_nonblocking(readiness)?,
            timer: Mutex::new(Timer::never()),
        }))
    }
}

impl Reactor for Watched {
    fn poll_read(
        &self,
        context: &mut Context<'_>,
        read: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Poll<io::Result<()>> {
        loop {
            let readiness = self.watched.poll_readable(context);
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

    fn poll_timer(&self, context: &mut Context<'_>, at: Instant) -> Poll<()> {
        let mut timer = self.timer.lock().unwrap();
        timer.set_at(at);
        Pin::new(&mut *timer).poll(context).map(drop)
    }
}
