//! A queue in memory shared with rxe.

use std::marker::PhantomData;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};

use rdmacm_abi::uverbs::rxe::{MapInfo, QueueHeader, RecvWqe, SendWqe};
use rdmacm_abi::uverbs::{Sge as AbiSge, WorkCompletion};
use zerocopy::{Immutable, IntoBytes};

use crate::error::Result;
use crate::operation::Operation;
use crate::provider::{
    AfterClose, Content, Kernel, Mapping, Slot, Slots, ThisProcess, Uverbs, Word, Words,
    invalid_queue,
};

/// A ring of slots, one of which is always empty. A slot begins with a `T`. The
/// producer and the consumer each advance an index of their own and read the other's;
/// both indices are modulo the number of slots.
#[derive(Debug)]
pub(crate) struct Queue<T: Element> {
    slots: Slots<T::Whole>,
    producer: Word,
    consumer: Word,
    element: PhantomData<T>,
}

/// The indices of a [`Queue`], by which anyone watches for its next element.
#[derive(Debug)]
pub(crate) struct RingIndices {
    producer: Word,
    consumer: Word,
    mask: u32,
}

impl RingIndices {
    /// Begins to watch for the element that the consumer takes next.
    #[inline]
    pub(crate) fn watch(&self) -> IndexWatch<'_> {
        IndexWatch {
            producer: self.producer.get(),
            next: self.consumer.get().load(Ordering::Relaxed),
            mask: self.mask,
        }
    }
}

/// The index of a producer, and where it was before the next element.
#[derive(Clone, Copy)]
pub(crate) struct IndexWatch<'ring> {
    producer: &'ring AtomicU32,
    next: u32,
    mask: u32,
}

impl IndexWatch<'_> {
    /// Whether there is another element.
    #[inline]
    pub(crate) fn has_moved(self) -> bool {
        (self.next ^ self.producer.load(Ordering::Relaxed)) & self.mask != 0
    }
}

/// An element of a queue.
pub(crate) trait Element: IntoBytes + Immutable {
    /// The element, and what each slot has room for after it.
    type Whole;
    /// Whether its queue is still read after the context was closed.
    const AFTER_CLOSE: AfterClose = AfterClose::Zeros;
}

impl Element for WorkCompletion {
    type Whole = Self;
    const AFTER_CLOSE: AfterClose = AfterClose::Copy;
}

impl Element for SendWqe {
    type Whole = One<Self>;
}

impl Element for RecvWqe {
    type Whole = One<Self>;
}

/// An element with one scatter/gather entry.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct One<T> {
    element: T,
    sge: AbiSge,
}

impl<T> Content for One<T> {
    type FilledBy = ThisProcess;
}

impl Content for WorkCompletion {
    type FilledBy = Kernel;
}

impl<T: Element> Queue<T> {
    /// Maps the queue that an answer of the driver describes.
    pub(super) fn map(uverbs: &Uverbs, operation: Operation, info: MapInfo) -> Result<Self> {
        let mapping = uverbs.map(info.offset, info.size as usize, T::AFTER_CLOSE)?;
        Self::in_mapping(mapping).ok_or_else(|| invalid_queue(operation))
    }

    /// The queue in a mapping, whose header holds its size; `None` if the size is invalid
    /// or an element does not fit into a slot.
    fn in_mapping(mapping: Mapping) -> Option<Self> {
        let (header, slots) = mapping.split_at(size_of::<QueueHeader>())?;
        let header = Words::new(header);
        let word = |offset| header.word(offset);
        let read = |offset| Some(word(offset)?.get().load(Ordering::Relaxed));
        let stride = 1_usize.checked_shl(read(offset_of!(QueueHeader, log2_elem_size))?)?;
        let count = read(offset_of!(QueueHeader, index_mask))?.checked_add(1)?;
        Some(Self {
            slots: Slots::new(slots, stride, count)?,
            producer: word(offset_of!(QueueHeader, producer_index))?,
            consumer: word(offset_of!(QueueHeader, consumer_index))?,
            element: PhantomData,
        })
    }

    pub(super) fn indices(&self) -> RingIndices {
        RingIndices {
            producer: self.producer.clone(),
            consumer: self.consumer.clone(),
            mask: self.max_entries(),
        }
    }

    pub(super) fn slots(&self) -> &Slots<T::Whole> {
        &self.slots
    }

    /// How many bytes fit into a slot after its `T`.
    pub(super) fn max_tail(&self) -> u32 {
        u32::try_from(self.tail()).unwrap_or(u32::MAX)
    }

    /// How many scatter/gather entries fit into a slot after its `T`.
    pub(super) fn max_slot_sges(&self) -> u32 {
        u32::try_from(self.tail() / size_of::<AbiSge>()).unwrap_or(u32::MAX)
    }

    fn tail(&self) -> usize {
        self.slots.stride().saturating_sub(size_of::<T>())
    }

    /// How many elements it holds.
    #[inline]
    pub(super) fn max_entries(&self) -> u32 {
        self.slots.mask()
    }

    /// The slot that the producer fills next.
    #[inline]
    pub(super) fn next_slot(&self) -> Slot<'_, T::Whole> {
        self.slots.slot(self.next_free())
    }

    /// How many slots the producer may fill.
    #[inline]
    pub(super) fn free_slots(&self) -> u32 {
        let producer = self.producer.get().load(Ordering::Relaxed);
        // Acquire: the producer overwrites the slots that the consumer has freed.
        let consumer = self.consumer.get().load(Ordering::Acquire);
        consumer.wrapping_sub(producer).wrapping_sub(1) & self.max_entries()
    }

    /// The slot that the producer fills next.
    #[inline]
    pub(super) fn next_free(&self) -> u32 {
        self.producer.get().load(Ordering::Relaxed)
    }

    /// Makes the filled slot visible to the consumer.
    #[inline]
    pub(super) fn produce(&self) {
        let next = self.next_free().wrapping_add(1) & self.max_entries();
        self.producer.get().store(next, Ordering::Release);
    }

    /// The slot of the oldest element, for the consumer.
    #[inline]
    pub(super) fn oldest_slot(&self) -> Option<u32> {
        let consumer = self.consumer.get().load(Ordering::Relaxed);
        let producer = self.producer.get().load(Ordering::Acquire);
        let mask = self.max_entries();
        (consumer & mask != producer & mask).then_some(consumer)
    }

    /// Frees the slot for the producer.
    #[inline]
    pub(super) fn consume(&self, slot: u32) {
        let next = slot.wrapping_add(1) & self.max_entries();
        self.consumer.get().store(next, Ordering::Release);
    }
}

impl<T: Element<Whole: Content<FilledBy = ThisProcess>>> Queue<T> {
    /// Writes the scatter/gather entries after the element of the slot that is filled next. The
    /// caller has checked that they fit.
    #[inline]
    pub(super) fn put_sges(&self, sg_list: &[AbiSge]) {
        let mut offset = size_of::<T>();
        for sge in sg_list {
            self.slots.put(self.next_free(), offset, sge);
            offset += size_of::<AbiSge>();
        }
    }

    /// Writes inline data after the element of the slot that is filled next.
    pub(super) fn put_inline(&self, bytes: &[u8]) {
        self.slots.write(self.next_free(), size_of::<T>(), bytes);
    }
}

impl Queue<RecvWqe> {
    /// Writes the element of the next slot.
    #[inline]
    pub(super) fn put_element(&self, element: &RecvWqe) {
        let slot = self.next_slot();
        slot.put(offset_of!(One<RecvWqe>, element), element);
    }

    /// Writes an element with one scatter/gather entry after it into the next slot.
    #[inline]
    pub(super) fn put_one(&self, element: &RecvWqe, sge: &AbiSge) {
        let slot = self.next_slot();
        slot.put(offset_of!(One<RecvWqe>, element), element);
        slot.put(offset_of!(One<RecvWqe>, sge), sge);
    }
}
