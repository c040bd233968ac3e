//! Requests in a queue, and the memory they use.
//!
//! A queue has two halves. The posting half belongs to the queue pair, whose threads take its
//! lock to post. The completing half belongs to the completion queue, under whose lock it is.
//! A ring buffer between them holds the requests: neither half waits for the other.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use rdmacm_abi::uverbs::{WcFlags, WcOpcode, WcStatus, WorkCompletion};
use zerocopy::FromZeros;

use crate::completion::{Completion, WorkId};
use crate::completion_queue::CqCredits;
use crate::memory::SgList;

mod entries;
mod late_requests;
mod outcome;
mod posted_ring;
mod receive;
mod receive_completions;
mod receive_slots;
mod send;
mod send_completions;
mod shared;
mod successes;
#[cfg(test)]
mod tests;

pub(crate) use receive::{ReceiveParts, ReceiveQueue};
pub(crate) use receive_completions::ReceiveCompletions;
pub(crate) use send::{SendParts, SendQueue};
pub(crate) use send_completions::SendCompletions;
pub(crate) use shared::SharedReceiveRing;

/// The completing half of a queue.
pub(crate) trait WorkQueue: fmt::Debug + Send {
    /// Processes the device's completion of the request with this number, and reports the next
    /// request. `None` if no request has the number.
    fn complete(
        &mut self,
        credits: &CqCredits,
        number: u32,
        wc: &WorkCompletion,
    ) -> Option<Reported> {
        self.record(credits, number, wc)
            .then(|| self.report(credits))
    }

    /// Processes a completion of the device, to be reported later. Returns `false` if no
    /// request has this number.
    fn record(&mut self, credits: &CqCredits, number: u32, wc: &WorkCompletion) -> bool;

    /// Reports the next request, if there is one to report.
    fn report(&mut self, credits: &CqCredits) -> Reported;

    /// Completes all requests as failed because the device is gone.
    fn fail_all(&mut self, credits: &CqCredits);

    /// Completes all requests as flushed. The device no longer accesses their memory, and may
    /// or may not complete them later.
    fn flush(&mut self);

    /// Discards the requests, as the device does. Keeps their memory.
    fn discard(&mut self, credits: &CqCredits);

    /// The memory of all requests, after the kernel has destroyed the queue pair.
    fn take_all(&mut self, credits: &CqCredits) -> Vec<(WorkId, SgList)>;
}

/// What a work queue has reported.
#[derive(Debug)]
pub(crate) enum Reported {
    /// One request, the last one there was to report.
    One(Completion),
    /// One request, and there are more.
    More(Completion),
    /// Nothing: there is none to report.
    Nothing,
}

/// The completing half of any queue.
#[derive(Debug)]
// Its kind is read for each completion: a byte, not what some field cannot be.
#[repr(u8)]
pub(crate) enum AnyWorkQueue {
    /// Of a send queue.
    Send(SendCompletions),
    /// Of a receive queue.
    Receive(ReceiveCompletions),
    /// Of a shared receive queue.
    Shared(SharedReceiveRing),
}

impl AnyWorkQueue {
    pub(crate) fn get(&mut self) -> &mut dyn WorkQueue {
        match self {
            Self::Send(queue) => queue,
            Self::Receive(queue) => queue,
            Self::Shared(queue) => queue,
        }
    }
}

/// The state shared by the queues of one queue pair.
#[derive(Debug, Default)]
pub(crate) struct QpStatus {
    state: AtomicU8,
    /// How many receive requests have completed, have left the queue, and were not reported.
    unreported_receives: AtomicU32,
}

/// The status before requests were refused.
#[derive(Debug)]
pub(crate) struct StatusBefore(u8);

/// Its doorbell was not rung yet.
const NEW: u8 = 0;
/// The device has accepted a doorbell, which it does once the queue pair is ready to send.
const READY: u8 = 1;
/// It is being moved to the error state, or reset.
const REFUSING: u8 = 2;
const BROKEN: u8 = 3;

impl QpStatus {
    /// Whether a request has failed, or requests are refused for now: the queue pair then accepts
    /// no more.
    #[inline]
    pub(crate) fn is_broken(&self) -> bool {
        self.state.load(Ordering::Acquire) >= REFUSING
    }

    /// Before a move to the error state or a reset: the queue pair accepts no more requests.
    pub(crate) fn begin_refusing(&self) -> StatusBefore {
        let refuses = |state| (state < REFUSING).then_some(REFUSING);
        let changed = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, refuses);
        StatusBefore(changed.unwrap_or_else(|state| state))
    }

    /// The move or the reset has failed. It stays broken if it is.
    pub(crate) fn end_refusing(&self, before: &StatusBefore) {
        self.replace(REFUSING, before.0);
    }

    /// Whether it accepts send requests: the device has accepted a doorbell, and no request has
    /// failed.
    #[inline]
    fn is_ready(&self) -> bool {
        self.state.load(Ordering::Acquire) == READY
    }

    /// The device has accepted a doorbell. It stays broken if it is.
    fn set_ready(&self) {
        self.replace(NEW, READY);
    }

    /// The device has refused a doorbell after it had accepted one. It stays as it is if it is
    /// being reset, which discards the request.
    fn set_unusable(&self) {
        self.replace(READY, BROKEN);
    }

    /// After a reset it accepts requests again. The next doorbell is a first one.
    pub(crate) fn set_working(&self) {
        self.state.store(NEW, Ordering::Release);
    }

    fn replace(&self, from: u8, to: u8) {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let _ = self.state.compare_exchange(from, to, success, failure);
    }

    pub(crate) fn set_broken(&self) {
        self.state.store(BROKEN, Ordering::Release);
    }

    fn unreported_receives(&self) -> u32 {
        self.unreported_receives.load(Ordering::Relaxed)
    }

    /// A receive request is about to leave the queue without being reported.
    fn add_unreported_receive(&self) {
        self.unreported_receives.fetch_add(1, Ordering::Relaxed);
    }

    /// One was reported.
    fn remove_unreported_receive(&self) {
        self.unreported_receives.fetch_sub(1, Ordering::Relaxed);
    }

    /// All were discarded.
    fn clear_unreported_receives(&self) {
        self.unreported_receives.store(0, Ordering::Relaxed);
    }
}

/// The completion of a request of this queue pair when the context is closed.
fn context_closed(queue_pair: u32) -> WorkCompletion {
    failed(queue_pair, WcStatus::FATAL_ERR)
}

/// The completion of a flushed request of this queue pair.
fn flushed(queue_pair: u32) -> WorkCompletion {
    failed(queue_pair, WcStatus::WR_FLUSH_ERR)
}

fn failed(queue_pair: u32, status: WcStatus) -> WorkCompletion {
    WorkCompletion {
        qp_number: queue_pair,
        status,
        opcode: WcOpcode::SEND,
        flags: WcFlags::empty(),
        ..WorkCompletion::new_zeroed()
    }
}
