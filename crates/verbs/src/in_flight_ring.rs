//! Outstanding requests in the order of posting.

use std::collections::VecDeque;

/// Outstanding requests by number, in the order of posting. Numbers increase and wrap around.
/// Requests may complete in any order; each number is valid for one completion.
#[derive(Debug)]
pub(crate) struct InFlightRing<T> {
    entries: VecDeque<Option<T>>,
    /// The number of the first entry.
    first: u32,
    len: usize,
}

impl<T> Default for InFlightRing<T> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            len: 0,
        }
    }
}

impl<T> InFlightRing<T> {
    /// The number of requests.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number of the next request.
    pub(crate) fn next(&self) -> u32 {
        // The capacity of a queue fits into a `u32`.
        let span = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.first.wrapping_add(span)
    }

    pub(crate) fn push(&mut self, entry: T) -> u32 {
        let number = self.next();
        self.entries.push_back(Some(entry));
        self.len += 1;
        number
    }

    /// The request with this number, if there is one.
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let index = self.index(number);
        self.entries.get_mut(index)?.as_mut()
    }

    /// All requests with their numbers, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let numbers = (0..).map(|n| self.first.wrapping_add(n));
        let entries = numbers.zip(&self.entries);
        entries.filter_map(|(number, entry)| Some((number, entry.as_ref()?)))
    }

    /// All requests with their numbers, oldest first, mutably.
    pub(crate) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (u32, &mut T)> {
        let first = self.first;
        let entries = self.entries.iter_mut().enumerate();
        entries.filter_map(move |(index, entry)| {
            let index = u32::try_from(index).ok()?;
            Some((first.wrapping_add(index), entry.as_mut()?))
        })
    }

    /// Takes the request with this number, if there is one.
    pub(crate) fn take(&mut self, number: u32) -> Option<T> {
        let entry = self.entries.get_mut(self.index(number))?.take()?;
        self.len -= 1;
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        Some(entry)
    }

    /// Takes all requests before this number, oldest first, if it is outstanding.
    pub(crate) fn take_before(&mut self, number: u32) -> Vec<(u32, T)> {
        let index = self.index(number);
        if index >= self.entries.len() {
            return Vec::new();
        }
        let first = self.first;
        let before = self.entries.drain(..index);
        let before = (0..).map(|n| first.wrapping_add(n)).zip(before);
        let before: Vec<_> = before
            .filter_map(|(number, entry)| Some((number, entry?)))
            .collect();
        self.first = number;
        self.len -= before.len();
        before
    }

    /// Takes all requests, oldest first.
    pub(crate) fn take_all(&mut self) -> Vec<(u32, T)> {
        let first = self.first;
        self.first = self.next();
        self.len = 0;
        let entries = self.entries.drain(..);
        let entries = (0..).map(|n| first.wrapping_add(n)).zip(entries);
        entries
            .filter_map(|(number, entry)| Some((number, entry?)))
            .collect()
    }

    fn index(&self, number: u32) -> usize {
        number.wrapping_sub(self.first) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_taken_once_in_any_order() {
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
    fn earlier_requests_are_taken_with_an_outstanding_one() {
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
