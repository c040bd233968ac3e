//! Byte streams that speak the rsocket protocol of librdmacm.
//!
//! `rdmacm_rsocket` is the protocol as a state machine of numbers. This module gives it a
//! queue pair, memory and an event loop. A stream has two halves under a lock each:
//! [`ReceiveState`](receive_state::ReceiveState) has what has arrived,
//! [`SendState`](send_state::SendState) what was posted. Locks are taken in this order:
//! receive state, send state, status.

mod accept;
mod connection;
mod descriptor;
mod failure;
mod handle;
mod handshake;
mod lingering;
mod listener_readiness;
mod mapped_memory;
mod options;
mod peer_maps;
mod pending_handshakes;
mod queue_pair;
mod readiness;
mod ready;
mod receive_queue;
mod receive_state;
mod refusal;
mod send_buffers;
mod send_slot;
mod send_state;
mod shared_receives;
mod shared_status;
mod slices;
mod status;
#[cfg(test)]
mod status_tests;
mod thread_wait;
mod wait;

pub use options::StreamOptions;
pub use send_slot::SendSlot;

pub(crate) use handle::StreamHandle;
pub(crate) use handshake::{accept, connect};
pub(crate) use lingering::wait_for_dropped_streams;
pub(crate) use pending_handshakes::PendingHandshakes;
pub(crate) use receive_state::Reading;
pub(crate) use status::StreamInterest;
