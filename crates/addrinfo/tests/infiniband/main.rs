//! What only InfiniBand has, on a simulated fabric.
#![cfg(test)]

mod acm;
mod addresses;
mod by_event;
mod crowd;
/// The one the guest suite has.
#[path = "../../../../tests/src/acm_daemon.rs"]
#[expect(
    unreachable_pub,
    dead_code,
    reason = "the guest suite's, which makes it public"
)]
mod daemon;
mod fabric;
mod services;
