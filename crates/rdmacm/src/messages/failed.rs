//! What came back with an error.

use std::fmt;
use std::io;

use crate::error::Error;

/// Why a request failed, and its memory. The text is that of `error`, so
/// [`source`](std::error::Error::source) returns `None`.
#[derive(Debug)]
pub struct Failed<T> {
    /// Why.
    pub error: Error,
    /// The memory, unless the queue pair has it still: where the deadline passed, it
    /// stays there until the request completes or the connection ends, and is freed
    /// then.
    pub returned: Option<T>,
}

impl<T> fmt::Display for Failed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T: fmt::Debug> std::error::Error for Failed<T> {}

impl<T> From<Failed<T>> for Error {
    fn from(failed: Failed<T>) -> Self {
        failed.error
    }
}

impl<T> From<Failed<T>> for io::Error {
    fn from(failed: Failed<T>) -> Self {
        failed.error.into()
    }
}
