//! The work queues whose requests complete on a completion queue.

use std::sync::Arc;

use crate::request_id::{Queue, QueueIndex};
use crate::work_queue::WorkQueue;

/// The work queues, by the indices in their requests' ids.
#[derive(Debug, Default)]
pub(super) struct WorkQueues {
    own: Vec<Place>,
    /// Places without a queue.
    free: Vec<usize>,
    /// Few, if any.
    shared: Vec<Shared>,
}

/// The place of a queue pair's queue.
#[derive(Debug)]
struct Place {
    /// The index of the queue that is in it, or of the next one.
    index: QueueIndex,
    queue: Option<Arc<dyn WorkQueue>>,
}

/// A shared receive queue.
#[derive(Debug)]
struct Shared {
    token: u32,
    queue: Arc<dyn WorkQueue>,
    /// How many queue pairs use it.
    queue_pairs: u32,
    /// The credits that are reserved for all of its requests at once.
    credits: u32,
}

impl WorkQueues {
    /// Reserves an index; `None` if there are too many.
    pub(super) fn reserve(&mut self) -> Option<QueueIndex> {
        if let Some(place) = self.free.pop() {
            return self.own.get(place).map(|place| place.index);
        }
        let index = QueueIndex::own(self.own.len())?;
        self.own.push(Place { index, queue: None });
        Some(index)
    }

    /// Adds a queue at a reserved index.
    pub(super) fn insert(&mut self, index: QueueIndex, queue: Arc<dyn WorkQueue>) {
        if let Some((_, place)) = self.place(index) {
            place.queue = Some(queue);
        }
    }

    /// The place of a reserved index.
    fn place(&mut self, index: QueueIndex) -> Option<(usize, &mut Place)> {
        let Queue::Own(number) = index.queue() else {
            return None;
        };
        let place = self.own.get_mut(number)?;
        (place.index == index).then_some((number, place))
    }

    /// One more queue pair uses this shared queue; `false` if it was not added before.
    pub(super) fn join(&mut self, token: u32) -> bool {
        let shared = self.shared.iter_mut().find(|one| one.token == token);
        shared.map(|shared| shared.queue_pairs += 1).is_some()
    }

    /// Adds a shared queue, with its first queue pair.
    pub(super) fn insert_shared(&mut self, token: u32, queue: Arc<dyn WorkQueue>, credits: u32) {
        self.shared.push(Shared {
            token,
            queue,
            queue_pairs: 1,
            credits,
        });
    }

    pub(super) fn get(&self, index: QueueIndex) -> Option<&Arc<dyn WorkQueue>> {
        match index.queue() {
            Queue::Own(place) => {
                let place = self.own.get(place)?;
                place.queue.as_ref().filter(|_| place.index == index)
            }
            Queue::Shared(token) => {
                let shared = self.shared.iter().find(|one| one.token == token);
                shared.map(|shared| &shared.queue)
            }
        }
    }

    /// All of them, with their indices.
    pub(super) fn iter(&self) -> impl Iterator<Item = (QueueIndex, &Arc<dyn WorkQueue>)> {
        let own = self.own.iter();
        let own = own.filter_map(|place| Some((place.index, place.queue.as_ref()?)));
        let shared = self.shared.iter();
        own.chain(shared.map(|one| (QueueIndex::shared(one.token), &one.queue)))
    }

    /// Removes a queue or a reserved index, or a queue pair of a shared queue. Returns the queue
    /// and its credits if no queue pair uses it any more.
    pub(super) fn remove(&mut self, index: QueueIndex) -> Option<(Arc<dyn WorkQueue>, u32)> {
        match index.queue() {
            Queue::Own(_) => {
                let (number, place) = self.place(index)?;
                place.index = index.next();
                let queue = place.queue.take();
                self.free.push(number);
                Some((queue?, 0))
            }
            Queue::Shared(token) => {
                let place = self.shared.iter().position(|one| one.token == token)?;
                let shared = self.shared.get_mut(place)?;
                shared.queue_pairs -= 1;
                if shared.queue_pairs > 0 {
                    return None;
                }
                let shared = self.shared.swap_remove(place);
                Some((shared.queue, shared.credits))
            }
        }
    }
}
