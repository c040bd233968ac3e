//! Resources that others own.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Resources, as long as others own them. Adding and removing takes the same time for any number
/// of them.
#[derive(Debug)]
pub(crate) struct ResourceList<T>(Arc<Mutex<Entries<T>>>);

#[derive(Debug)]
struct Entries<T> {
    all: Vec<Weak<T>>,
    /// The indices without a resource.
    free: Vec<usize>,
}

impl<T> Default for ResourceList<T> {
    fn default() -> Self {
        let (all, free) = (Vec::new(), Vec::new());
        Self(Arc::new(Mutex::new(Entries { all, free })))
    }
}

impl<T> ResourceList<T> {
    /// Adds a resource, which keeps its entry.
    pub(crate) fn add(&self, make: impl FnOnce(Entry<T>) -> T) -> Arc<T> {
        let list = Arc::clone(&self.0);
        let mut entries = self.0.lock();
        let index = entries.reserve();
        // Dropping an entry takes the lock, which making it does not do.
        let resource = Arc::new(make(Entry { list, index }));
        if let Some(place) = entries.all.get_mut(index) {
            *place = Arc::downgrade(&resource);
        }
        resource
    }

    #[cfg(test)]
    pub(crate) fn lock(&self) -> impl Sized {
        self.0.lock()
    }

    /// Those that exist.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let entries = self.0.lock();
        entries.all.iter().filter_map(Weak::upgrade).collect()
    }
}

impl<T> Entries<T> {
    fn reserve(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.all.push(Weak::new());
            self.all.len() - 1
        })
    }
}

/// The entry of a resource, which removes it from the list when it is dropped.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    list: Arc<Mutex<Entries<T>>>,
    index: usize,
}

impl<T> Drop for Entry<T> {
    fn drop(&mut self) {
        let mut entries = self.list.lock();
        if let Some(place) = entries.all.get_mut(self.index) {
            *place = Weak::new();
            entries.free.push(self.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Resource(u32, #[expect(dead_code, reason = "removes it")] Entry<Self>);

    #[test]
    fn resources_that_are_gone_are_not_listed_and_their_places_are_used_again() {
        let list = ResourceList::default();
        let add = |number| list.add(|entry| Resource(number, entry));
        let numbers = || list.all().iter().map(|one| one.0).collect::<Vec<_>>();
        let (first, second) = (add(1), add(2));
        for number in 0..100 {
            drop(add(number));
        }
        assert_eq!(numbers(), [1, 2]);
        drop(first);
        let third = add(3);
        assert_eq!(numbers(), [3, 2]);
        assert_eq!(list.0.lock().all.len(), 3);
        drop((second, third));
        assert!(numbers().is_empty());
    }
}
