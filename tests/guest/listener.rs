//! Listeners under load, and listeners that siw closes.

pub(crate) mod backlog;
pub(crate) mod closed;
