//! Whether steps block or are awaited.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd;

use rdmacm_core::EventChannel;

use crate::reactor::{Reactor, Runtime};

/// Whether steps block or are awaited: [`Blocking`] or [`Async`].
pub trait Mode: sealed::Mode {}

/// Each step returns when it is done: the calling thread waits.
#[derive(Clone, Copy, Debug)]
pub enum Blocking {}

/// Each step is a future of a runtime.
#[derive(Debug)]
pub struct Async<R>(PhantomData<fn() -> R>);

impl Mode for Blocking {}
impl<R: Runtime> Mode for Async<R> {}

pub(crate) mod sealed {
    use super::{EventChannel, Reactor, fmt, io};

    /// What a mode needs for its channel.
    pub trait Mode: fmt::Debug + 'static {
        /// The runtime's part of a channel's waiting, if there is a runtime.
        ///
        /// # Errors
        /// The error number of the runtime's registration.
        fn reactor(channel: &EventChannel) -> io::Result<Option<Box<dyn Reactor>>>;
    }
}

impl sealed::Mode for Blocking {
    fn reactor(_: &EventChannel) -> io::Result<Option<Box<dyn Reactor>>> {
        Ok(None)
    }
}

impl<R: Runtime> sealed::Mode for Async<R> {
    fn reactor(channel: &EventChannel) -> io::Result<Option<Box<dyn Reactor>>> {
        let readiness = channel.as_fd().try_clone_to_owned()?;
        R::reactor(readiness).map(Some)
    }
}
