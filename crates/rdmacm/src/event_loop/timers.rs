//! When waiters are woken if nothing comes for them.

use std::task::Waker;
use std::time::Instant;

/// Timers, the first that is due first. Adding and removing one takes time by the logarithm
/// of their number, and allocates only where there are more than ever before.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// A binary heap: no timer is due before the one at half its place.
    heap: Vec<Timer>,
    slots: Vec<Slot>,
    free: Option<usize>,
}

/// A timer, by which its owner removes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TimerId(usize);

#[derive(Debug)]
struct Timer {
    at: Instant,
    waker: Waker,
    slot: usize,
}

/// What has become of a timer.
#[derive(Clone, Copy, Debug)]
enum Slot {
    /// It is at this place of the heap.
    Waiting(usize),
    Fired,
    /// It was removed; the next free slot.
    Free(Option<usize>),
}

impl Timers {
    /// When the first one is due.
    pub(super) fn first(&self) -> Option<Instant> {
        self.heap.first().map(|timer| timer.at)
    }

    pub(super) fn add(&mut self, at: Instant, waker: &Waker) -> TimerId {
        let place = self.heap.len();
        let slot = self.new_slot(Slot::Waiting(place));
        self.heap.push(Timer {
            at,
            waker: waker.clone(),
            slot,
        });
        self.move_up(place);
        TimerId(slot)
    }

    /// Wakes another waker. Returns the one that it replaces, which the caller drops without
    /// a lock: dropping the last waker of a task ends the task.
    #[must_use]
    pub(super) fn set_waker(&mut self, id: &TimerId, waker: &Waker) -> Option<Waker> {
        let Some(Slot::Waiting(place)) = self.slots.get(id.0) else {
            return None;
        };
        let known = &mut self.heap.get_mut(*place)?.waker;
        let is_same = known.will_wake(waker);
        (!is_same).then(|| std::mem::replace(known, waker.clone()))
    }

    pub(super) fn has_fired(&self, id: &TimerId) -> bool {
        matches!(self.slots.get(id.0), Some(Slot::Fired))
    }

    /// Removes a timer, which may have fired. Returns its waker otherwise.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the number may be another timer's from now on"
    )]
    pub(super) fn remove(&mut self, id: TimerId) -> Option<Waker> {
        let slot = self.slots.get_mut(id.0)?;
        let removed = std::mem::replace(slot, Slot::Free(self.free));
        self.free = Some(id.0);
        match removed {
            Slot::Waiting(place) => self.take(place).map(|timer| timer.waker),
            Slot::Fired | Slot::Free(_) => None,
        }
    }

    /// Takes the waker of the first timer if that is due.
    pub(super) fn fire(&mut self, now: Instant) -> Option<Waker> {
        self.first().filter(|at| *at <= now)?;
        let timer = self.take(0)?;
        self.set_slot(timer.slot, Slot::Fired);
        Some(timer.waker)
    }

    fn new_slot(&mut self, slot: Slot) -> usize {
        if let Some(free) = self.free {
            if let Some(here) = self.slots.get_mut(free) {
                if let Slot::Free(next) = std::mem::replace(here, slot) {
                    self.free = next;
                }
                return free;
            }
        }
        self.slots.push(slot);
        self.slots.len() - 1
    }

    fn set_slot(&mut self, number: usize, value: Slot) {
        if let Some(slot) = self.slots.get_mut(number) {
            *slot = value;
        }
    }

    /// Takes the timer at a place of the heap.
    fn take(&mut self, place: usize) -> Option<Timer> {
        let last = self.heap.pop()?;
        let Some(here) = self.heap.get_mut(place) else {
            return Some(last);
        };
        let timer = std::mem::replace(here, last);
        // The last one may belong above or below.
        self.move_down(place);
        self.move_up(place);
        Some(timer)
    }

    fn move_up(&mut self, mut place: usize) {
        while place > 0 {
            let above = (place - 1) / 2;
            if self.is_due_before(place, above) {
                self.swap(place, above);
                place = above;
            } else {
                break;
            }
        }
        self.moved(place);
    }

    fn move_down(&mut self, mut place: usize) {
        loop {
            let below = 2 * place + 1;
            let below = below + usize::from(self.is_due_before(below + 1, below));
            if !self.is_due_before(below, place) {
                return self.moved(place);
            }
            self.swap(place, below);
            place = below;
        }
    }

    /// Whether there are both, and the one is due before the other.
    fn is_due_before(&self, one: usize, other: usize) -> bool {
        let at = |place: usize| self.heap.get(place).map(|timer| timer.at);
        at(one)
            .zip(at(other))
            .is_some_and(|(one, other)| one < other)
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.moved(one);
        self.moved(other);
    }

    /// Writes down where a timer is now.
    fn moved(&mut self, place: usize) {
        if let Some(slot) = self.heap.get(place).map(|timer| timer.slot) {
            self.set_slot(slot, Slot::Waiting(place));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::event_loop::new_waker;

    #[test]
    fn a_timer_has_fired_until_it_is_removed() {
        let mut timers = Timers::default();
        let now = Instant::now();
        let id = timers.add(now, &new_waker());
        assert!(!timers.has_fired(&id));
        assert!(timers.fire(now).is_some());
        assert!(timers.has_fired(&id) && timers.first().is_none());
        assert!(timers.set_waker(&id, &new_waker()).is_none());
        assert!(timers.remove(id).is_none());
        let again = timers.add(now, &new_waker());
        assert!(!timers.has_fired(&again));
    }

    #[test]
    fn another_waker_replaces_the_first() {
        let mut timers = Timers::default();
        let (one, other) = (new_waker(), new_waker());
        let id = timers.add(Instant::now(), &one);
        assert!(timers.set_waker(&id, &one).is_none());
        let replaced = timers.set_waker(&id, &other);
        assert!(replaced.is_some_and(|waker| waker.will_wake(&one)));
        assert!(
            timers
                .remove(id)
                .is_some_and(|waker| waker.will_wake(&other))
        );
    }

    #[derive(Clone, Debug)]
    enum Step {
        Add(u64),
        Remove(usize),
        Fire(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..20_u64).prop_map(Step::Add),
            2 => any::<prop::sample::Index>().prop_map(|index| Step::Remove(index.index(100))),
            1 => (0..20_u64).prop_map(Step::Fire),
        ]
    }

    proptest! {
        #[test]
        fn those_that_are_due_fire_in_order(steps in vec(step(), 0..100)) {
            let begin = Instant::now();
            let at = |second| begin + Duration::from_secs(second);
            let mut timers = Timers::default();
            let mut waiting: Vec<(u64, TimerId, Waker)> = Vec::new();
            for step in steps {
                match step {
                    Step::Add(second) => {
                        let waker = new_waker();
                        waiting.push((second, timers.add(at(second), &waker), waker));
                    }
                    Step::Remove(index) if index < waiting.len() => {
                        let (_, id, waker) = waiting.swap_remove(index);
                        let removed = timers.remove(id);
                        prop_assert!(removed.is_some_and(|removed| removed.will_wake(&waker)));
                    }
                    Step::Remove(_) => {}
                    Step::Fire(second) => {
                        let mut last = None;
                        while let Some(fired) = timers.fire(at(second)) {
                            let is_it = |one: &(u64, TimerId, Waker)| one.2.will_wake(&fired);
                            let index = waiting.iter().position(is_it).unwrap();
                            let (due, id, _) = waiting.swap_remove(index);
                            prop_assert!(due <= second && last <= Some(due));
                            prop_assert!(timers.has_fired(&id));
                            prop_assert!(timers.remove(id).is_none());
                            last = Some(due);
                        }
                        prop_assert!(waiting.iter().all(|one| one.0 > second));
                    }
                }
                let first = waiting.iter().map(|one| at(one.0)).min();
                prop_assert_eq!(timers.first(), first);
            }
            prop_assert!(timers.slots.len() <= 100);
        }
    }
}
