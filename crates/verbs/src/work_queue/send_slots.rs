//! The posted requests of a send queue.

use rdmacm_abi::uverbs::{WcOpcode, WcStatus, WorkCompletion, WrOpcode};

use crate::address_handle::AddressHandle;
use crate::completion::{CompletionError, Done, WorkId, WorkKind};
use crate::memory::SgList;

/// A posted request.
#[derive(Debug)]
pub(super) struct Posted {
    pub(super) opcode: WrOpcode,
    pub(super) signaled: bool,
    pub(super) sg_list: SgList,
    /// Keeps the address handle alive until the request is complete.
    pub(super) _address: Option<AddressHandle>,
}

/// What the device has said of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) status: WcStatus,
    pub(super) vendor_error: u32,
    pub(super) opcode: WcOpcode,
    pub(super) bytes: u32,
    /// Whether the device may still report it, so that its completion queue entry stays
    /// reserved.
    pub(super) keeps_entry: bool,
}

impl Outcome {
    pub(super) fn of(wc: &WorkCompletion) -> Self {
        Self {
            status: wc.status,
            vendor_error: wc.vendor_error,
            opcode: wc.opcode,
            bytes: wc.byte_len,
            keeps_entry: false,
        }
    }

    /// The result of the request.
    pub(super) fn result(
        &self,
        kind: WorkKind,
        work: WorkId,
        queue_pair: u32,
    ) -> Result<Done, CompletionError> {
        if self.status == WcStatus::SUCCESS {
            return Ok(Done::sent(self.opcode, self.bytes));
        }
        Err(CompletionError {
            status: self.status,
            vendor: self.vendor_error,
            queue_pair,
            work,
            kind,
        })
    }

    /// That of a request whose completion was not reported.
    fn implied(opcode: WrOpcode) -> Self {
        Self {
            status: WcStatus::SUCCESS,
            vendor_error: 0,
            opcode: match opcode {
                WrOpcode::RDMA_WRITE | WrOpcode::RDMA_WRITE_WITH_IMM => WcOpcode::RDMA_WRITE,
                WrOpcode::RDMA_READ => WcOpcode::RDMA_READ,
                WrOpcode::ATOMIC_CMP_AND_SWP => WcOpcode::COMP_SWAP,
                WrOpcode::ATOMIC_FETCH_AND_ADD => WcOpcode::FETCH_ADD,
                _ => WcOpcode::SEND,
            },
            bytes: 0,
            keeps_entry: false,
        }
    }
}

#[derive(Debug, Default)]
struct Slot {
    posted: Option<Posted>,
    outcome: Option<Outcome>,
}

/// The requests of a queue by number, in the order of posting. Numbers increase and wrap
/// around. They are reported in this order, up to the last one of which the device has
/// reported, or implied, that all before it are complete.
#[derive(Debug)]
pub(super) struct SendSlots {
    slots: Box<[Slot]>,
    /// Whether a completion does not imply that earlier requests are complete.
    individually: bool,
    /// The number of the first request that was not reported.
    head: u32,
    /// All requests before this one are to be reported.
    ready: u32,
    /// The device has completed all requests before this one; at least `ready`.
    completed: u32,
    /// The number of the next request.
    tail: u32,
    /// Signalled requests that were not reported.
    signaled: u32,
}

impl SendSlots {
    /// Slots for at least this many requests.
    pub(super) fn new(capacity: usize, individually: bool) -> Self {
        let slots = (0..capacity.next_power_of_two()).map(|_| Slot::default());
        Self {
            slots: slots.collect(),
            individually,
            head: 0,
            ready: 0,
            completed: 0,
            tail: 0,
            signaled: 0,
        }
    }

    /// The number of requests that were not reported.
    pub(super) fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head) as usize
    }

    /// Whether a request that was not reported is signalled.
    pub(super) fn has_signaled(&self) -> bool {
        self.signaled > 0
    }

    /// The number of the next request.
    pub(super) fn next(&self) -> u32 {
        self.tail
    }

    /// Adds a request. The caller has checked that there is a slot.
    pub(super) fn push(&mut self, posted: Posted) {
        self.signaled += u32::from(posted.signaled);
        let slot = self.slot(self.tail);
        slot.posted = Some(posted);
        slot.outcome = None;
        self.tail = self.tail.wrapping_add(1);
    }

    /// Takes note of a completion. Returns `false` if no request with this number waits for
    /// one.
    pub(super) fn complete(&mut self, number: u32, outcome: Outcome) -> bool {
        let distance = number.wrapping_sub(self.completed);
        if distance >= self.tail.wrapping_sub(self.completed) {
            return false;
        }
        let slot = self.slot(number);
        if slot.outcome.is_some() {
            return false;
        }
        slot.outcome = Some(outcome);
        if self.individually {
            self.advance();
        } else {
            self.completed = number.wrapping_add(1);
            self.ready = self.completed;
        }
        true
    }

    /// Advances to the first request that the device has not completed.
    fn advance(&mut self) {
        while self.completed != self.tail {
            let slot = self.slot(self.completed);
            let Some(outcome) = slot.outcome else {
                break;
            };
            let is_reported = outcome.status != WcStatus::SUCCESS
                || slot.posted.as_ref().is_some_and(|posted| posted.signaled);
            self.completed = self.completed.wrapping_add(1);
            if is_reported {
                self.ready = self.completed;
            }
        }
    }

    /// Completes all other requests with this outcome; returns their numbers.
    pub(super) fn complete_rest(&mut self, outcome: Outcome) -> Vec<u32> {
        let mut numbers = Vec::new();
        while self.completed != self.tail {
            let number = self.completed;
            let slot = self.slot(number);
            if slot.outcome.is_none() {
                slot.outcome = Some(outcome);
                numbers.push(number);
            }
            self.completed = number.wrapping_add(1);
        }
        self.ready = self.tail;
        numbers
    }

    /// Whether a request is to be reported.
    pub(super) fn has_report(&self) -> bool {
        self.head != self.ready
    }

    /// Takes the next request to report.
    pub(super) fn report(&mut self) -> Option<(u32, Posted, Outcome)> {
        if self.head == self.ready {
            return None;
        }
        self.take_head()
    }

    /// Takes all requests, oldest first.
    pub(super) fn take_all(&mut self) -> Vec<(u32, Posted, Outcome)> {
        let mut all = Vec::with_capacity(self.len());
        while self.head != self.tail {
            all.extend(self.take_head());
        }
        self.ready = self.tail;
        self.completed = self.tail;
        all
    }

    fn take_head(&mut self) -> Option<(u32, Posted, Outcome)> {
        let number = self.head;
        let slot = self.slot(number);
        let posted = slot.posted.take()?;
        let outcome = slot.outcome.take();
        self.head = number.wrapping_add(1);
        self.signaled -= u32::from(posted.signaled);
        let outcome = outcome.unwrap_or_else(|| Outcome::implied(posted.opcode));
        Some((number, posted, outcome))
    }

    fn slot(&mut self, number: u32) -> &mut Slot {
        let mask = self.slots.len() - 1;
        &mut self.slots[number as usize & mask]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted(signaled: bool) -> Posted {
        Posted {
            opcode: WrOpcode::RDMA_READ,
            signaled,
            sg_list: SgList::NONE,
            _address: None,
        }
    }

    fn outcome(status: WcStatus) -> Outcome {
        Outcome {
            status,
            ..Outcome::implied(WrOpcode::SEND)
        }
    }

    fn reports(slots: &mut SendSlots) -> Vec<(u32, WcStatus, WcOpcode)> {
        std::iter::from_fn(|| slots.report())
            .map(|(number, _, outcome)| (number, outcome.status, outcome.opcode))
            .collect()
    }

    /// With numbers that wrap around soon.
    fn slots(individually: bool, signaled: &[bool]) -> SendSlots {
        let mut slots = SendSlots::new(3, individually);
        let start = u32::MAX - 1;
        (slots.head, slots.ready) = (start, start);
        (slots.completed, slots.tail) = (start, start);
        signaled.iter().for_each(|one| slots.push(posted(*one)));
        slots
    }

    const SUCCESS: WcStatus = WcStatus::SUCCESS;

    #[test]
    fn a_completion_implies_those_of_earlier_requests() {
        let mut slots = slots(false, &[false, false, true, false]);
        assert_eq!((slots.len(), slots.next()), (4, 2));
        assert!(slots.has_signaled() && !slots.has_report());
        assert!(slots.complete(0, outcome(SUCCESS)));
        assert!(!slots.complete(0, outcome(SUCCESS)), "only once");
        assert!(!slots.complete(u32::MAX, outcome(SUCCESS)), "implied");
        assert!(!slots.complete(2, outcome(SUCCESS)), "not posted");
        let expected = [
            (u32::MAX - 1, SUCCESS, WcOpcode::RDMA_READ),
            (u32::MAX, SUCCESS, WcOpcode::RDMA_READ),
            (0, SUCCESS, WcOpcode::SEND),
        ];
        assert_eq!(reports(&mut slots), expected);
        assert!(!slots.has_signaled());
        assert_eq!(slots.take_all().len(), 1);
        assert_eq!((slots.len(), slots.has_report()), (0, false));
    }

    #[test]
    fn individual_completions_are_reported_in_order_up_to_a_signaled_one() {
        let mut slots = slots(true, &[true, false, true, false]);
        assert!(slots.complete(0, outcome(SUCCESS)));
        assert!(!slots.complete(0, outcome(SUCCESS)));
        assert!(reports(&mut slots).is_empty());
        assert!(slots.complete(u32::MAX - 1, outcome(SUCCESS)));
        assert_eq!(reports(&mut slots).len(), 1);
        assert!(slots.complete(u32::MAX, outcome(SUCCESS)));
        assert_eq!(reports(&mut slots).len(), 2);
        assert!(slots.complete(1, outcome(SUCCESS)));
        assert!(reports(&mut slots).is_empty(), "unsignalled");
        slots.push(posted(false));
        assert!(slots.complete(2, outcome(WcStatus::WR_FLUSH_ERR)));
        let statuses: Vec<_> = reports(&mut slots).iter().map(|one| one.1).collect();
        assert_eq!(statuses, [SUCCESS, WcStatus::WR_FLUSH_ERR]);
    }

    #[test]
    fn the_rest_is_completed_once() {
        for individually in [false, true] {
            let mut slots = slots(individually, &[true, true, false]);
            assert!(slots.complete(u32::MAX - 1, outcome(SUCCESS)));
            let rest = slots.complete_rest(outcome(WcStatus::FATAL_ERR));
            assert_eq!(rest, [u32::MAX, 0]);
            assert!(slots.complete_rest(outcome(WcStatus::FATAL_ERR)).is_empty());
            let statuses: Vec<_> = reports(&mut slots).iter().map(|one| one.1).collect();
            assert_eq!(
                statuses,
                [SUCCESS, WcStatus::FATAL_ERR, WcStatus::FATAL_ERR]
            );
        }
    }
}
