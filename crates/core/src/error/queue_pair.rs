//! Errors of a queue pair's library.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::errno::Name;

/// The error a [`QueuePair`](crate::QueuePair) returned, unchanged. Two are equal if
/// their kind, their error number and their text are.
#[derive(Clone, Debug)]
pub struct QueuePairError(Arc<io::Error>);

impl QueuePairError {
    /// The error itself: [`io::Error::get_ref`] leads to the library's own type.
    #[must_use]
    pub fn as_io_error(&self) -> &io::Error {
        &self.0
    }

    /// The error number, if the library returned one.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.0.raw_os_error()
    }
}

impl From<io::Error> for QueuePairError {
    fn from(error: io::Error) -> Self {
        Self(Arc::new(error))
    }
}

impl PartialEq for QueuePairError {
    fn eq(&self, other: &Self) -> bool {
        let said = |Self(error): &Self| (error.kind(), error.raw_os_error(), error.to_string());
        said(self) == said(other)
    }
}

impl Eq for QueuePairError {}

impl fmt::Display for QueuePairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(errno) = self.raw_os_error() {
            write!(f, "{}: ", Name(errno))?;
        }
        self.0.fmt(f)
    }
}

impl std::error::Error for QueuePairError {}
