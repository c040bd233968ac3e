//! Listeners under load, and those that siw closes.

pub(crate) mod backlog;
pub(crate) mod closed;
