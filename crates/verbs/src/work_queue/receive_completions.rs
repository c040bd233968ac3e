//! The completing half of a queue pair's receive queue.

use std::collections::VecDeque;
use std::sync::Arc;

use rdmacm_abi::uverbs::{WcStatus, WorkCompletion};

use super::posted_ring::Consumer;
use super::successes::{Owner, take_successes};
use super::{QpStatus, Reported, WorkQueue, flushed, gone, take_discarded, take_flushed};
use crate::completion::{Completion, Report, WorkId, WorkKind};
use crate::completion_queue::{CqCredits, Places};
use crate::memory::SgList;
use crate::provider::CompletionRing;
use crate::request_id::QueueIndex;

/// The completing half of a queue pair's receive queue, which its completion queue owns. The
/// device completes the requests in order.
#[derive(Debug)]
pub(crate) struct ReceiveCompletions {
    token: u32,
    /// The queue pair's number.
    number: u32,
    qp_status: Arc<QpStatus>,
    posted: Consumer<()>,
    /// Completed requests that were not reported yet.
    unreported: VecDeque<Completion>,
    /// The requests that a reset has discarded. The device may still write to their memory.
    discarded: Vec<(u32, SgList)>,
    /// The requests that were completed as flushed. The device may still complete them, so
    /// their completion queue entries stay reserved.
    flushed: Vec<u32>,
}

impl ReceiveCompletions {
    pub(super) fn new(
        token: u32,
        number: u32,
        qp_status: Arc<QpStatus>,
        posted: Consumer<()>,
    ) -> Self {
        Self {
            token,
            number,
            qp_status,
            posted,
            unreported: VecDeque::new(),
            discarded: Vec::new(),
            flushed: Vec::new(),
        }
    }

    /// Takes the next completions from the device, as [`take_successes`] does.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each completion")]
    pub(crate) fn take_next(
        &mut self,
        index: QueueIndex,
        ring: &mut impl CompletionRing,
        places: &mut impl Places,
        is_closed: impl Fn() -> bool,
    ) -> u32 {
        if !self.unreported.is_empty() {
            return 0;
        }
        let owner = Owner {
            queue: self.token,
            index,
            qp_number: self.number,
        };
        let is_next = |(): &()| true;
        take_successes(
            &mut self.posted,
            owner,
            ring,
            places,
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
        std::iter::from_fn(|| self.pop()).collect()
    }

    fn work(&self, number: u32) -> WorkId {
        let queue = self.token;
        WorkId { queue, number }
    }

    /// A completion of a request that was flushed or discarded; `false` if there is none.
    #[cold]
    fn record_late(&mut self, credits: &CqCredits, number: u32) -> bool {
        if take_flushed(&mut self.flushed, number) {
            credits.release(1);
            return true;
        }
        take_discarded(&mut self.discarded, number).is_some()
    }

    /// Completes all requests; returns their numbers.
    fn complete_all(&mut self, wc: &WorkCompletion) -> Vec<u32> {
        let mut numbers = Vec::new();
        while let Some((number, sg_list)) = self.pop() {
            self.qp_status.set_broken();
            self.report_later(number, sg_list, wc);
            numbers.push(number);
        }
        numbers
    }

    fn report_later(&mut self, number: u32, sg_list: SgList, wc: &WorkCompletion) {
        self.unreported.push_back(Completion {
            work: self.work(number),
            sg_list,
            qp_number: self.number,
            report: Report::of(WorkKind::Receive, wc),
        });
    }
}

impl WorkQueue for ReceiveCompletions {
    fn record(&mut self, credits: &CqCredits, number: u32, wc: &WorkCompletion) -> bool {
        let oldest = self.posted.front().map(|front| front.number());
        if oldest != Some(number) {
            return self.record_late(credits, number);
        }
        let Some((number, sg_list)) = self.pop() else {
            return false;
        };
        if wc.status != WcStatus::SUCCESS {
            self.qp_status.set_broken();
        }
        self.report_later(number, sg_list, wc);
        credits.release(1);
        true
    }

    fn report(&mut self, _: &CqCredits) -> Reported {
        match self.unreported.pop_front() {
            None => Reported::Nothing,
            Some(next) if self.unreported.is_empty() => Reported::One(next),
            Some(next) => Reported::More(next),
        }
    }

    fn fail_all(&mut self, credits: &CqCredits) {
        for _ in self.complete_all(&gone(self.number)) {
            credits.release(1);
        }
    }

    fn flush(&mut self) {
        let numbers = self.complete_all(&flushed(self.number));
        self.flushed.extend(numbers);
    }

    fn discard(&mut self, credits: &CqCredits) {
        self.unreported.clear();
        let taken = self.pop_all();
        for _ in &taken {
            credits.release(1);
        }
        self.discarded.extend(taken);
    }

    fn take_all(&mut self, credits: &CqCredits) -> Vec<(WorkId, SgList)> {
        let unreported = std::mem::take(&mut self.unreported).into_iter();
        let mut all: Vec<_> = unreported.map(|one| (one.work, one.sg_list)).collect();
        for _ in std::mem::take(&mut self.flushed) {
            credits.release(1);
        }
        let mut posted = std::mem::take(&mut self.discarded);
        let taken = self.pop_all();
        for _ in &taken {
            credits.release(1);
        }
        posted.extend(taken);
        if posted.is_empty() {
            return all;
        }
        let posted = posted.into_iter();
        all.extend(posted.map(|(number, sg_list)| (self.work(number), sg_list)));
        all
    }
}
