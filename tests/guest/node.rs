//! Nodes.

pub(crate) mod migration;
