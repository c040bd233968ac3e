//! Waiters to wake without a lock.

use std::task::Waker;

use super::wake_all;

/// The wakers of waiters, which are woken or dropped without a lock: dropping the last waker of a
/// task ends the task. Mostly there is at most one, which takes no allocation.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Wakers {
    first: Option<Waker>,
    /// Empty if there is no first.
    others: Vec<Waker>,
}

impl Wakers {
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Adds those that are not there yet. Each is compared with all others.
    #[cfg(feature = "verbs")]
    pub(crate) fn add_missing<'a>(&mut self, wakers: impl IntoIterator<Item = &'a Waker>) {
        for waker in wakers {
            if self.contains(waker) {
                continue;
            }
            self.add(waker.clone());
        }
    }

    /// Whether this one is woken. A waker may fail to recognise its clone.
    #[cfg(feature = "verbs")]
    pub(crate) fn contains(&self, waker: &Waker) -> bool {
        let mut known = self.first.iter().chain(&self.others);
        known.any(|known| known.will_wake(waker))
    }

    /// Adds one.
    pub(crate) fn add(&mut self, waker: Waker) {
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.others.push(waker),
        }
    }

    /// Wakes each of them, also if the waker of one panics.
    #[inline]
    pub(crate) fn wake(self) {
        if self.first.is_some() || self.others.capacity() > 0 {
            self.wake_each();
        } else {
            // There is nothing to drop.
            std::mem::forget(self);
        }
    }

    #[inline(never)]
    fn wake_each(self) {
        match self {
            Self {
                first: Some(only),
                others,
            } if others.is_empty() => only.wake(),
            several => wake_all(several),
        }
    }
}

impl From<Option<Waker>> for Wakers {
    fn from(first: Option<Waker>) -> Self {
        Self {
            first,
            others: Vec::new(),
        }
    }
}

/// Adds all of them, without comparing them.
impl FromIterator<Waker> for Wakers {
    fn from_iter<I: IntoIterator<Item = Waker>>(wakers: I) -> Self {
        let mut wakers = wakers.into_iter().fuse();
        Self {
            first: wakers.next(),
            others: wakers.collect(),
        }
    }
}

impl IntoIterator for Wakers {
    type Item = Waker;
    type IntoIter = std::iter::Chain<std::option::IntoIter<Waker>, std::vec::IntoIter<Waker>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}
