//! Requests that the device has, by the order in which it got them.

use std::collections::VecDeque;

/// What the device has, each under a number that counts on for ever. Completions
/// may come in any order; each number is good for one.
#[derive(Debug)]
pub(crate) struct InFlightRing<T> {
    entries: VecDeque<Option<T>>,
    /// The number of the first entry.
    first: u32,
    held: usize,
}

impl<T> Default for InFlightRing<T> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            held: 0,
        }
    }
}

impl<T> InFlightRing<T> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.held
    }

    /// The number that the next will have.
    pub(crate) fn next(&self) -> u32 {
        // As many as a queue holds, which is less than a word can say.
        let span = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.first.wrapping_add(span)
    }

    pub(crate) fn push(&mut self, entry: T) -> u32 {
        let number = self.next();
        self.entries.push_back(Some(entry));
        self.held += 1;
        number
    }

    /// The one of this number; `None` if there is none.
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let place = self.place(number);
        self.entries.get_mut(place)?.as_mut()
    }

    /// All of them with their numbers, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let numbers = (0..).map(|n| self.first.wrapping_add(n));
        let entries = numbers.zip(&self.entries);
        entries.filter_map(|(number, entry)| Some((number, entry.as_ref()?)))
    }

    /// The same, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (u32, &mut T)> {
        let first = self.first;
        let entries = self.entries.iter_mut().enumerate();
        entries.filter_map(move |(place, entry)| {
            let place = u32::try_from(place).ok()?;
            Some((first.wrapping_add(place), entry.as_mut()?))
        })
    }

    /// Takes the one of this number; `None` if there is none.
    pub(crate) fn take(&mut self, number: u32) -> Option<T> {
        let entry = self.entries.get_mut(self.place(number))?.take()?;
        self.held -= 1;
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        Some(entry)
    }

    /// Takes all before this number, oldest first, if there is one of this number.
    pub(crate) fn take_before(&mut self, number: u32) -> Vec<(u32, T)> {
        let place = self.place(number);
        if place >= self.entries.len() {
            return Vec::new();
        }
        let first = self.first;
        let before = self.entries.drain(..place);
        let before = (0..).map(|n| first.wrapping_add(n)).zip(before);
        let before: Vec<_> = before
            .filter_map(|(number, entry)| Some((number, entry?)))
            .collect();
        self.first = number;
        self.held -= before.len();
        before
    }

    /// Takes all.
    pub(crate) fn take_all(&mut self) -> Vec<(u32, T)> {
        let first = self.first;
        self.first = self.next();
        self.held = 0;
        let entries = self.entries.drain(..);
        let entries = (0..).map(|n| first.wrapping_add(n)).zip(entries);
        entries
            .filter_map(|(number, entry)| Some((number, entry?)))
            .collect()
    }

    fn place(&self, number: u32) -> usize {
        number.wrapping_sub(self.first) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_good_once_in_any_order() {
        let mut ring = InFlightRing::default();
        let numbers = ["a", "b", "c"].map(|entry| ring.push(entry));
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(ring.take(1), Some("b"));
        assert_eq!((ring.take(1), ring.take(3)), (None, None));
        assert_eq!((ring.len(), ring.entries.len()), (2, 3));
        assert_eq!(ring.take(0), Some("a"));
        assert_eq!((ring.len(), ring.entries.len()), (1, 1));
        assert_eq!((ring.take(0), ring.push("d")), (None, 3));
        assert_eq!(ring.take_all(), [(2, "c"), (3, "d")]);
        assert_eq!((ring.len(), ring.next()), (0, 4));
    }

    #[test]
    fn those_before_come_with_one_that_is_there() {
        let mut ring = InFlightRing::default();
        for entry in 0..5 {
            ring.push(entry);
        }
        assert_eq!(ring.take_before(7), []);
        *ring.get_mut(4).unwrap() = 9;
        assert_eq!(ring.get_mut(7), None);
        assert_eq!(ring.iter().last(), Some((4, &9)));
        assert_eq!(ring.iter_mut().next_back(), Some((4, &mut 9)));
        assert_eq!(ring.take_before(3), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(ring.take(3), Some(3));
        assert_eq!((ring.len(), ring.next()), (1, 5));
    }

    #[test]
    fn numbers_wrap() {
        let mut ring = InFlightRing {
            first: u32::MAX,
            ..InFlightRing::default()
        };
        assert_eq!((ring.push('a'), ring.push('b')), (u32::MAX, 0));
        assert_eq!(ring.take_before(0), [(u32::MAX, 'a')]);
        assert_eq!(ring.take(0), Some('b'));
        assert_eq!(ring.take(u32::MAX), None);
    }
}
