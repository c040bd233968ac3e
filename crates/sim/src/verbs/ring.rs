//! Queues in memory that the program maps, in the format of rxe.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use nix::sys::memfd::{MFdFlags, memfd_create};
use rdmacm_abi::Reserved;
use rdmacm_abi::uverbs::rxe::{MapInfo, QueueHeader};
use zerocopy::IntoBytes;

/// The memory file of a context. Queues are never where an earlier one was, which the
/// program may still have mapped.
#[derive(Debug)]
pub(super) struct RingMemory {
    file: Arc<File>,
    length: u64,
}

impl RingMemory {
    pub(super) fn new() -> io::Result<Self> {
        let file = memfd_create(c"rdmacm-sim", MFdFlags::MFD_CLOEXEC)?;
        Ok(Self {
            file: Arc::new(File::from(file)),
            length: 0,
        })
    }

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Makes room for a queue of so many bytes; returns its offset.
    pub(super) fn allocate(&mut self, bytes: u64) -> io::Result<u64> {
        const PAGE: u64 = 1 << 16;
        let offset = self.length;
        let length = offset + bytes.next_multiple_of(PAGE);
        self.file.set_len(length)?;
        self.length = length;
        Ok(offset)
    }

    /// A ring with room for so many elements of this size, or more
    /// (`rxe_queue_init`).
    pub(super) fn ring(&mut self, elements: u32, element_size: usize) -> io::Result<Ring> {
        const CACHE_LINE: usize = 64;
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let stride = element_size.max(CACHE_LINE).next_power_of_two();
        let slots = elements.checked_add(1).ok_or_else(invalid)?;
        let slots = slots.checked_next_power_of_two().ok_or_else(invalid)?;
        let bytes = u64::try_from(stride).ok().and_then(|stride| {
            let slots = stride.checked_mul(slots.into())?;
            slots.checked_add(size_of::<QueueHeader>() as u64)
        });
        let bytes = bytes.ok_or_else(invalid)?;
        let size = u32::try_from(bytes).map_err(|_| invalid())?;
        let offset = self.allocate(bytes)?;
        let header = QueueHeader {
            log2_elem_size: stride.trailing_zeros(),
            index_mask: slots - 1,
            padding_1: Reserved::ZERO,
            producer_index: 0,
            padding_2: Reserved::ZERO,
            consumer_index: 0,
            padding_3: Reserved::ZERO,
        };
        self.file.write_all_at(header.as_bytes(), offset)?;
        Ok(Ring {
            file: Arc::clone(&self.file),
            offset,
            size,
            stride,
            mask: slots - 1,
        })
    }
}

/// A queue: a ring of slots of which one is always empty.
#[derive(Debug)]
pub(super) struct Ring {
    file: Arc<File>,
    offset: u64,
    size: u32,
    stride: usize,
    mask: u32,
}

impl Ring {
    /// How many elements it holds.
    pub(super) fn capacity(&self) -> u32 {
        self.mask
    }

    /// How the program maps it.
    pub(super) fn map_info(&self) -> MapInfo {
        MapInfo {
            offset: self.offset,
            size: self.size,
            padding: Reserved::ZERO,
        }
    }

    /// How many elements are in it.
    pub(super) fn len(&self) -> u32 {
        self.producer().wrapping_sub(self.consumer()) & self.mask
    }

    fn producer(&self) -> u32 {
        self.index(offset_of!(QueueHeader, producer_index))
    }

    fn consumer(&self) -> u32 {
        self.index(offset_of!(QueueHeader, consumer_index))
    }

    fn set_producer(&self, index: u32) {
        self.set_index(offset_of!(QueueHeader, producer_index), index);
    }

    pub(super) fn set_consumer(&self, index: u32) {
        self.set_index(offset_of!(QueueHeader, consumer_index), index);
    }

    fn next(&self, index: u32) -> u32 {
        index.wrapping_add(1) & self.mask
    }

    /// The element of this number, if it is posted.
    pub(super) fn posted(&self, number: u32) -> Option<Vec<u8>> {
        (number & self.mask != self.producer()).then(|| self.slot(number))
    }

    /// The bytes of a slot.
    fn slot(&self, index: u32) -> Vec<u8> {
        let mut bytes = vec![0; self.stride];
        // The file is as long as the ring until it is dropped.
        let _ = self.file.read_exact_at(&mut bytes, self.slot_offset(index));
        bytes
    }

    fn set_slot(&self, index: u32, bytes: &[u8]) {
        let bytes = bytes.get(..self.stride).unwrap_or(bytes);
        let _ = self.file.write_all_at(bytes, self.slot_offset(index));
    }

    /// The oldest element, if there is one, which is the device's to consume.
    pub(super) fn pop(&self) -> Option<Vec<u8>> {
        let consumer = self.consumer();
        if consumer == self.producer() {
            return None;
        }
        let slot = self.slot(consumer);
        self.set_consumer(self.next(consumer));
        Some(slot)
    }

    /// Adds an element of the device; `false` if there is no room.
    pub(super) fn push(&self, bytes: &[u8]) -> bool {
        let producer = self.producer();
        let next = self.next(producer);
        if next == self.consumer() {
            return false;
        }
        self.set_slot(producer, bytes);
        self.set_producer(next);
        true
    }

    fn slot_offset(&self, index: u32) -> u64 {
        let slot = (self.stride as u64) * u64::from(index & self.mask);
        self.offset + size_of::<QueueHeader>() as u64 + slot
    }

    /// What a program has written is taken modulo the number of slots.
    fn index(&self, at: usize) -> u32 {
        let mut bytes = [0; size_of::<u32>()];
        let place = self.offset + at as u64;
        let _ = self.file.read_exact_at(&mut bytes, place);
        u32::from_ne_bytes(bytes) & self.mask
    }

    fn set_index(&self, at: usize, index: u32) {
        let place = self.offset + at as u64;
        let index = index & self.mask;
        let _ = self.file.write_all_at(&index.to_ne_bytes(), place);
    }
}
