//! Queue pairs and the objects they depend on, with the kernel's verbs.

pub(crate) mod child;
pub(crate) mod context;
pub(crate) mod gids;
pub(crate) mod iwarp;
pub(crate) mod lifetime;
pub(crate) mod objects;
pub(crate) mod processes;
pub(crate) mod states;
