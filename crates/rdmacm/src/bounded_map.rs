//! A map of limited size.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// The values of the `MAX` keys that were added last. Peers choose their own addresses, so a
/// table of them that any peer can add to would have no limit otherwise.
#[derive(Debug)]
pub(crate) struct BoundedMap<K, V, const MAX: usize> {
    values: HashMap<K, V>,
    /// The oldest key is the first.
    keys: VecDeque<K>,
}

impl<K: Copy + Eq + Hash, V, const MAX: usize> BoundedMap<K, V, MAX> {
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

impl<K, V, const MAX: usize> Default for BoundedMap<K, V, MAX> {
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
        let mut map = BoundedMap::<u32, u32, 3>::default();
        for number in 0..3 {
            assert_eq!(map.insert(number, number), None);
        }
        assert_eq!(map.insert(1, 1000), Some(1));
        assert_eq!(map.insert(2000, 2000), Some(0));
        assert_eq!(map.values.len(), 3);
        assert_eq!(map.get(&1), Some(&1000));
        assert_eq!(map.get(&0), None);
    }
}
