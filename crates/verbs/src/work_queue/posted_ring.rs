//! The ring of posted requests between the halves of a queue, by their numbers.
//!
//! # Safety
//! One of the modules with `unsafe`: the two halves access the slots without a lock. A slot
//! belongs to the consumer while its number is from `head` up to before `tail`, otherwise to
//! the producer. Each half advances one of the two, which hands a slot over, and there is one
//! of each half, whose methods take it exclusively.
#![expect(unsafe_code, reason = "slots that two threads use in turns")]

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::memory::SgList;

/// A ring that holds up to `capacity` requests.
pub(super) fn posted_ring<R>(capacity: u32) -> (Producer<R>, Consumer<R>) {
    starting_at(0, capacity)
}

/// A ring whose first request has this number.
pub(super) fn starting_at<R>(number: u32, capacity: u32) -> (Producer<R>, Consumer<R>) {
    // Numbers are compared modulo 2³², so they must not be further apart than half of that.
    let capacity = capacity.min(1 << 31);
    let empty = || UnsafeCell::new(MaybeUninit::uninit());
    let slots: Box<[_]> = (0..capacity.next_power_of_two()).map(|_| empty()).collect();
    let ring = Arc::new(Ring {
        mask: capacity.next_power_of_two() - 1,
        slots,
        head: Index(AtomicU32::new(number), [0; 15]),
        tail: Index(AtomicU32::new(number), [0; 15]),
    });
    let producer = Producer {
        ring: Arc::clone(&ring),
        capacity,
        room: 0,
    };
    let consumer = Consumer { ring, tail: number };
    (producer, consumer)
}

/// Far from the other one, which another thread writes. Not aligned to a cache line, which makes
/// the allocation slow.
#[repr(C)]
struct Index(AtomicU32, [u32; 15]);

/// A posted request: its memory, and what else there is of it.
struct Posted<R> {
    sg_list: SgList,
    rest: R,
}

struct Ring<R> {
    /// As many as a power of two.
    slots: Box<[UnsafeCell<MaybeUninit<Posted<R>>>]>,
    /// One less than the number of slots.
    mask: u32,
    /// The number of the oldest request in it. The consumer advances it.
    head: Index,
    /// The number of the next request. The producer advances it.
    tail: Index,
}

// SAFETY: each slot is used by one thread at a time, which takes values out that another one
// has put in.
unsafe impl<R> Sync for Ring<R> where Posted<R>: Send {}

impl<R> Ring<R> {
    /// The slot of a number.
    #[inline]
    fn slot(&self, number: u32) -> *mut MaybeUninit<Posted<R>> {
        let index = (number & self.mask) as usize;
        // SAFETY: the index is below the number of slots, which is one more than the mask.
        let slot = unsafe { self.slots.get_unchecked(index) };
        slot.get()
    }
}

impl<R> Drop for Ring<R> {
    fn drop(&mut self) {
        let tail = *self.tail.0.get_mut();
        let mut head = *self.head.0.get_mut();
        while head != tail {
            let slot = self.slot(head);
            // SAFETY: both halves are gone, so this thread is the only one to use the slot.
            let slot = unsafe { &mut *slot };
            // SAFETY: from `head` on up to before `tail` the slots hold values, and this one
            // is not used again.
            unsafe { slot.assume_init_drop() };
            head = head.wrapping_add(1);
        }
    }
}

impl<R> fmt::Debug for Ring<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("head", &self.head.0)
            .field("tail", &self.tail.0)
            .finish_non_exhaustive()
    }
}

/// The half that adds requests.
#[derive(Debug)]
pub(super) struct Producer<R> {
    ring: Arc<Ring<R>>,
    capacity: u32,
    /// How many more requests there is room for, at least.
    room: u32,
}

impl<R> Producer<R> {
    /// The number of the next request.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        // Only this half changes it.
        self.ring.tail.0.load(Ordering::Relaxed)
    }

    /// How many requests are in it.
    pub(super) fn len(&self) -> u32 {
        // Acquire: the producer overwrites what the consumer has taken out before.
        let head = self.ring.head.0.load(Ordering::Acquire);
        self.next().wrapping_sub(head)
    }

    /// Whether the request with this number is in it.
    pub(super) fn holds(&self, number: u32) -> bool {
        let ahead = self.next().wrapping_sub(number);
        ahead != 0 && ahead <= self.len()
    }

    /// How many requests it has room for.
    pub(super) fn free(&self) -> u32 {
        self.capacity - self.len()
    }

    /// Whether there is room for this many requests, here and where they are posted to, which
    /// `other` looks up if it is not known.
    pub(super) fn has_room(&mut self, requests: u32, other: impl FnOnce() -> usize) -> bool {
        if self.room < requests {
            let free = self.free();
            if free < requests {
                return false;
            }
            let other = u32::try_from(other()).unwrap_or(u32::MAX);
            self.room = free.min(other);
        }
        self.room >= requests
    }

    /// Room for one request, as [`has_room`](Self::has_room).
    #[inline]
    pub(super) fn vacancy(&mut self, other: impl FnOnce() -> usize) -> Option<Vacancy<'_, R>> {
        self.has_room(1, other).then_some(())?;
        self.known_vacancy()
    }

    /// Room for one request, if it is known that there is.
    #[inline]
    pub(super) fn known_vacancy(&mut self) -> Option<Vacancy<'_, R>> {
        let room = self.room.checked_sub(1)?;
        Some(Vacancy {
            ring: &self.ring,
            number: self.ring.tail.0.load(Ordering::Relaxed),
            room: &mut self.room,
            left: room,
        })
    }
}

/// Room for one request.
#[derive(Debug)]
pub(super) struct Vacancy<'a, R> {
    ring: &'a Ring<R>,
    number: u32,
    /// The producer's, and what is left of it.
    room: &'a mut u32,
    left: u32,
}

impl<R> Vacancy<'_, R> {
    /// The number that the request gets.
    #[inline]
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Adds the request, which the consumer sees from now on.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "memory is moved only once")]
    pub(super) fn fill(self, sg_list: SgList, rest: R) {
        let slot = self.ring.slot(self.number);
        let posted = MaybeUninit::new(Posted { sg_list, rest });
        // SAFETY: the slot is the producer's, as there are fewer requests than the capacity,
        // and no more slots than that are in use. It holds no value.
        unsafe { slot.write(posted) };
        *self.room = self.left;
        // Release: the consumer sees the value.
        let next = self.number.wrapping_add(1);
        self.ring.tail.0.store(next, Ordering::Release);
    }
}

/// The half that takes requests out.
#[derive(Debug)]
pub(super) struct Consumer<R> {
    ring: Arc<Ring<R>>,
    /// That of the ring, or an earlier one.
    tail: u32,
}

impl<R> Consumer<R> {
    /// The number of the oldest request, or of the next one if there is none.
    #[inline]
    pub(super) fn head(&self) -> u32 {
        // Only this half changes it.
        self.ring.head.0.load(Ordering::Relaxed)
    }

    /// The number of the next request that is posted.
    pub(super) fn tail(&mut self) -> u32 {
        // Acquire: the values are visible.
        self.tail = self.ring.tail.0.load(Ordering::Acquire);
        self.tail
    }

    /// How many requests there are, at least.
    pub(super) fn len(&mut self) -> usize {
        self.tail().wrapping_sub(self.head()) as usize
    }

    fn holds(&mut self, number: u32) -> bool {
        let head = self.head();
        let ahead = number.wrapping_sub(head);
        ahead < self.tail.wrapping_sub(head) || ahead < self.tail().wrapping_sub(head)
    }

    /// What there is of the request with this number, besides its memory.
    pub(super) fn get(&mut self, number: u32) -> Option<&mut R> {
        if !self.holds(number) {
            return None;
        }
        let slot = self.ring.slot(number);
        // SAFETY: it is from `head` up to before `tail`, so it belongs to this half, which is
        // borrowed as long as the reference lives.
        let slot = unsafe { &mut *slot };
        // SAFETY: the producer has put a value in before it advanced `tail`.
        let posted = unsafe { slot.assume_init_mut() };
        Some(&mut posted.rest)
    }

    /// The oldest request.
    #[inline]
    pub(super) fn front(&mut self) -> Option<Front<'_, R>> {
        let head = self.head();
        if head == self.tail && head == self.tail() {
            return None;
        }
        Some(Front {
            // `head` is before `tail`: the slot belongs to this half, which is borrowed, and the
            // producer has put a value in before it advanced `tail`.
            posted: self.ring.slot(head).cast(),
            head: &self.ring.head.0,
            number: head,
            consumer: PhantomData,
        })
    }
}

/// The oldest request, of which there is one.
pub(super) struct Front<'a, R> {
    /// Initialised, and of this half alone until [`take`](Self::take) hands the slot over. No
    /// reference, which would have to be the only one until `take` has returned.
    posted: *mut Posted<R>,
    head: &'a AtomicU32,
    number: u32,
    consumer: PhantomData<&'a mut Consumer<R>>,
}

impl<R> Front<'_, R> {
    /// Its number.
    #[inline]
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// What there is of it, besides its memory.
    #[inline]
    pub(super) fn get(&self) -> &R {
        // SAFETY: it is initialised, and nobody else uses the slot while `self` exists.
        unsafe { &(*self.posted).rest }
    }

    /// Takes it out. `using` puts the memory where it is to be, so that it is moved only once,
    /// and takes what needs dropping out of the rest: what stays in it is leaked.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "memory is moved only once")]
    pub(super) fn take<U>(self, using: impl FnOnce(SgList, &mut R) -> U) -> U {
        // Also if `using` panics, which has the memory by then.
        let _taken = Taken {
            head: self.head,
            next: self.number.wrapping_add(1),
        };
        // SAFETY: the slot is there.
        let sg_list = unsafe { &raw const (*self.posted).sg_list };
        // SAFETY: it is initialised. It is not used again: `head` is advanced past it, which
        // `self` was the only way to do, and the producer overwrites it without dropping it.
        let sg_list = unsafe { ptr::read(sg_list) };
        // SAFETY: it is initialised, and belongs to this half until `_taken` is dropped, after
        // the call.
        using(sg_list, unsafe { &mut (*self.posted).rest })
    }
}

impl<R> fmt::Debug for Front<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Front").field(&self.number).finish()
    }
}

/// Hands the oldest slot to the producer when it is dropped.
struct Taken<'a> {
    head: &'a AtomicU32,
    next: u32,
}

impl Drop for Taken<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: the producer overwrites the slot after it was read.
        self.head.store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push<R>(producer: &mut Producer<R>, value: R) -> Option<u32> {
        let vacancy = producer.vacancy(|| usize::MAX)?;
        let number = vacancy.number();
        vacancy.fill(SgList::NONE, value);
        Some(number)
    }

    fn pop<R: Default>(consumer: &mut Consumer<R>) -> Option<R> {
        consumer
            .front()
            .map(|front| front.take(|_, rest| std::mem::take(rest)))
    }

    #[test]
    fn it_holds_as_many_as_its_capacity_in_order() {
        let (mut producer, mut consumer) = starting_at(u32::MAX, 3);
        assert_eq!(pop(&mut consumer), None);
        let numbers = [7, 8, 9].map(|value| push(&mut producer, value));
        assert_eq!(numbers, [Some(u32::MAX), Some(0), Some(1)]);
        assert_eq!((push(&mut producer, 10), producer.free()), (None, 0));
        assert_eq!((consumer.head(), consumer.tail()), (u32::MAX, 2));
        let at = |consumer: &mut Consumer<i32>, number| consumer.get(number).copied();
        assert_eq!(at(&mut consumer, 1), Some(9));
        assert_eq!(at(&mut consumer, 2), None);
        assert_eq!(at(&mut consumer, u32::MAX - 1), None);
        assert_eq!(pop(&mut consumer), Some(7));
        assert_eq!(at(&mut consumer, u32::MAX), None);
        assert_eq!((producer.free(), push(&mut producer, 10)), (1, Some(2)));
        assert_eq!(
            [(); 4].map(|()| pop(&mut consumer)),
            [Some(8), Some(9), Some(10), None]
        );
        assert_eq!(producer.next(), consumer.head());
    }

    #[test]
    fn what_is_left_is_dropped_once() {
        let value = Arc::new(());
        let (mut producer, mut consumer) = starting_at(u32::MAX, 4);
        for _ in 0..4 {
            push(&mut producer, Some(Arc::clone(&value))).unwrap();
        }
        drop(pop(&mut consumer));
        assert_eq!(Arc::strong_count(&value), 4);
        drop(consumer.front().unwrap().take(|_, value| value.take()));
        drop(producer);
        assert_eq!(Arc::strong_count(&value), 3);
        drop(consumer);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn there_is_no_more_room_than_elsewhere() {
        let (mut producer, mut consumer) = starting_at(0, 4);
        assert!(!producer.has_room(5, || 9));
        let (mut limited, _) = starting_at::<i32>(0, 4);
        assert!(!limited.has_room(3, || 2) && limited.has_room(2, || panic!("it is known")));
        for value in 0..4 {
            producer.vacancy(|| 9).unwrap().fill(SgList::NONE, value);
        }
        assert!(producer.vacancy(|| panic!("asked in vain")).is_none());
        let front = consumer.front().unwrap();
        assert_eq!((front.number(), *front.get()), (0, 0));
        // Looking at it does not take it.
        assert_eq!(
            [(); 5].map(|()| pop(&mut consumer)),
            [Some(0), Some(1), Some(2), Some(3), None]
        );
        assert!(producer.vacancy(|| 0).is_none() && producer.has_room(4, || 4));
    }

    #[test]
    fn a_value_is_taken_once_if_using_it_panics() {
        let value = Arc::new(());
        let (mut producer, mut consumer) = starting_at(0, 4);
        for _ in 0..3 {
            push(&mut producer, Some(Arc::clone(&value))).unwrap();
        }
        let mut take = || {
            consumer.front().unwrap().take(|_, value| {
                drop(value.take());
                panic!("expected")
            })
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut take)).unwrap_err();
        assert_eq!((producer.free(), Arc::strong_count(&value)), (2, 3));
        drop((producer, consumer));
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn two_threads_pass_all_values() {
        const COUNT: u64 = if cfg!(miri) { 200 } else { 100_000 };
        let (mut producer, mut consumer) = starting_at(u32::MAX - 7, 5);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for value in 0..COUNT {
                    while push(&mut producer, Some(Box::new(value))).is_none() {
                        std::thread::yield_now();
                    }
                }
            });
            for expected in 0..COUNT {
                let value = loop {
                    match pop(&mut consumer) {
                        Some(value) => break value.unwrap(),
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(*value, expected);
            }
            assert!(pop(&mut consumer).is_none());
        });
    }
}
