//! Connections between two ids of one device, each with a real queue pair.

pub(crate) mod attributes;
pub(crate) mod depth;
pub(crate) mod ece;
pub(crate) mod ends;
pub(crate) mod failing;
pub(crate) mod notify;
pub(crate) mod order;
pub(crate) mod private_data;
pub(crate) mod reject;
pub(crate) mod response;
