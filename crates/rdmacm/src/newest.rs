//! The newest values of a table.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// The values of the `MAX` keys that were added last. Peers choose their own addresses, so a
/// table of them that any peer can add to would have no limit otherwise.
#[derive(Debug)]
pub(crate) struct Newest<K, V, const MAX: usize> {
    values: HashMap<K, V>,
    /// The oldest key is the first.
    keys: VecDeque<K>,
}

impl<K: Copy + Eq + Hash, V, const MAX: usize> Newest<K, V, MAX> {
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.values.get_mut(key)
    }

    /// Returns the value that is dropped for it: the key's, or the oldest one.
    #[must_use]
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let replaced = self.values.insert(key, value);
        if replaced.is_some() {
            return replaced;
        }
        self.keys.push_back(key);
        if self.keys.len() <= MAX {
            return None;
        }
        let oldest = self.keys.pop_front()?;
        self.values.remove(&oldest)
    }
}

impl<K, V, const MAX: usize> Default for Newest<K, V, MAX> {
    fn default() -> Self {
        Self {
            values: HashMap::new(),
            keys: VecDeque::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_value_is_dropped_for_a_new_one() {
        let mut newest = Newest::<u32, u32, 3>::default();
        for number in 0..3 {
            assert_eq!(newest.insert(number, number), None);
        }
        assert_eq!(newest.insert(1, 1000), Some(1));
        assert_eq!(newest.insert(2000, 2000), Some(0));
        assert_eq!(newest.values.len(), 3);
        assert_eq!(newest.get(&1), Some(&1000));
        assert_eq!(newest.get(&0), None);
    }
}
