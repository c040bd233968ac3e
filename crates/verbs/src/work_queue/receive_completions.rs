//! The completing half of a queue pair's receive queue.

use std::collections::VecDeque;
use std::sync::Arc;

use rdmacm_abi::uverbs::{WcStatus, WorkCompletion};
use rtrb::Consumer;

use super::{QpStatus, Reported, WorkQueue, flushed, gone, take_discarded, take_flushed};
use crate::completion::{Completion, WorkId, received};
use crate::completion_queue::CqCredits;
use crate::memory::SgList;

/// The completing half of a queue pair's receive queue, which its completion queue owns. The
/// device completes the requests in order.
#[derive(Debug)]
pub(super) struct ReceiveCompletions {
    token: u32,
    /// The queue pair's number.
    number: u32,
    qp_status: Arc<QpStatus>,
    posted: Consumer<SgList>,
    /// The number of the first request in `posted`.
    head: u32,
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
        posted: Consumer<SgList>,
    ) -> Self {
        Self {
            token,
            number,
            qp_status,
            posted,
            head: 0,
            unreported: VecDeque::new(),
            discarded: Vec::new(),
            flushed: Vec::new(),
        }
    }

    /// Takes the oldest request.
    #[inline]
    fn pop(&mut self) -> Option<(u32, SgList)> {
        let sg_list = self.posted.pop().ok()?;
        let number = self.head;
        self.head = number.wrapping_add(1);
        Some((number, sg_list))
    }

    fn pop_all(&mut self) -> Vec<(u32, SgList)> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    /// The completion of the oldest request, if it has this number.
    #[inline]
    fn take(
        &mut self,
        credits: &CqCredits,
        number: u32,
        wc: &WorkCompletion,
    ) -> Option<Completion> {
        if number != self.head {
            return None;
        }
        let (_, sg_list) = self.pop()?;
        credits.release(1);
        Some(self.completion(number, sg_list, wc))
    }

    #[inline]
    fn completion(&self, number: u32, sg_list: SgList, wc: &WorkCompletion) -> Completion {
        if wc.status != WcStatus::SUCCESS {
            self.qp_status.set_broken();
        }
        let work = self.work(number);
        Completion {
            work,
            queue_pair: wc.qp_number,
            result: received(work, wc),
            sg_list,
        }
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
            let completion = self.completion(number, sg_list, wc);
            self.unreported.push_back(completion);
            numbers.push(number);
        }
        numbers
    }
}

impl WorkQueue for ReceiveCompletions {
    fn complete(
        &mut self,
        credits: &CqCredits,
        number: u32,
        wc: &WorkCompletion,
        report: &mut Option<Completion>,
    ) -> Reported {
        if self.unreported.is_empty() {
            if let Some(completion) = self.take(credits, number, wc) {
                *report = Some(completion);
                return Reported::All;
            }
        }
        if self.record(credits, number, wc) {
            self.report(credits, report)
        } else {
            Reported::NoRequest
        }
    }

    fn record(&mut self, credits: &CqCredits, number: u32, wc: &WorkCompletion) -> bool {
        if let Some(completion) = self.take(credits, number, wc) {
            self.unreported.push_back(completion);
            return true;
        }
        self.record_late(credits, number)
    }

    fn report(&mut self, _: &CqCredits, report: &mut Option<Completion>) -> Reported {
        *report = self.unreported.pop_front();
        if self.unreported.is_empty() {
            Reported::All
        } else {
            Reported::More
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
        let posted = posted.into_iter();
        all.extend(posted.map(|(number, sg_list)| (self.work(number), sg_list)));
        all
    }
}
