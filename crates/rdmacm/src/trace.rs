//! What the feature `tracing` tells; nothing without it.

use rdmacm_core::Event;

/// An event has been read.
#[cfg(feature = "tracing")]
pub(crate) fn event(event: &Event) {
    tracing::debug!(
        target: "rdmacm",
        id = ?event.id(),
        kind = %event.kind(),
        status = event.status(),
        "event"
    );
}

#[cfg(not(feature = "tracing"))]
pub(crate) fn event(_: &Event) {}
