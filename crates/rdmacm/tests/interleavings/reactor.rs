//! A runtime that wakes the event loop when the device becomes readable.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use rdmacm::core::ucma::UcmaFile as _;

use crate::device::Device;
use crate::runtime::Reactor;

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

    fn poll_timer(&self, context: &mut Context<'_>, at: Instant) -> Poll<()> {
        if self.0.now() >= at {
            return Poll::Ready(());
        }
        self.0.pass_time(at);
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
