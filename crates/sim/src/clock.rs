//! The fabric's clock, and what is due when.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::work::Work;

/// A clock that moves when it is told to.
#[derive(Debug)]
pub(crate) struct Clock {
    now: Instant,
    /// What is due, in the order it was put here where the time is the same.
    due: BTreeMap<(Instant, u64), Work>,
    sequence: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            now: Instant::now(),
            due: BTreeMap::new(),
            sequence: 0,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// The clock never goes back.
    pub(crate) fn move_to(&mut self, moment: Instant) {
        self.now = self.now.max(moment);
    }

    /// Puts work off. What lies beyond the clock's end never comes.
    pub(crate) fn put_off(&mut self, delay: Duration, work: Work) {
        if let Some(moment) = self.now.checked_add(delay) {
            self.sequence += 1;
            self.due.insert((moment, self.sequence), work);
        }
    }

    /// When the next piece of work is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.keys().next().map(|(moment, _)| *moment)
    }

    /// A piece of work that is due by now.
    pub(crate) fn take_due(&mut self) -> Option<Work> {
        let entry = self.due.first_entry()?;
        (entry.key().0 <= self.now).then(|| entry.remove())
    }
}
