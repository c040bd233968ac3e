//! Listeners under load, and listeners that siw closes.

pub(crate) mod absent_peer;
pub(crate) mod backlog;
pub(crate) mod closed;
