//! Whether steps block or are awaited.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;

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
    use super::{BorrowedFd, Reactor, fmt, io};

    /// What a mode needs for its waiting.
    pub trait Mode: fmt::Debug + 'static {
        /// The runtime's part of waiting for a descriptor, if there is a runtime.
        ///
        /// # Errors
        /// The error number of the runtime's registration.
        fn reactor(readiness: BorrowedFd<'_>) -> io::Result<Option<Box<dyn Reactor>>>;
    }
}

impl sealed::Mode for Blocking {
    fn reactor(_: BorrowedFd<'_>) -> io::Result<Option<Box<dyn Reactor>>> {
        Ok(None)
    }
}

impl<R: Runtime> sealed::Mode for Async<R> {
    fn reactor(readiness: BorrowedFd<'_>) -> io::Result<Option<Box<dyn Reactor>>> {
        R::reactor(readiness.try_clone_to_owned()?).map(Some)
    }
}
