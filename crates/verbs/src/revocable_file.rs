//! A file that can be closed while others use it.

use std::fs::File;
use std::sync::{PoisonError, RwLock};

/// An open file, until it is closed. Closing waits for the calls that are using it, and later
/// calls find it closed: no descriptor is used after the kernel may have reused its number.
#[derive(Debug)]
pub(crate) struct RevocableFile<F = File>(RwLock<Option<F>>);

impl<F> RevocableFile<F> {
    pub(crate) fn new(file: F) -> Self {
        Self(RwLock::new(Some(file)))
    }

    /// Calls `using` with the file; `None` if it is closed.
    #[inline]
    pub(crate) fn with<T>(&self, using: impl FnOnce(&F) -> T) -> Option<T> {
        let file = self.0.read().unwrap_or_else(PoisonError::into_inner);
        file.as_ref().map(using)
    }

    /// Closes it after a last use; `None` if it is closed already.
    pub(crate) fn close<T>(&self, last: impl FnOnce(&F) -> T) -> Option<T> {
        let mut file = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let file = file.take()?;
        Some(last(&file))
    }
}
