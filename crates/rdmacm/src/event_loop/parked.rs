//! The threads that wait while another one leads.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::threads::ThreadWaker;

/// The index of a thread that is not parked.
pub(super) const NOT_PARKED: usize = usize::MAX;

/// Threads, in no order. Adding and removing one takes the same time however many there are.
#[derive(Clone, Debug, Default)]
pub(super) struct ParkedThreads(Vec<Arc<ThreadWaker>>);

impl ParkedThreads {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn add(&mut self, thread: &Arc<ThreadWaker>) {
        thread.set_index(self.0.len());
        self.0.push(Arc::clone(thread));
    }

    pub(super) fn remove(&mut self, thread: &ThreadWaker) {
        let index = thread.index.swap(NOT_PARKED, Ordering::Relaxed);
        if index >= self.0.len() {
            return;
        }
        // The caller has one as well, so that this does not end it.
        self.0.swap_remove(index);
        if let Some(moved) = self.0.get(index) {
            moved.set_index(index);
        }
    }

    /// Has each of them look why.
    pub(super) fn unpark_all(&self) {
        for thread in &self.0 {
            thread.unpark();
        }
    }

    /// One of them, to lead.
    pub(super) fn any(&self) -> Option<&Arc<ThreadWaker>> {
        self.0.last()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_thread_is_parked_until_it_is_removed(steps in vec(0..8_usize, 0..60)) {
            let threads: Vec<_> = (0..8).map(|number| ThreadWaker::new(number, Weak::new())).collect();
            let mut parked = ParkedThreads::default();
            let mut model = [false; 8];
            for index in steps {
                let thread = &threads[index];
                if model[index] {
                    parked.remove(thread);
                } else {
                    parked.add(thread);
                }
                model[index] = !model[index];
                let is_parked = threads.iter().map(|thread| thread.is_parked());
                prop_assert!(is_parked.eq(model));
                prop_assert_eq!(parked.len(), model.iter().filter(|is| **is).count());
                prop_assert_eq!(parked.any().is_some(), model.contains(&true));
                prop_assert!(parked.any().is_none_or(|any| any.is_parked()));
            }
            // Of a thread that is not parked, nothing is removed.
            let len = parked.len();
            threads.iter().filter(|thread| !thread.is_parked()).for_each(|thread| parked.remove(thread));
            prop_assert_eq!(parked.len(), len);
        }
    }
}
