//! Completions that are reported as they come.

use rdmacm_abi::uverbs::{WcStatus, WorkCompletion};

use super::posted_ring::Consumer;
use crate::completion::{Completion, Report, WorkId};
use crate::completion_queue::{OutputSlot, OutputSlots};
use crate::provider::CompletionRing;
use crate::request_id::{QueueIndex, RequestId};

/// The queue whose requests they are of.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueIdentity {
    /// What the ids of its requests have of it.
    pub(super) queue: u32,
    /// Its index in the completion queue.
    pub(super) index: QueueIndex,
    /// The number of the queue pair.
    pub(super) qp_number: u32,
}

/// Takes completions from the device and puts what is to be reported into `slots`, as long as
/// each is of the oldest request, has succeeded, and `is_next`: it is all there is to report; and
/// there is a slot for it. Returns how many. `is_closed` says whether what was read from the ring
/// is not the device's.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the path of each completion")]
pub(super) fn take_successes<R>(
    posted: &mut Consumer<R>,
    identity: QueueIdentity,
    ring: &mut impl CompletionRing,
    slots: &mut impl OutputSlots,
    is_closed: impl Fn() -> bool,
    is_next: impl Fn(&R) -> bool,
    report: impl Fn(&WorkCompletion) -> Report,
) -> u32 {
    let QueueIdentity {
        queue,
        index,
        qp_number,
    } = identity;
    let mut taken = 0;
    while let Some(slot) = slots.next() {
        let Some((oldest, wc)) = ring.oldest() else {
            break;
        };
        let Some(request) = posted.front() else {
            break;
        };
        let number = request.number();
        let own = RequestId {
            queue: index,
            number,
        };
        if wc.id != own.to_device() || !is_next(request.get()) {
            break;
        }
        if wc.status != WcStatus::SUCCESS || is_closed() {
            break;
        }
        request.take(|sg_list, _| {
            slot.put(Completion {
                work: WorkId { queue, number },
                sg_list,
                qp_number,
                report: report(&wc),
            });
        });
        ring.remove(oldest);
        taken += 1;
    }
    taken
}
