//! Connectors, listeners and connections.

pub(crate) mod blocking;
