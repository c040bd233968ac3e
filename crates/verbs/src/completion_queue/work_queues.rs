//! The work queues whose requests complete on a completion queue.

use std::sync::Weak;

use rdmacm_abi::uverbs::{WcStatus, WorkCompletion};
use rdmacm_core::QpType;

use crate::completion::WorkId;
use crate::memory::SgList;
use crate::request_id::{Queue, QueueIndex};
use crate::work_queue::{AnyWorkQueue, QpStatus, SharedReceiveRing, WorkQueue};

/// The work queues, by the indices in their requests' ids.
#[derive(Debug, Default)]
pub(super) struct WorkQueues {
    own: Vec<Entry>,
    /// The first place without a queue.
    free: Option<usize>,
    /// Few, if any.
    shared: Vec<Shared>,
}

/// The place of a queue pair's queue.
#[derive(Debug)]
struct Entry {
    /// The index of the queue that is in it, or of the next one.
    index: QueueIndex,
    queue: Option<AnyWorkQueue>,
    /// The next place without a queue, if this is one.
    next_free: Option<usize>,
}

/// A shared receive queue.
#[derive(Debug)]
struct Shared {
    srq: u32,
    queue: AnyWorkQueue,
    /// How many queue pairs use it.
    queue_pairs: u32,
    /// Those that were created. A number is there twice if the kernel has given it to a new queue
    /// pair before the earlier one was removed here.
    users: Vec<SharedUser>,
    /// The memory of requests that such earlier queue pairs have completed, or one before it was
    /// reset, with their numbers.
    set_aside: Vec<(u32, Vec<(WorkId, SgList)>)>,
    /// The credits that are reserved for all of its requests at once.
    credits: u32,
}

/// A queue pair of a shared receive queue.
#[derive(Debug)]
pub(super) struct SharedUser {
    pub(super) number: u32,
    pub(super) qp_type: QpType,
    pub(super) status: Weak<QpStatus>,
}

impl SharedUser {
    /// Whether a request that fails with this status breaks the queue pair. One that is not reliable
    /// goes on after a message that rxe refuses, and not after one that rxe could not copy
    /// (`RESPST_ERR_MALFORMED_WQE`).
    fn is_broken_by(&self, status: WcStatus) -> bool {
        self.qp_type == QpType::RC || status == WcStatus::LOC_QP_OP_ERR
    }
}

impl WorkQueues {
    /// Reserves an index; `None` if there are too many.
    pub(super) fn reserve(&mut self) -> Option<QueueIndex> {
        if let Some(free) = self.free {
            let place = self.own.get_mut(free)?;
            self.free = place.next_free.take();
            return Some(place.index);
        }
        let index = QueueIndex::own(self.own.len())?;
        if self.own.len() == self.own.capacity() {
            // Most completion queues serve one or two work queues.
            self.own.reserve_exact(self.own.len().max(2));
        }
        self.own.push(Entry {
            index,
            queue: None,
            next_free: None,
        });
        Some(index)
    }

    /// Adds a queue at a reserved index.
    pub(super) fn insert(&mut self, index: QueueIndex, queue: AnyWorkQueue) {
        if let Some((_, place)) = self.entry_mut(index) {
            place.queue = Some(queue);
        }
    }

    /// The place of a reserved index.
    fn entry_mut(&mut self, index: QueueIndex) -> Option<(usize, &mut Entry)> {
        let Queue::Own(number) = index.queue() else {
            return None;
        };
        let place = self.own.get_mut(number)?;
        (place.index == index).then_some((number, place))
    }

    /// One more queue pair uses this shared queue; `false` if it was not added before.
    pub(super) fn join(&mut self, srq: u32) -> bool {
        let shared = self.shared(srq);
        shared.map(|shared| shared.queue_pairs += 1).is_some()
    }

    /// Adds a new queue pair of a shared queue. Returns whether an earlier queue pair that had its
    /// number is still there.
    pub(super) fn add_user(&mut self, srq: u32, user: SharedUser) -> bool {
        let Some(shared) = self.shared(srq) else {
            return false;
        };
        let is_there = shared.users.iter().any(|one| one.number == user.number);
        shared.users.push(user);
        is_there
    }

    /// A request of the queue of this index has failed. Other queues than shared ones know their
    /// queue pair themselves.
    #[cold]
    pub(super) fn request_failed(&mut self, index: QueueIndex, wc: &WorkCompletion) {
        let Queue::Shared(srq) = index.queue() else {
            return;
        };
        let users = self.shared(srq).map(|shared| &shared.users);
        // What an earlier one with this number has completed was set aside.
        let user = users.and_then(|users| users.iter().rfind(|user| user.number == wc.qp_number));
        let user = user.filter(|user| user.is_broken_by(wc.status));
        if let Some(status) = user.and_then(|user| user.status.upgrade()) {
            status.set_broken();
        }
    }

    /// Sets memory aside for a queue pair of this number.
    pub(super) fn set_aside(&mut self, srq: u32, number: u32, memory: Vec<(WorkId, SgList)>) {
        let shared = self.shared(srq);
        // A queue pair that is reset often does not add to the list each time.
        if let Some(shared) = shared.filter(|_| !memory.is_empty()) {
            shared.set_aside.push((number, memory));
        }
    }

    /// Removes the number of a queue pair. Returns what was set aside for it, and whether a later
    /// queue pair has its number, whose completions the others are.
    pub(super) fn remove_number(&mut self, srq: u32, number: u32) -> (Vec<(WorkId, SgList)>, bool) {
        let Some(shared) = self.shared(srq) else {
            return (Vec::new(), false);
        };
        let is_it = |user: &SharedUser| user.number == number;
        if let Some(first) = shared.users.iter().position(is_it) {
            shared.users.remove(first);
        }
        let is_taken = shared.users.iter().any(is_it);
        let all = std::mem::take(&mut shared.set_aside).into_iter();
        let (own, others) = all.partition(|one| one.0 == number);
        shared.set_aside = others;
        let own: Vec<_> = own;
        let memory = own.into_iter().flat_map(|(_, memory)| memory);
        (memory.collect(), is_taken)
    }

    fn shared(&mut self, srq: u32) -> Option<&mut Shared> {
        self.shared.iter_mut().find(|one| one.srq == srq)
    }

    /// Adds a shared queue, with its first queue pair.
    pub(super) fn insert_shared(&mut self, srq: u32, queue: SharedReceiveRing, credits: u32) {
        self.shared.push(Shared {
            srq,
            queue: AnyWorkQueue::Shared(queue),
            queue_pairs: 1,
            users: Vec::new(),
            set_aside: Vec::new(),
            credits,
        });
    }

    /// The queue of this index, if it is a queue pair's.
    #[inline]
    pub(super) fn own(&mut self, index: QueueIndex) -> Option<&mut AnyWorkQueue> {
        // No place has the index of a shared queue.
        let place = self.own.get_mut(index.slot())?;
        let queue = place.queue.as_mut()?;
        (place.index == index).then_some(queue)
    }

    /// The queue of this index.
    pub(super) fn get(&mut self, index: QueueIndex) -> Option<&mut dyn WorkQueue> {
        match index.queue() {
            Queue::Own(place) => {
                let place = self.own.get_mut(place)?;
                let queue = place.queue.as_mut()?;
                (place.index == index).then(|| queue.get())
            }
            Queue::Shared(srq) => {
                let shared = self.shared(srq);
                shared.map(|shared| shared.queue.get())
            }
        }
    }

    /// All of them, with their indices.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (QueueIndex, &mut dyn WorkQueue)> {
        let own = self.own.iter_mut().filter_map(|place| {
            let queue = place.queue.as_mut()?.get();
            Some((place.index, queue))
        });
        let shared = self.shared.iter_mut().map(|one| {
            let queue = one.queue.get();
            (QueueIndex::shared(one.srq), queue)
        });
        own.chain(shared)
    }

    /// Removes a queue pair's queue, or a reserved index.
    pub(super) fn remove_own(&mut self, index: QueueIndex) {
        let free = self.free;
        if let Some((number, place)) = self.entry_mut(index) {
            place.index = index.next();
            place.queue = None;
            place.next_free = free;
            self.free = Some(number);
        }
    }

    /// Removes a queue pair's queue, whose index is not used again.
    pub(super) fn retire(&mut self, index: QueueIndex) {
        if let Some((_, place)) = self.entry_mut(index) {
            place.queue = None;
        }
    }

    /// Removes a queue pair of a shared queue. Returns the queue and its credits if no queue pair
    /// uses it any more.
    pub(super) fn remove_shared(&mut self, srq: u32) -> Option<(AnyWorkQueue, u32)> {
        let place = self.shared.iter().position(|one| one.srq == srq)?;
        let shared = self.shared.get_mut(place)?;
        shared.queue_pairs -= 1;
        if shared.queue_pairs > 0 {
            return None;
        }
        let shared = self.shared.swap_remove(place);
        Some((shared.queue, shared.credits))
    }
}
