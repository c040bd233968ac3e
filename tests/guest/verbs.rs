//! Queue pairs by the kernel's verbs, and what they are made from.

pub(crate) mod alone;
pub(crate) mod context;
pub(crate) mod gids;
pub(crate) mod inherited;
pub(crate) mod iwarp;
pub(crate) mod lifetime;
pub(crate) mod objects;
pub(crate) mod states;
