//! What needs a real kernel.
