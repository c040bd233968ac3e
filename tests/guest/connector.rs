//! Connectors.

pub(crate) mod addresses;
pub(crate) mod asynchronous;
pub(crate) mod blocking;
pub(crate) mod blocking_executor;
pub(crate) mod candidates;
pub(crate) mod deadlines;
pub(crate) mod early_disconnect;
pub(crate) mod errors;
pub(crate) mod handshakes;
pub(crate) mod stress;
pub(crate) mod tracing;
