//! The completing half of a queue pair's receive queue.

use std::collections::VecDeque;
use std::sync::Arc;

use rdmacm_abi::uverbs::{WcStatus, WorkCompletion};

use super::late_requests::LateRequests;
use super::posted_ring::Consumer;
use super::successes::{QueueIdentity, take_successes};
use super::{QpStatus, Reported, WorkQueue, context_closed, flushed};
use crate::completion::{Completion, Report, WorkId, WorkKind};
use crate::completion_queue::{CqCredits, OutputSlots};
use crate::memory::SgList;
use crate::provider::CompletionRing;
use crate::request_id::QueueIndex;

/// The completing half of a queue pair's receive queue, which its completion queue owns. The
/// device completes the requests in order.
#[derive(Debug)]
pub(crate) struct ReceiveCompletions {
    queue: u32,
    /// The queue pair's number.
    number: u32,
    qp_status: Arc<QpStatus>,
    posted: Consumer<()>,
    /// Completed requests that were not reported yet.
    unreported: VecDeque<Completion>,
    late: LateRequests,
}

impl ReceiveCompletions {
    pub(super) fn new(
        queue: u32,
        number: u32,
        qp_status: Arc<QpStatus>,
        posted: Consumer<()>,
    ) -> Self {
        Self {
            queue,
            number,
            qp_status,
            posted,
            unreported: VecDeque::new(),
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
        if !self.unreported.is_empty() {
            return 0;
        }
        let identity = QueueIdentity {
            queue: self.queue,
            index,
            qp_number: self.number,
        };
        let is_next = |(): &()| true;
        take_successes(
            &mut self.posted,
            identity,
            ring,
            slots,
            is_closed,
            is_next,
            Report::received,
        )
    }

    /// Takes the oldest request.
    fn pop(&mut self) -> Option<(u32, SgList)> {
        let front = self.posted.front()?;
        Some((front.number(), front.take(|sg_list, ()| sg_list)))
    }

    fn pop_all(&mut self) -> Vec<(u32, SgList)> {
        let mut all = Vec::with_capacity(self.posted.len());
        while let Some(request) = self.pop() {
            all.push(request);
        }
        all
    }

    fn work(&self, number: u32) -> WorkId {
        let queue = self.queue;
        WorkId { queue, number }
    }

    /// Completes all requests; returns their numbers.
    fn complete_all(&mut self, wc: &WorkCompletion) -> Vec<u32> {
        let mut numbers = Vec::new();
        while let Some(number) = self.complete_one(wc) {
            numbers.push(number);
        }
        numbers
    }

    /// Completes the oldest request, which is reported later; returns its number.
    fn complete_one(&mut self, wc: &WorkCompletion) -> Option<u32> {
        self.posted.front()?;
        if wc.status != WcStatus::SUCCESS {
            self.qp_status.set_broken();
        }
        // First: it counts as outstanding all the time.
        self.qp_status.add_unreported_receive();
        let (number, sg_list) = self.pop()?;
        self.unreported.push_back(Completion {
            work: self.work(number),
            sg_list,
            qp_number: self.number,
            report: Report::of(WorkKind::Receive, wc),
        });
        Some(number)
    }
}

impl WorkQueue for ReceiveCompletions {
    fn record(&mut self, credits: &CqCredits, number: u32, wc: &WorkCompletion) -> bool {
        let oldest = self.posted.front().map(|front| front.number());
        if oldest != Some(number) {
            return self.late.complete(credits, number);
        }
        self.complete_one(wc);
        credits.release(1);
        true
    }

    fn report(&mut self, _: &CqCredits) -> Reported {
        let Some(next) = self.unreported.pop_front() else {
            return Reported::Nothing;
        };
        self.qp_status.remove_unreported_receive();
        if self.unreported.is_empty() {
            Reported::One(next)
        } else {
            Reported::More(next)
        }
    }

    fn fail_all(&mut self, credits: &CqCredits) {
        for _ in self.complete_all(&context_closed(self.number)) {
            credits.release(1);
        }
    }

    fn flush(&mut self) {
        let numbers = self.complete_all(&flushed(self.number));
        self.late.flush(numbers);
    }

    fn discard(&mut self, credits: &CqCredits) {
        self.unreported.clear();
        self.qp_status.clear_unreported_receives();
        let taken = self.pop_all();
        for _ in &taken {
            credits.release(1);
        }
        self.late.discard(taken);
    }

    fn take_all(&mut self, credits: &CqCredits) -> Vec<(WorkId, SgList)> {
        let late = self.late.take_all(credits);
        let unreported = std::mem::take(&mut self.unreported);
        self.qp_status.clear_unreported_receives();
        let count = unreported.len() + late.len() + self.posted.len();
        let mut all = Vec::with_capacity(count);
        // What a reset has discarded is the oldest.
        let late = late.into_iter();
        all.extend(late.map(|(number, sg_list)| (self.work(number), sg_list)));
        all.extend(unreported.into_iter().map(|one| (one.work, one.sg_list)));
        let mut taken = 0;
        while let Some((number, sg_list)) = self.pop() {
            all.push((self.work(number), sg_list));
            taken += 1;
        }
        credits.release(taken);
        all
    }
}
