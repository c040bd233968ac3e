//! What the device was given: requests in a queue, and the memory they use.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use rdmacm_abi::uverbs::{WcFlags, WcOpcode, WcStatus, WorkCompletion};
use zerocopy::FromZeros;

use crate::completion::Completion;

mod receive;
mod send;
#[cfg(test)]
mod tests;

pub(crate) use receive::{Owner, ReceiveParts, ReceiveQueue};
pub(crate) use send::{SendParts, SendQueue};

/// A queue whose requests complete on a completion queue.
pub(crate) trait WorkQueue: fmt::Debug + Send + Sync {
    /// What the device says of one of its requests: adds what there is to report
    /// now, which may be nothing yet, or more. `false` if it has none of this
    /// number.
    fn complete(
        &self,
        number: u32,
        told: &WorkCompletion,
        ready: &mut VecDeque<Completion>,
    ) -> bool;

    /// Gives all its requests up, because the device is gone.
    fn give_up(&self) -> Vec<Completion>;

    /// Reports all its requests as flushed: the device leaves their memory alone, and may
    /// tell of them yet or not.
    fn flush(&self, ready: &mut VecDeque<Completion>);
}

/// What is common to the queues of one queue pair.
#[derive(Debug, Default)]
pub(crate) struct QpStatus {
    broken: AtomicBool,
}

impl QpStatus {
    /// Whether a request has failed: the queue pair takes no more then.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// After a reset it starts afresh.
    pub(crate) fn set_whole(&self) {
        self.broken.store(false, Ordering::Release);
    }

    pub(crate) fn set_broken(&self) {
        self.broken.store(true, Ordering::Release);
    }
}

/// Takes a request that was forgotten, and of which the device tells all the same.
fn take_forgotten<T>(forgotten: &mut Vec<(u32, T)>, number: u32) -> Option<T> {
    let place = forgotten.iter().position(|(one, _)| *one == number)?;
    Some(forgotten.remove(place).1)
}

/// Whether a device tells of a request that was reported without it.
fn take_flushed(flushed: &mut Vec<u32>, number: u32) -> bool {
    let place = flushed.iter().position(|one| *one == number);
    place.map(|place| flushed.swap_remove(place)).is_some()
}

/// What a device would say that gives up a request of this queue pair as it goes.
fn gone(queue_pair: u32) -> WorkCompletion {
    failed(queue_pair, WcStatus::FATAL_ERR)
}

/// What a device would say of a request that it flushes.
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
