//! Nodes.

pub(crate) mod fork;
pub(crate) mod migration;
