//! The completing half of a send queue.

use std::sync::Arc;

use rdmacm_abi::uverbs::{WcStatus, WorkCompletion, WrOpcode};
use rtrb::Consumer;

use super::outcome::Outcome;
use super::{QpStatus, Reported, WorkQueue, flushed, gone, take_discarded, take_flushed};
use crate::address_handle::AddressHandle;
use crate::completion::{Completion, WorkId, WorkKind};
use crate::completion_queue::CqCredits;
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

/// The completing half of a send queue, which its completion queue owns.
///
/// Requests are reported in the order of posting, up to the last one of which the device has
/// reported, or implied, that all before it are complete.
#[derive(Debug)]
pub(super) struct SendCompletions {
    token: u32,
    /// The queue pair's number.
    number: u32,
    /// Whether a completion does not imply that earlier requests are complete.
    individually: bool,
    qp_status: Arc<QpStatus>,
    posted: Consumer<Posted>,
    /// The number of the first request that was not reported, which is the first in `posted`.
    head: u32,
    /// All requests before this one are to be reported.
    ready: u32,
    /// The device has completed all requests before this one; at least `ready`.
    completed: u32,
    /// What the device has said of requests that were not reported, by number.
    outcomes: Box<[Option<Outcome>]>,
    /// The requests that a reset has discarded. The device may still use their memory.
    discarded: Vec<(u32, SgList)>,
    /// The requests that were completed as flushed. The device may still complete them.
    flushed: Vec<u32>,
}

impl SendCompletions {
    pub(super) fn new(
        token: u32,
        number: u32,
        individually: bool,
        qp_status: Arc<QpStatus>,
        posted: Consumer<Posted>,
    ) -> Self {
        let slots = posted.buffer().capacity().next_power_of_two();
        Self {
            token,
            number,
            individually,
            qp_status,
            posted,
            head: 0,
            ready: 0,
            completed: 0,
            outcomes: vec![None; slots].into(),
            discarded: Vec::new(),
            flushed: Vec::new(),
        }
    }

    fn outcome(&mut self, number: u32) -> &mut Option<Outcome> {
        let mask = self.outcomes.len() - 1;
        &mut self.outcomes[number as usize & mask]
    }

    /// The number of the next request that is posted.
    fn tail(&self) -> u32 {
        // The capacity of a queue fits into a `u32`.
        let posted = u32::try_from(self.posted.slots()).unwrap_or(u32::MAX);
        self.head.wrapping_add(posted)
    }

    /// Whether the request with this number is the next to report, and the only one that its
    /// completion makes ready.
    #[inline]
    fn is_next(&mut self, number: u32) -> bool {
        if number != self.head || self.completed != self.head {
            return false;
        }
        // A later request may have completed before.
        !self.individually
            || (self.outcome(number.wrapping_add(1)).is_none()
                && self.posted.peek().is_ok_and(|one| one.signaled))
    }

    /// Takes note of a completion that is not the next to report, or not alone.
    fn record_out_of_order(
        &mut self,
        credits: &CqCredits,
        number: u32,
        wc: &WorkCompletion,
    ) -> bool {
        let tail = self.tail();
        let is_outstanding =
            number.wrapping_sub(self.completed) < tail.wrapping_sub(self.completed);
        if !is_outstanding || self.outcome(number).is_some() {
            return self.record_late(credits, number);
        }
        *self.outcome(number) = Some(Outcome::of(wc));
        if self.individually {
            self.advance(tail);
        } else {
            self.completed = number.wrapping_add(1);
            self.ready = self.completed;
        }
        self.note_status(wc.status);
        true
    }

    /// A completion of a request that was flushed or discarded; `false` if there is none.
    fn record_late(&mut self, credits: &CqCredits, number: u32) -> bool {
        if take_flushed(&mut self.flushed, number) {
            credits.release(1);
            return true;
        }
        take_discarded(&mut self.discarded, number).is_some()
    }

    /// Advances to the first request that the device has not completed.
    fn advance(&mut self, tail: u32) {
        let head = self.head;
        while self.completed != tail {
            let Some(outcome) = *self.outcome(self.completed) else {
                break;
            };
            let index = self.completed.wrapping_sub(head) as usize;
            let is_reported = outcome.status != WcStatus::SUCCESS || self.is_signaled(index);
            self.completed = self.completed.wrapping_add(1);
            if is_reported {
                self.ready = self.completed;
            }
        }
    }

    /// Whether the request at this index of the buffer is signalled.
    fn is_signaled(&mut self, index: usize) -> bool {
        let Ok(chunk) = self.posted.read_chunk(index + 1) else {
            return false;
        };
        let (first, second) = chunk.as_slices();
        let posted = first.get(index).or_else(|| second.get(index - first.len()));
        // The chunk is not committed: nothing is taken.
        posted.is_some_and(|posted| posted.signaled)
    }

    fn note_status(&self, status: WcStatus) {
        if status != WcStatus::SUCCESS {
            self.qp_status.set_broken();
        }
    }

    /// Completes all other requests with this outcome; returns their numbers.
    fn complete_rest(&mut self, outcome: Outcome) -> Vec<u32> {
        let mut numbers = Vec::new();
        let tail = self.tail();
        while self.completed != tail {
            let number = self.completed;
            let place = self.outcome(number);
            if place.is_none() {
                *place = Some(outcome);
                numbers.push(number);
            }
            self.completed = number.wrapping_add(1);
        }
        self.ready = tail;
        numbers
    }

    /// Takes the oldest request.
    fn pop(&mut self) -> Option<(u32, Posted)> {
        let posted = self.posted.pop().ok()?;
        let number = self.head;
        self.head = number.wrapping_add(1);
        Some((number, posted))
    }

    /// Takes all requests with their numbers, and releases their entries.
    fn pop_all(&mut self, credits: &CqCredits) -> Vec<(u32, SgList)> {
        let mut all = Vec::new();
        while let Some((number, posted)) = self.pop() {
            let outcome = self.outcome(number).take();
            if !outcome.is_some_and(|outcome| outcome.keeps_entry) {
                credits.release(1);
            }
            all.push((number, posted.sg_list));
        }
        self.ready = self.head;
        self.completed = self.head;
        all
    }

    fn completion(&self, number: u32, posted: Posted, outcome: &Outcome) -> Completion {
        let queue = self.token;
        let work = WorkId { queue, number };
        Completion {
            work,
            queue_pair: self.number,
            result: outcome.result(WorkKind::Send(posted.opcode), work, self.number),
            sg_list: posted.sg_list,
        }
    }
}

impl WorkQueue for SendCompletions {
    fn complete(
        &mut self,
        credits: &CqCredits,
        number: u32,
        wc: &WorkCompletion,
        report: &mut Option<Completion>,
    ) -> Reported {
        if self.is_next(number) {
            if let Ok(posted) = self.posted.pop() {
                self.head = number.wrapping_add(1);
                self.ready = self.head;
                self.completed = self.head;
                credits.release(1);
                self.note_status(wc.status);
                *report = Some(self.completion(number, posted, &Outcome::of(wc)));
                return Reported::All;
            }
        }
        if self.record_out_of_order(credits, number, wc) {
            self.report(credits, report)
        } else {
            Reported::NoRequest
        }
    }

    fn record(&mut self, credits: &CqCredits, number: u32, wc: &WorkCompletion) -> bool {
        self.record_out_of_order(credits, number, wc)
    }

    fn report(&mut self, credits: &CqCredits, report: &mut Option<Completion>) -> Reported {
        if self.head == self.ready {
            return Reported::All;
        }
        let Some((number, posted)) = self.pop() else {
            return Reported::All;
        };
        let outcome = self.outcome(number).take();
        let outcome = outcome.unwrap_or_else(|| Outcome::implied(posted.opcode));
        if !outcome.keeps_entry {
            credits.release(1);
        }
        *report = Some(self.completion(number, posted, &outcome));
        if self.head == self.ready {
            Reported::All
        } else {
            Reported::More
        }
    }

    fn fail_all(&mut self, _: &CqCredits) {
        self.qp_status.set_broken();
        self.complete_rest(Outcome::of(&gone(self.number)));
    }

    fn flush(&mut self) {
        let numbers = self.complete_rest(Outcome {
            keeps_entry: true,
            ..Outcome::of(&flushed(self.number))
        });
        self.flushed.extend(numbers);
    }

    fn discard(&mut self, credits: &CqCredits) {
        let taken = self.pop_all(credits);
        self.discarded.extend(taken);
    }

    fn take_all(&mut self, credits: &CqCredits) -> Vec<(WorkId, SgList)> {
        for _ in std::mem::take(&mut self.flushed) {
            credits.release(1);
        }
        let mut all = std::mem::take(&mut self.discarded);
        all.extend(self.pop_all(credits));
        let queue = self.token;
        let all = all.into_iter();
        all.map(|(number, sg_list)| (WorkId { queue, number }, sg_list))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtrb::{Producer, RingBuffer};
    use zerocopy::FromZeros;

    /// A queue whose numbers wrap around soon.
    struct Queue {
        posted: Producer<Posted>,
        completions: SendCompletions,
        credits: CqCredits,
    }

    const START: u32 = u32::MAX - 1;

    impl Queue {
        fn new(individually: bool, signaled: &[bool]) -> Self {
            let (posted, consumer) = RingBuffer::new(5);
            let status = Arc::default();
            let mut completions = SendCompletions::new(7, 8, individually, status, consumer);
            completions.head = START;
            completions.ready = START;
            completions.completed = START;
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
            let posted = Posted {
                opcode: WrOpcode::RDMA_READ,
                signaled,
                sg_list: SgList::NONE,
                _address: None,
            };
            self.posted.push(posted).unwrap();
        }

        /// Completes a request; the numbers that are reported, and with which statuses.
        fn complete(&mut self, number: u32, status: WcStatus) -> Vec<(u32, WcStatus)> {
            let wc = WorkCompletion {
                status,
                ..WorkCompletion::new_zeroed()
            };
            let mut report = None;
            let completions = &mut self.completions;
            let mut reported = completions.complete(&self.credits, number, &wc, &mut report);
            assert_ne!(reported, Reported::NoRequest, "{number}");
            let mut reports = Vec::new();
            loop {
                reports.extend(report.take().map(|one| {
                    let failure = one.result.err();
                    let status = failure.map_or(WcStatus::SUCCESS, |failure| failure.status);
                    (one.work.number, status)
                }));
                if reported == Reported::All {
                    return reports;
                }
                reported = self.completions.report(&self.credits, &mut report);
            }
        }

        fn is_stray(&mut self, number: u32) -> bool {
            let wc = WorkCompletion::new_zeroed();
            let mut report = None;
            let completions = &mut self.completions;
            let reported = completions.complete(&self.credits, number, &wc, &mut report);
            reported == Reported::NoRequest && report.is_none()
        }
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
        assert_eq!(queue.credits.usage().reserved, 1);
        assert_eq!(queue.complete(1, SUCCESS), [(1, SUCCESS)]);
        assert!(queue.is_stray(2));
        assert_eq!(queue.credits.usage().reserved, 0);
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
        assert_eq!(queue.credits.usage().reserved, 0);
    }

    #[test]
    fn the_rest_is_completed_once() {
        for individually in [false, true] {
            let mut queue = Queue::new(individually, &[true, true, false]);
            assert_eq!(queue.complete(START, SUCCESS), [(START, SUCCESS)]);
            queue.completions.flush();
            queue.completions.fail_all(&queue.credits);
            assert_eq!(queue.credits.usage().reserved, 2);
            let mut report = None;
            for number in [START + 1, 0] {
                let _ = queue.completions.report(&queue.credits, &mut report);
                let completion = report.take().unwrap();
                assert_eq!(completion.work.number, number);
                let status = completion.result.unwrap_err().status;
                assert_eq!(status, WcStatus::WR_FLUSH_ERR);
            }
            // The device may still complete them, once each.
            assert_eq!(queue.credits.usage().reserved, 2);
            assert_eq!(queue.complete(0, WcStatus::WR_FLUSH_ERR), []);
            assert!(queue.is_stray(0));
            assert_eq!(queue.credits.usage().reserved, 1);
            assert!(queue.completions.take_all(&queue.credits).is_empty());
            assert_eq!(queue.credits.usage().reserved, 0);
        }
    }
}
