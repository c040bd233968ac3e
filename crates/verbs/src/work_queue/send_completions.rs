//! The completing half of a send queue.

use std::sync::Arc;

use rdmacm_abi::uverbs::{WcStatus, WorkCompletion, WrOpcode};

use super::late_requests::LateRequests;
use super::outcome::Outcome;
use super::posted_ring::Consumer;
use super::successes::{QueueIdentity, take_successes};
use super::{QpStatus, Reported, WorkQueue, context_closed, flushed};
use crate::address_handle::AddressHandle;
use crate::completion::{Completion, Report, WorkId};
use crate::completion_queue::{CqCredits, OutputSlots};
use crate::memory::SgList;
use crate::provider::CompletionRing;
use crate::request_id::QueueIndex;

/// What there is of a posted request, besides its memory.
#[derive(Debug)]
pub(super) struct PostedSend {
    /// Keeps the address handle alive until the request is complete.
    pub(super) address: Option<AddressHandle>,
    pub(super) opcode: WrOpcode,
    pub(super) signaled: bool,
    /// Whether it is signalled and has no address handle.
    is_simple: bool,
    /// What the device has reported of it, if it is not reported on yet.
    outcome: Option<Outcome>,
}

impl PostedSend {
    /// A request that was posted now.
    #[inline]
    pub(super) fn new(opcode: WrOpcode, signaled: bool, address: Option<AddressHandle>) -> Self {
        Self {
            is_simple: signaled && address.is_none(),
            address,
            opcode,
            signaled,
            outcome: None,
        }
    }
}

/// The completing half of a send queue, which its completion queue owns.
///
/// Requests are reported in the order of posting, up to the last one of which the device has
/// reported, or implied, that all before it are complete.
#[derive(Debug)]
pub(crate) struct SendCompletions {
    queue: u32,
    /// The queue pair's number.
    number: u32,
    /// Whether a completion does not imply that earlier requests are complete.
    individually: bool,
    qp_status: Arc<QpStatus>,
    /// The requests that were not reported.
    posted: Consumer<PostedSend>,
    /// How many of them have an outcome. Without any, `ready` and `completed` are out of date.
    outcomes: u32,
    /// All requests before this one are to be reported.
    ready: u32,
    /// The device has completed all requests before this one; at least `ready`.
    completed: u32,
    late: LateRequests,
}

impl SendCompletions {
    pub(super) fn new(
        queue: u32,
        number: u32,
        individually: bool,
        qp_status: Arc<QpStatus>,
        posted: Consumer<PostedSend>,
    ) -> Self {
        Self {
            queue,
            number,
            individually,
            qp_status,
            ready: posted.head(),
            completed: posted.head(),
            outcomes: 0,
            posted,
            late: LateRequests::default(),
        }
    }

    /// Takes the next completions from the device, as [`take_successes`] does.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each completion")]
    pub(crate) fn take_next(
        &mut self,
        index: QueueIndex,
        ring: &mut impl CompletionRing,
        slots: &mut impl OutputSlots,
        is_closed: impl Fn() -> bool,
    ) -> u32 {
        // Otherwise a request has completed before, or is made ready by the next one.
        if self.outcomes > 0 {
            return 0;
        }
        let identity = QueueIdentity {
            queue: self.queue,
            index,
            qp_number: self.number,
        };
        // A request that is not signalled is reported with a later one.
        let is_next = |posted: &PostedSend| posted.is_simple;
        take_successes(
            &mut self.posted,
            identity,
            ring,
            slots,
            is_closed,
            is_next,
            Report::sent,
        )
    }

    fn outcome(&mut self, number: u32) -> Option<Outcome> {
        self.posted.get(number)?.outcome
    }

    /// Sets the outcome of a request that has none.
    fn set_outcome(&mut self, number: u32, outcome: Outcome) {
        if let Some(posted) = self.posted.get(number) {
            posted.outcome = Some(outcome);
            self.outcomes += 1;
        }
    }

    /// Brings the numbers up to date, which are not kept while there is nothing to report.
    fn catch_up(&mut self) {
        if self.outcomes == 0 {
            self.completed = self.posted.head();
            self.ready = self.completed;
        }
    }

    /// Advances to the first request that the device has not completed.
    fn advance(&mut self, tail: u32) {
        while self.completed != tail {
            let Some(outcome) = self.outcome(self.completed) else {
                break;
            };
            let is_reported =
                outcome.status != WcStatus::SUCCESS || self.is_signaled(self.completed);
            self.completed = self.completed.wrapping_add(1);
            if is_reported {
                self.ready = self.completed;
            }
        }
    }

    /// Whether the request with this number is signalled.
    fn is_signaled(&mut self, number: u32) -> bool {
        self.posted.get(number).is_some_and(|one| one.signaled)
    }

    fn note_status(&self, status: WcStatus) {
        if status != WcStatus::SUCCESS {
            self.qp_status.set_broken();
        }
    }

    /// Completes all other requests with this outcome; returns their numbers.
    fn complete_rest(&mut self, outcome: Outcome) -> Vec<u32> {
        self.catch_up();
        let mut numbers = Vec::new();
        let tail = self.posted.tail();
        while self.completed != tail {
            let number = self.completed;
            if self.outcome(number).is_none() {
                self.set_outcome(number, outcome);
                numbers.push(number);
            }
            self.completed = number.wrapping_add(1);
        }
        self.ready = tail;
        numbers
    }

    /// Takes the oldest request.
    fn pop(&mut self) -> Option<Popped> {
        let front = self.posted.front()?;
        let number = front.number();
        let popped = front.take(|sg_list, posted| {
            drop(posted.address.take());
            Popped {
                number,
                sg_list,
                opcode: posted.opcode,
                outcome: posted.outcome,
            }
        });
        self.outcomes -= u32::from(popped.outcome.is_some());
        Some(popped)
    }

    /// Takes all requests with their numbers, and releases their entries.
    fn pop_all(&mut self, credits: &CqCredits) -> Vec<(u32, SgList)> {
        let mut all = Vec::new();
        while let Some(popped) = self.pop() {
            if !popped.outcome.is_some_and(|outcome| outcome.keeps_entry) {
                credits.release(1);
            }
            all.push((popped.number, popped.sg_list));
        }
        all
    }

    /// Whether there is a request to report.
    fn is_behind(&self) -> bool {
        self.outcomes > 0 && self.posted.head() != self.ready
    }
}

/// A request that was taken out.
struct Popped {
    number: u32,
    sg_list: SgList,
    opcode: WrOpcode,
    outcome: Option<Outcome>,
}

impl WorkQueue for SendCompletions {
    fn record(&mut self, credits: &CqCredits, number: u32, wc: &WorkCompletion) -> bool {
        self.catch_up();
        let tail = self.posted.tail();
        let is_outstanding =
            number.wrapping_sub(self.completed) < tail.wrapping_sub(self.completed);
        if !is_outstanding || self.outcome(number).is_some() {
            return self.late.complete(credits, number);
        }
        self.set_outcome(number, Outcome::of(wc));
        if self.individually {
            self.advance(tail);
        } else {
            self.completed = number.wrapping_add(1);
            self.ready = self.completed;
        }
        self.note_status(wc.status);
        true
    }

    fn report(&mut self, credits: &CqCredits) -> Reported {
        if !self.is_behind() {
            return Reported::Nothing;
        }
        let Some(popped) = self.pop() else {
            return Reported::Nothing;
        };
        let Popped {
            number,
            sg_list,
            opcode,
            outcome,
        } = popped;
        let outcome = outcome.unwrap_or_else(|| Outcome::implied(opcode));
        if !outcome.keeps_entry {
            credits.release(1);
        }
        let completion = Completion {
            work: WorkId {
                queue: self.queue,
                number,
            },
            sg_list,
            qp_number: self.number,
            report: outcome.report(opcode),
        };
        if self.is_behind() {
            Reported::More(completion)
        } else {
            Reported::One(completion)
        }
    }

    fn fail_all(&mut self, _: &CqCredits) {
        self.qp_status.set_broken();
        self.complete_rest(Outcome::of(&context_closed(self.number)));
    }

    fn flush(&mut self) {
        let numbers = self.complete_rest(Outcome {
            keeps_entry: true,
            ..Outcome::of(&flushed(self.number))
        });
        self.late.flush(numbers);
    }

    fn discard(&mut self, credits: &CqCredits) {
        let taken = self.pop_all(credits);
        self.late.discard(taken);
    }

    fn take_all(&mut self, credits: &CqCredits) -> Vec<(WorkId, SgList)> {
        let mut all = self.late.take_all(credits);
        all.extend(self.pop_all(credits));
        if all.is_empty() {
            return Vec::new();
        }
        let queue = self.queue;
        let all = all.into_iter();
        all.map(|(number, sg_list)| (WorkId { queue, number }, sg_list))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use rdmacm_abi::uverbs::WcOpcode;
    use zerocopy::FromZeros;

    use super::super::posted_ring::{Producer, starting_at};
    use super::*;
    use crate::completion_queue::{Spare, append};
    use crate::provider::stub::Stub;
    use crate::request_id::RequestId;

    /// A queue whose numbers wrap around soon.
    struct Queue {
        posted: Producer<PostedSend>,
        completions: SendCompletions,
        credits: CqCredits,
    }

    const START: u32 = u32::MAX - 1;

    impl Queue {
        fn new(individually: bool, signaled: &[bool]) -> Self {
            let (posted, consumer) = starting_at(START, 5);
            let status = Arc::default();
            let completions = SendCompletions::new(7, 8, individually, status, consumer);
            let mut queue = Self {
                posted,
                completions,
                credits: CqCredits::new(5),
            };
            for one in signaled {
                queue.post(*one);
            }
            queue
        }

        fn post(&mut self, signaled: bool) {
            assert!(self.credits.reserve(1, 0));
            let posted = PostedSend::new(WrOpcode::RDMA_READ, signaled, None);
            self.posted
                .vacancy(|| 1)
                .unwrap()
                .fill(SgList::NONE, posted);
        }

        /// Completes a request; the numbers that are reported, and with which statuses.
        fn complete(&mut self, number: u32, status: WcStatus) -> Vec<(u32, WcStatus)> {
            let wc = completed(status);
            if let Some(completion) = self.next(number, status) {
                assert!(self.report().is_none(), "it is the only one");
                return vec![outcome(&completion)];
            }
            let recorded = self.completions.record(&self.credits, number, &wc);
            assert!(recorded, "{number}");
            let mut reports = Vec::new();
            while let Some((completion, is_last)) = self.report() {
                reports.push(outcome(&completion));
                if is_last {
                    assert!(self.report().is_none());
                    break;
                }
            }
            reports
        }

        /// The completion of a request, if it is the next to report, and alone.
        fn next(&mut self, number: u32, status: WcStatus) -> Option<Completion> {
            let index = QueueIndex::own(3).unwrap();
            let id = |number| RequestId {
                queue: index,
                number,
            };
            let device = Stub::new(false);
            device.complete(id(number).to_device(), status, WcOpcode::SEND);
            // Of no request that there is.
            device.complete(id(77).to_device(), status, WcOpcode::SEND);
            let mut ring = device.ring(2);
            let (completions, mut taken) = (&mut self.completions, Vec::new());
            let mut take = |is_closed: bool| {
                let take = |slots: &mut Spare<'_>| {
                    completions.take_next(index, &mut ring, slots, || is_closed)
                };
                let (count, taken) = append(&mut taken, 2, take);
                assert_eq!(count, taken as usize);
                taken
            };
            assert_eq!(take(true), 0);
            let count = take(false);
            self.credits.release(count);
            let left = if count == 0 { number } else { 77 };
            assert_eq!(ring.oldest().unwrap().1.id, id(left).to_device());
            assert!(taken.len() <= 1);
            taken.pop()
        }

        /// The next report, and whether it is the last one.
        fn report(&mut self) -> Option<(Completion, bool)> {
            match self.completions.report(&self.credits) {
                Reported::One(completion) => Some((completion, true)),
                Reported::More(completion) => Some((completion, false)),
                Reported::Nothing => None,
            }
        }

        fn is_stray(&mut self, number: u32) -> bool {
            if self.next(number, WcStatus::SUCCESS).is_some() {
                return false;
            }
            let (completions, credits) = (&mut self.completions, &self.credits);
            !completions.record(credits, number, &completed(WcStatus::SUCCESS))
        }
    }

    fn completed(status: WcStatus) -> WorkCompletion {
        WorkCompletion {
            status,
            ..WorkCompletion::new_zeroed()
        }
    }

    /// The number of a request, and its status.
    fn outcome(completion: &Completion) -> (u32, WcStatus) {
        let failure = completion.result().err();
        let status = failure.map_or(WcStatus::SUCCESS, |failure| failure.status);
        (completion.work.number, status)
    }

    const SUCCESS: WcStatus = WcStatus::SUCCESS;

    #[test]
    fn a_completion_implies_those_of_earlier_requests() {
        let mut queue = Queue::new(false, &[false, false, true, false]);
        let expected = [(START, SUCCESS), (START + 1, SUCCESS), (0, SUCCESS)];
        assert_eq!(queue.complete(0, SUCCESS), expected);
        for number in [0, START + 1, 2, 9] {
            assert!(queue.is_stray(number), "{number}");
        }
        assert_eq!(queue.credits.reserved(), 1);
        assert_eq!(queue.complete(1, SUCCESS), [(1, SUCCESS)]);
        assert!(queue.is_stray(2));
        assert_eq!(queue.credits.reserved(), 0);
    }

    #[test]
    fn individual_completions_are_reported_in_order_up_to_a_signaled_one() {
        let mut queue = Queue::new(true, &[true, false, true, false, false]);
        assert_eq!(queue.complete(0, SUCCESS), []);
        assert!(queue.is_stray(0));
        assert_eq!(queue.complete(START, SUCCESS), [(START, SUCCESS)]);
        let expected = [(START + 1, SUCCESS), (0, SUCCESS)];
        assert_eq!(queue.complete(START + 1, SUCCESS), expected);
        assert_eq!(queue.complete(1, SUCCESS), [], "unsignalled");
        let failed = WcStatus::WR_FLUSH_ERR;
        assert_eq!(queue.complete(2, failed), [(1, SUCCESS), (2, failed)]);
        queue.post(true);
        queue.post(true);
        assert_eq!(queue.complete(4, SUCCESS), []);
        let expected = [(3, SUCCESS), (4, SUCCESS)];
        assert_eq!(queue.complete(3, SUCCESS), expected, "two at once");
        assert_eq!(queue.credits.reserved(), 0);
    }

    #[test]
    fn the_rest_is_completed_once() {
        for individually in [false, true] {
            let mut queue = Queue::new(individually, &[true, true, false]);
            assert_eq!(queue.complete(START, SUCCESS), [(START, SUCCESS)]);
            queue.completions.flush();
            queue.completions.fail_all(&queue.credits);
            assert_eq!(queue.credits.reserved(), 2);
            for number in [START + 1, 0] {
                let (completion, _) = queue.report().unwrap();
                assert_eq!(outcome(&completion), (number, WcStatus::WR_FLUSH_ERR));
            }
            // The device may still complete them, once each.
            assert_eq!(queue.credits.reserved(), 2);
            assert_eq!(queue.complete(0, WcStatus::WR_FLUSH_ERR), []);
            assert!(queue.is_stray(0));
            assert_eq!(queue.credits.reserved(), 1);
            assert!(queue.completions.take_all(&queue.credits).is_empty());
            assert_eq!(queue.credits.reserved(), 0);
        }
    }
}
