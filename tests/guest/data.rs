//! Data through queue pairs.

pub(crate) mod messages;
