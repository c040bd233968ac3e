//! Refused requests.

use std::fmt;
use std::io;

use super::Error;

/// A refused request or memory, returned unchanged, with the error.
///
/// The text is that of `error`, so [`source`](std::error::Error::source) returns `None`.
#[derive(Debug)]
pub struct PostError<T> {
    /// The error.
    pub error: Error,
    /// The refused value.
    pub returned: T,
}

impl<T> PostError<T> {
    pub(crate) fn new(error: Error, returned: T) -> Self {
        Self { error, returned }
    }
}

impl<T> fmt::Display for PostError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T: fmt::Debug> std::error::Error for PostError<T> {}

impl<T> From<PostError<T>> for Error {
    fn from(refused: PostError<T>) -> Self {
        refused.error
    }
}

impl<T> From<PostError<T>> for io::Error {
    fn from(refused: PostError<T>) -> Self {
        refused.error.into()
    }
}
