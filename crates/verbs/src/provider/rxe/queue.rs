//! A queue in memory shared with rxe.

use std::mem::offset_of;
use std::sync::atomic::Ordering;

use rdmacm_abi::uverbs::rxe::QueueHeader;

use crate::provider::{Mapping, Slots, Word, Words};

/// A ring of slots of which one is always empty. Each side advances its own index
/// and reads the other's; both are kept modulo the number of slots.
#[derive(Debug)]
pub(super) struct Queue {
    slots: Slots,
    producer: Word,
    consumer: Word,
}

impl Queue {
    /// The queue in a mapping, whose head says how large it is; `None` if that
    /// cannot be.
    pub(super) fn of(mapping: Mapping) -> Option<Self> {
        let (head, slots) = mapping.split_at(size_of::<QueueHeader>())?;
        let head = Words::new(head);
        let word = |offset| head.word(offset);
        let read = |offset| Some(word(offset)?.get().load(Ordering::Relaxed));
        let stride = 1_usize.checked_shl(read(offset_of!(QueueHeader, log2_elem_size))?)?;
        let count = read(offset_of!(QueueHeader, index_mask))?.checked_add(1)?;
        Some(Self {
            slots: Slots::new(slots, stride, count)?,
            producer: word(offset_of!(QueueHeader, producer_index))?,
            consumer: word(offset_of!(QueueHeader, consumer_index))?,
        })
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// How many elements it holds.
    pub(super) fn capacity(&self) -> u32 {
        self.slots.count() - 1
    }

    /// How many more go in, for the side that produces.
    pub(super) fn free_slots(&self) -> u32 {
        let producer = self.producer.get().load(Ordering::Relaxed);
        // What the consumer has freed may be written over.
        let consumer = self.consumer.get().load(Ordering::Acquire);
        consumer.wrapping_sub(producer).wrapping_sub(1) & self.capacity()
    }

    /// The slot to fill next.
    pub(super) fn next_free(&self) -> u32 {
        self.producer.get().load(Ordering::Relaxed)
    }

    /// Makes the slot that was filled visible to the consumer.
    pub(super) fn produce(&self) {
        let next = self.next_free().wrapping_add(1) & self.capacity();
        self.producer.get().store(next, Ordering::Release);
    }

    /// The oldest element's slot, for the side that consumes.
    pub(super) fn oldest(&self) -> Option<u32> {
        let consumer = self.consumer.get().load(Ordering::Relaxed);
        let producer = self.producer.get().load(Ordering::Acquire);
        let capacity = self.capacity();
        (consumer & capacity != producer & capacity).then_some(consumer)
    }

    /// Gives the slot back to the producer.
    pub(super) fn consume(&self, slot: u32) {
        let next = slot.wrapping_add(1) & self.capacity();
        self.consumer.get().store(next, Ordering::Release);
    }
}
