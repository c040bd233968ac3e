//! What only InfiniBand has, on a simulated fabric.
#![cfg(test)]

mod addresses;
mod by_event;
mod fabric;
mod services;
