//! Without the feature `tracing` nothing is recorded.

use std::time::Duration;

use rdmacm_core::{Event, IdHandle};

use crate::close_reason::CloseReason;
use crate::stage::Stage;

#[derive(Debug, Default)]
pub(crate) struct Trace;

#[expect(clippy::unused_self, reason = "as with the feature")]
impl Trace {
    pub(crate) fn record_id(&self, _: &IdHandle) {}

    pub(crate) fn event(&self, _: &Event) {}

    pub(crate) fn request(&self, _: &IdHandle, _: &Event) {}

    pub(crate) fn stage(&self, _: Stage, _: impl FnOnce() -> Duration) {}

    pub(crate) fn established(&self, _: &IdHandle) {}

    pub(crate) fn closed(&self, _: Option<CloseReason>, _: u64, _: u64) {}
}
