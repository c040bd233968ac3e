//! A runtime that wakes the event loop when the device becomes readable.

use std::future::poll_fn;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use rdmacm::core::ucma::UcmaFile as _;

use crate::device::Device;
use crate::runtime::{Reactor, Sleep};

#[derive(Debug)]
pub(crate) struct DeviceReactor(pub(crate) Arc<Device>);

impl Reactor for DeviceReactor {
    fn poll_read(
        &self,
        context: &mut Context<'_>,
        read: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Poll<io::Result<()>> {
        loop {
            // Before the device is read: what comes from here on wakes the waker.
            self.0.set_waker(context.waker());
            if read().is_break() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !self.0.is_readable() {
                return Poll::Pending;
            }
        }
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        let device = Arc::clone(&self.0);
        Box::pin(poll_fn(move |context| {
            if device.now() >= at {
                return Poll::Ready(());
            }
            device.pass_time(at);
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }
}
