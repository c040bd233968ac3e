//! Spans and events of the feature `tracing`.
//!
//! Each id has a span `cm_id` with the fields `id`, `device`, `local` and `peer`, of target
//! `rdmacm`. Requests that wait at a listener share the listener's span.

use std::sync::Once;
use std::time::Duration;

use rdmacm_core::{Event, EventKind, IdHandle};
use tracing::field::{Empty, debug, display};
use tracing::{Level, Span};

use crate::close_reason::CloseReason;
use crate::stage::Stage;

const TARGET: &str = "rdmacm";

/// The span of an id.
#[derive(Debug)]
pub(crate) struct Trace {
    span: Span,
    /// Some subscribers write a field each time that it is recorded.
    id_recorded: Once,
}

impl Default for Trace {
    fn default() -> Self {
        let span = tracing::info_span!(
            target: TARGET,
            "cm_id",
            id = Empty,
            device = Empty,
            local = Empty,
            peer = Empty
        );
        Self {
            span,
            id_recorded: Once::new(),
        }
    }
}

impl Trace {
    /// The id of the span: of several ids with one event queue, the first.
    pub(crate) fn record_id(&self, id: &IdHandle) {
        self.id_recorded.call_once(|| {
            self.span.record("id", debug(id));
        });
    }

    /// An event was read.
    pub(crate) fn event(&self, event: &Event) {
        let (kind, status) = (event.kind(), event.status());
        if kind == EventKind::Rejected {
            let reason = event.failure().map(display);
            tracing::info!(target: TARGET, parent: &self.span, reason, "rejected");
        }
        tracing::debug!(target: TARGET, parent: &self.span, %kind, status, "event");
    }

    /// A listener has read a connect request.
    pub(crate) fn request(&self, id: &IdHandle, event: &Event) {
        self.record_addresses(id);
        let private_data = event.private_data().len();
        tracing::info!(target: TARGET, parent: &self.span, private_data, "request");
    }

    /// A stage is complete, after this time since the attempt began.
    pub(crate) fn stage(&self, stage: Stage, elapsed: impl FnOnce() -> Duration) {
        if tracing::enabled!(target: TARGET, Level::DEBUG) {
            let elapsed = elapsed();
            tracing::debug!(target: TARGET, parent: &self.span, ?stage, ?elapsed, "completed");
        }
    }

    /// The connection is established.
    pub(crate) fn established(&self, id: &IdHandle) {
        self.record_addresses(id);
        tracing::info!(target: TARGET, parent: &self.span, "established");
    }

    /// A connection that carries messages was dropped or closed.
    pub(crate) fn closed(&self, reason: Option<CloseReason>, sent: u64, received: u64) {
        let reason = reason.map(display);
        tracing::info!(target: TARGET, parent: &self.span, reason, sent, received, "closed");
    }

    /// Queries the kernel, so only if a subscriber reads the span.
    fn record_addresses(&self, id: &IdHandle) {
        if self.span.is_disabled() || !tracing::enabled!(target: TARGET, Level::INFO) {
            return;
        }
        if let Ok(Some(device)) = id.rdma_device() {
            self.span.record("device", device.name);
        }
        if let Ok(addresses) = id.addresses() {
            if let Some(local) = addresses.source {
                self.span.record("local", display(local));
            }
            if let Some(peer) = addresses.destination {
                self.span.record("peer", display(peer));
            }
        }
    }
}
