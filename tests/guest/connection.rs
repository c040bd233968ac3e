//! Connections between two ids of one device, each with a real queue pair.

pub(crate) mod depth;
pub(crate) mod disconnect;
pub(crate) mod ece;
pub(crate) mod errors;
pub(crate) mod notify;
pub(crate) mod order;
pub(crate) mod private_data;
pub(crate) mod qp_attributes;
pub(crate) mod reject;
pub(crate) mod response;
