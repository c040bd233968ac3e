//! Halves that do not belong together.

use std::error::Error;
use std::fmt;

/// The halves are not of the same connection. It has both.
#[derive(Debug)]
pub struct ReuniteError<A, B>(pub A, pub B);

impl<A, B> fmt::Display for ReuniteError<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the halves are not of the same connection")
    }
}

impl<A: fmt::Debug, B: fmt::Debug> Error for ReuniteError<A, B> {}
