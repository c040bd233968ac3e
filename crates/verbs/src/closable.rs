//! A descriptor that can be closed while it is in use.

use std::fs::File;
use std::sync::{PoisonError, RwLock};

/// An open file, until it is closed: that waits for those who use it just then,
/// and who comes later finds it closed. So no number of a descriptor is used
/// after the kernel may have given it away.
#[derive(Debug)]
pub(crate) struct Closable(RwLock<Option<File>>);

impl Closable {
    pub(crate) fn new(file: File) -> Self {
        Self(RwLock::new(Some(file)))
    }

    /// What `using` makes of the file; `None` if it is closed.
    pub(crate) fn with<T>(&self, using: impl FnOnce(&File) -> T) -> Option<T> {
        let file = self.0.read().unwrap_or_else(PoisonError::into_inner);
        file.as_ref().map(using)
    }

    /// Closes it, after a last use; `None` if it is closed already.
    pub(crate) fn close<T>(&self, last: impl FnOnce(&File) -> T) -> Option<T> {
        let mut file = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let file = file.take()?;
        Some(last(&file))
    }
}
