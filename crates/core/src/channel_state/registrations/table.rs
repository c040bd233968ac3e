//! A table of registrations.

use std::sync::Weak;

use super::Registration;
use crate::token::Token;

/// Golden ratio: multiplying by it spreads numbers that follow each other evenly
/// (Knuth, The Art of Computer Programming, volume 3, section 6.4).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The size of the first table.
const FIRST: usize = 8;

/// A table of 16-byte slots, of which at most three quarters are used.
///
/// The slot of a token is a multiplication; if another token has it, the next free slot is
/// taken. Tokens come from a counter of this library, so no peer can choose tokens that share
/// a slot. Removing moves the entries after it back to their slots, so that lookups
/// stay short however many ids come and go.
#[derive(Debug)]
pub(super) struct Table<I> {
    /// None or a power of two.
    slots: Box<[Option<Registration<I>>]>,
    count: usize,
}

impl<I> Default for Table<I> {
    fn default() -> Self {
        Self {
            slots: Box::default(),
            count: 0,
        }
    }
}

impl<I> Table<I> {
    /// The id with this token.
    pub(super) fn get(&self, token: Token) -> Option<&Weak<I>> {
        let place = self.find(token)?;
        let registration = self.slots.get(place)?.as_ref()?;
        Some(&registration.id)
    }

    /// Registers an id, in place of one that has this token already.
    pub(super) fn insert(&mut self, token: Token, id: Weak<I>) {
        if self.count >= self.slots.len() / 4 * 3 {
            self.grow();
        }
        self.put(Registration { token, id });
    }

    /// Removes the id with this token, if there is one.
    #[inline]
    pub(super) fn remove(&mut self, token: Token) {
        let Some(place) = self.find(token) else {
            return;
        };
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = None;
            self.count -= 1;
        }
        if let Some(Some(_)) = self.slots.get(self.next(place)) {
            self.fill(place);
        }
    }

    /// Moves entries after a slot that became free there, if they are closer to their own
    /// slots then.
    #[cold]
    fn fill(&mut self, mut free: usize) {
        let mut place = self.next(free);
        while let Some(Some(registration)) = self.slots.get(place) {
            let ideal = self.home_slot(registration.token);
            if self.distance(ideal, place) >= self.distance(free, place) {
                self.slots.swap(free, place);
                free = place;
            }
            place = self.next(place);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Where the token is. There is always a free slot, which ends the search.
    fn find(&self, token: Token) -> Option<usize> {
        let mut place = self.home_slot(token);
        while let Some(registration) = self.slots.get(place)? {
            if registration.token == token {
                return Some(place);
            }
            place = self.next(place);
        }
        None
    }

    /// Stores a registration; there is a free slot.
    fn put(&mut self, registration: Registration<I>) {
        let mut place = self.home_slot(registration.token);
        while let Some(slot) = self.slots.get(place) {
            match slot {
                Some(other) if other.token != registration.token => place = self.next(place),
                Some(_) => break,
                None => {
                    self.count += 1;
                    break;
                }
            }
        }
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Some(registration);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(FIRST);
        let slots = (0..size).map(|_| None).collect();
        let old = std::mem::replace(&mut self.slots, slots);
        self.count = 0;
        for registration in old.into_iter().flatten() {
            self.put(registration);
        }
    }

    /// The slot that a token should have: the uppermost bits of the product.
    fn home_slot(&self, token: Token) -> usize {
        let product = token.uid().wrapping_mul(SPREAD);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "only the mask's bits matter"
        )]
        let place = product.rotate_left(self.slots.len().trailing_zeros()) as usize;
        place & self.mask()
    }

    fn next(&self, place: usize) -> usize {
        place.wrapping_add(1) & self.mask()
    }

    /// How many slots after `from` `to` is.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & self.mask()
    }

    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::sync::Arc;

    fn token(uid: u64) -> Token {
        Token::from_kernel(uid)
    }

    /// How many slots a lookup reads at most.
    fn longest_search<I>(table: &Table<I>) -> usize {
        let slots = table.slots.iter().enumerate();
        let taken = slots.filter_map(|(place, slot)| Some((place, slot.as_ref()?)));
        let steps = taken.map(|(place, one)| 1 + table.distance(table.home_slot(one.token), place));
        steps.max().unwrap_or_default()
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Insert(u64),
        Remove(u64),
    }

    /// Few tokens, so that they meet again, and some from anywhere.
    fn uid() -> impl Strategy<Value = u64> {
        prop_oneof![4 => 0_u64..64, 1 => any::<u64>()]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![uid().prop_map(Step::Insert), uid().prop_map(Step::Remove)]
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in proptest::collection::vec(step(), 0..400)) {
            let mut model = HashMap::new();
            let mut table = Table::default();
            for step in steps {
                match step {
                    Step::Insert(uid) => {
                        let id = Arc::new(uid);
                        table.insert(token(uid), Arc::downgrade(&id));
                        model.insert(uid, id);
                    }
                    Step::Remove(uid) => {
                        table.remove(token(uid));
                        model.remove(&uid);
                    }
                }
                prop_assert_eq!(table.count, model.len());
                for uid in (0..64).chain(model.keys().copied()) {
                    let found = table.get(token(uid)).and_then(Weak::upgrade);
                    let same = match (&found, model.get(&uid)) {
                        (Some(found), Some(id)) => Arc::ptr_eq(found, id),
                        (found, id) => found.is_none() && id.is_none(),
                    };
                    prop_assert!(same, "{uid}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn an_empty_one_has_no_table() {
        let mut table = Table::<()>::default();
        assert!(table.get(token(7)).is_none());
        table.remove(token(7));
        assert!(table.slots.is_empty());
    }

    #[test]
    fn searches_stay_short_beside_ids_that_live_long() {
        let mut table = Table::default();
        for uid in 1..=3000 {
            table.insert(token(uid), Weak::<()>::new());
        }
        for uid in 3001..50_000 {
            table.insert(token(uid), Weak::new());
            table.remove(token(uid));
        }
        for uid in (1..=3000).filter(|uid| uid % 3 != 0) {
            table.remove(token(uid));
        }
        for uid in 50_000..52_000 {
            table.insert(token(uid), Weak::new());
        }
        assert_eq!(table.slots.len(), 4096);
        let longest = longest_search(&table);
        assert!(longest < 64, "a lookup reads {longest} slots");
    }
}
