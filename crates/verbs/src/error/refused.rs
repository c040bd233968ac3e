//! What was not taken.

use std::fmt;
use std::io;

use super::Error;

/// Something that was not taken, and why. It comes back unchanged.
///
/// The text is that of `error`, so [`source`](std::error::Error::source) returns `None`.
#[derive(Debug)]
pub struct Refused<T> {
    /// Why.
    pub error: Error,
    /// What comes back.
    pub returned: T,
}

impl<T> Refused<T> {
    pub(crate) fn new(error: Error, returned: T) -> Self {
        Self { error, returned }
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T: fmt::Debug> std::error::Error for Refused<T> {}

impl<T> From<Refused<T>> for Error {
    fn from(refused: Refused<T>) -> Self {
        refused.error
    }
}

impl<T> From<Refused<T>> for io::Error {
    fn from(refused: Refused<T>) -> Self {
        refused.error.into()
    }
}
