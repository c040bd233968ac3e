//! What the feature `tracing` tells; nothing without it.

use std::time::Duration;

use rdmacm_core::{Event, IdHandle};

use crate::step::Step;

/// The span of an id: a listener's ids and those of its requests that wait
/// share one.
#[derive(Debug)]
#[cfg_attr(not(feature = "tracing"), derive(Default))]
pub(crate) struct Trace {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
    /// A subscriber may write a field as often as it is recorded.
    #[cfg(feature = "tracing")]
    named: std::sync::Once,
}

#[cfg(feature = "tracing")]
impl Trace {
    /// Whose span it is: of several ids, the first one's.
    pub(crate) fn name(&self, id: &IdHandle) {
        self.named.call_once(|| {
            self.span.record("id", tracing::field::debug(id));
        });
    }

    /// An event has been read.
    pub(crate) fn event(&self, event: &Event) {
        tracing::debug!(
            target: "rdmacm",
            parent: &self.span,
            kind = %event.kind(),
            status = event.status(),
            "event"
        );
    }

    /// A step is done, so long after the beginning.
    pub(crate) fn step(&self, step: Step, elapsed: Duration) {
        tracing::debug!(target: "rdmacm", parent: &self.span, ?step, ?elapsed, "done");
    }
}

#[cfg(feature = "tracing")]
impl Default for Trace {
    fn default() -> Self {
        Self {
            span: tracing::debug_span!(target: "rdmacm", "cm_id", id = tracing::field::Empty),
            named: std::sync::Once::new(),
        }
    }
}

#[cfg(not(feature = "tracing"))]
#[expect(clippy::unused_self, reason = "as with the feature")]
impl Trace {
    pub(crate) fn name(&self, _: &IdHandle) {}

    pub(crate) fn event(&self, _: &Event) {}

    pub(crate) fn step(&self, _: Step, _: Duration) {}
}
