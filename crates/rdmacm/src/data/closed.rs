//! What a closed connection leaves to do.

use rdmacm_core::{EventKind, IdHandle, QueuePair as _};
use rdmacm_verbs::{Context, QueuePair};

use crate::close_reason::CloseReason;

/// An event of this kind has closed the connection or socket of one of the context's queue pairs.
pub(crate) fn note_closed(context: &Context, kind: EventKind) {
    match kind {
        // Perhaps nobody waits for completions any more, who would notice the removal.
        EventKind::DeviceRemoval => context.close(),
        // A peer on the same device may have noticed its removal first.
        _ => context.check_removal(),
    }
}

/// Completes what is outstanding of a closed connection, unless the kernel does that or nothing is
/// left.
pub(crate) fn flush_closed(
    id: &IdHandle,
    queue_pair: &QueuePair,
    reason: CloseReason,
    is_idle: impl FnOnce() -> bool,
) {
    if !reason.flushes(queue_pair.transport()) && !is_idle() {
        // If it fails, the device is gone, which polling reports.
        let _ = id.with_queue_pair(queue_pair).move_to_error();
    }
}
