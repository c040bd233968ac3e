//! Why a transfer failed, and its memory.

use std::fmt;
use std::io;

use crate::error::Error;

/// Why a transfer failed, and its memory. The text is that of the error, so
/// [`source`](std::error::Error::source) returns `None`.
#[derive(Debug)]
#[non_exhaustive]
pub struct TransferError<B> {
    /// Why it failed.
    pub error: Error,
    /// The memory, unless the queue pair still has it: after a deadline, or once the device cannot
    /// be used any more, the queue pair keeps it until the request completes or the connection
    /// closes, and frees it then.
    pub buffer: Option<B>,
}

impl<B> TransferError<B> {
    /// A failed transfer, for tests of error handling.
    #[must_use]
    pub fn new(error: Error, buffer: Option<B>) -> Self {
        Self { error, buffer }
    }
}

impl<B> fmt::Display for TransferError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<B: fmt::Debug> std::error::Error for TransferError<B> {}

impl<B> From<TransferError<B>> for Error {
    fn from(failed: TransferError<B>) -> Self {
        failed.error
    }
}

impl<B> From<TransferError<B>> for io::Error {
    fn from(failed: TransferError<B>) -> Self {
        failed.error.into()
    }
}
