//! Outstanding requests that complete in any order.

use std::collections::HashMap;

/// Outstanding requests by number. Numbers increase and wrap around; each is valid for one
/// completion. Some requests may never complete.
#[derive(Debug)]
pub(crate) struct InFlightMap<T> {
    entries: HashMap<u32, T>,
    next: u32,
}

impl<T> Default for InFlightMap<T> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            next: 0,
        }
    }
}

impl<T> InFlightMap<T> {
    /// The number of requests.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The number of the next request: one that is not in use.
    pub(crate) fn next(&self) -> u32 {
        // There are fewer entries than numbers.
        let mut next = self.next;
        while self.entries.contains_key(&next) {
            next = next.wrapping_add(1);
        }
        next
    }

    pub(crate) fn push(&mut self, entry: T) -> u32 {
        let number = self.next();
        self.entries.insert(number, entry);
        self.next = number.wrapping_add(1);
        number
    }

    /// Takes the request with this number, if there is one.
    pub(crate) fn take(&mut self, number: u32) -> Option<T> {
        self.entries.remove(&number)
    }

    /// Takes all, oldest first.
    pub(crate) fn take_all(&mut self) -> Vec<(u32, T)> {
        let mut all: Vec<_> = self.entries.drain().collect();
        let next = self.next;
        all.sort_by_key(|(number, _)| number.wrapping_sub(next));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_taken_once_in_any_order() {
        let mut in_flight_map = InFlightMap::default();
        let numbers = ["a", "b", "c"].map(|entry| in_flight_map.push(entry));
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(in_flight_map.take(1), Some("b"));
        assert_eq!((in_flight_map.take(1), in_flight_map.take(3)), (None, None));
        assert_eq!((in_flight_map.len(), in_flight_map.next()), (2, 3));
        assert_eq!(in_flight_map.take_all(), [(0, "a"), (2, "c")]);
        assert_eq!((in_flight_map.len(), in_flight_map.next()), (0, 3));
    }

    #[test]
    fn wrapping_numbers_skip_those_in_use() {
        let mut in_flight_map = InFlightMap::default();
        in_flight_map.push('a');
        in_flight_map.next = u32::MAX;
        assert_eq!(
            (in_flight_map.push('b'), in_flight_map.push('c')),
            (u32::MAX, 1)
        );
        assert_eq!(
            in_flight_map.take_all(),
            [(u32::MAX, 'b'), (0, 'a'), (1, 'c')]
        );
    }
}
