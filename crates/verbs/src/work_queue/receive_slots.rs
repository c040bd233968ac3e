//! The posted requests of a receive queue.

use crate::memory::SgList;

#[derive(Debug)]
struct Slot {
    /// The number of the request in it, or of the next one.
    number: u32,
    /// The next free slot, if this one is free.
    next: usize,
    /// When the request was posted, in requests of this queue.
    posted_at: u32,
    sg_list: Option<SgList>,
}

/// The requests of a queue by number. They complete in any order, and some may never do. A
/// number is a slot and how often that was used, so each is valid for one completion.
#[derive(Debug, Default)]
pub(super) struct ReceiveSlots {
    slots: Box<[Slot]>,
    /// Free slots are used again in the order in which they became free.
    first_free: usize,
    last_free: usize,
    len: usize,
    posted: u32,
}

/// No slot: the free list ends.
const NONE: usize = usize::MAX;

impl ReceiveSlots {
    /// Slots for at least this many requests.
    pub(super) fn new(capacity: usize) -> Self {
        let count = capacity.next_power_of_two();
        let slot = |(index, number)| Slot {
            number,
            next: if index + 1 == count { NONE } else { index + 1 },
            posted_at: 0,
            sg_list: None,
        };
        Self {
            slots: (0..count).zip(0..).map(slot).collect(),
            first_free: 0,
            last_free: count - 1,
            len: 0,
            posted: 0,
        }
    }

    /// The number of requests.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number of the next request; `None` if all slots are in use.
    pub(super) fn next(&self) -> Option<u32> {
        Some(self.slots.get(self.first_free)?.number)
    }

    /// Adds a request, with the number of [`next`](Self::next).
    pub(super) fn push(&mut self, sg_list: SgList) {
        let Some(slot) = self.slots.get_mut(self.first_free) else {
            return;
        };
        slot.sg_list = Some(sg_list);
        slot.posted_at = self.posted;
        self.first_free = slot.next;
        self.posted = self.posted.wrapping_add(1);
        self.len += 1;
    }

    /// Takes the request with this number, if there is one.
    pub(super) fn take(&mut self, number: u32) -> Option<SgList> {
        let count = self.slots.len();
        let index = number as usize & (count - 1);
        let slot = self.slots.get_mut(index)?;
        if slot.number != number {
            return None;
        }
        let sg_list = slot.sg_list.take()?;
        // The number of slots fits into a `u32`, as capacities do.
        slot.number = number.wrapping_add(u32::try_from(count).unwrap_or(0));
        slot.next = NONE;
        if self.first_free == NONE {
            self.first_free = index;
        } else if let Some(last) = self.slots.get_mut(self.last_free) {
            last.next = index;
        }
        self.last_free = index;
        self.len -= 1;
        Some(sg_list)
    }

    /// Takes all, oldest first.
    pub(super) fn take_all(&mut self) -> Vec<(u32, SgList)> {
        let in_use = self.slots.iter().filter(|slot| slot.sg_list.is_some());
        let mut numbers: Vec<_> = in_use.map(|slot| (slot.posted_at, slot.number)).collect();
        numbers.sort_by_key(|(posted_at, _)| posted_at.wrapping_sub(self.posted));
        let numbers = numbers.into_iter();
        numbers
            .filter_map(|(_, number)| Some((number, self.take(number)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(slots: &mut ReceiveSlots) -> u32 {
        let number = slots.next().unwrap();
        slots.push(SgList::NONE);
        number
    }

    #[test]
    fn each_number_is_taken_once_in_any_order() {
        let mut slots = ReceiveSlots::new(3);
        let numbers = [(); 4].map(|()| push(&mut slots));
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_eq!((slots.len(), slots.next()), (4, None));
        assert!(slots.take(2).is_some() && slots.take(2).is_none());
        assert!(slots.take(0).is_some());
        assert_eq!([(); 2].map(|()| push(&mut slots)), [6, 4]);
        assert!(slots.take(2).is_none() && slots.take(10).is_none());
        assert!(slots.take(6).is_some());
        let rest: Vec<_> = slots.take_all().iter().map(|one| one.0).collect();
        assert_eq!(rest, [1, 3, 4], "oldest first");
        assert_eq!((slots.len(), slots.take_all().len()), (0, 0));
        assert_eq!([(); 4].map(|()| push(&mut slots)), [10, 5, 7, 8]);
    }

    #[test]
    fn numbers_wrap() {
        let mut slots = ReceiveSlots::new(1);
        slots.slots[0].number = u32::MAX;
        assert_eq!(push(&mut slots), u32::MAX);
        assert!(slots.take(u32::MAX).is_some());
        assert_eq!(push(&mut slots), 0);
        slots.posted = 0;
        assert_eq!(slots.take_all().len(), 1);
    }
}
