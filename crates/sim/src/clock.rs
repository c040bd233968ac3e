//! The fabric's clock and its timers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::timer::Timer;

/// A clock that moves only when the simulation moves it.
#[derive(Debug)]
pub(crate) struct Clock {
    began: Instant,
    now: Instant,
    /// By time, then in the order in which they were scheduled.
    timers: BTreeMap<(Instant, u64), Timer>,
    sequence: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            began: now,
            now,
            timers: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// A clock that reads the same.
    pub(crate) fn without_timers(&self) -> Self {
        Self {
            timers: BTreeMap::new(),
            ..*self
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.now.saturating_duration_since(self.began)
    }

    /// The clock never goes back.
    pub(crate) fn move_to(&mut self, time: Instant) {
        self.now = self.now.max(time);
    }

    /// Schedules a timer. One beyond the clock's range never fires.
    pub(crate) fn schedule(&mut self, delay: Duration, timer: Timer) {
        if let Some(time) = self.now.checked_add(delay) {
            let sequence = self.next_sequence();
            self.timers.insert((time, sequence), timer);
        }
    }

    /// A number that no other call returns.
    pub(crate) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// When the next timer fires.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.timers.keys().next().map(|(time, _)| *time)
    }

    /// A timer that is due.
    pub(crate) fn take_due(&mut self) -> Option<Timer> {
        let entry = self.timers.first_entry()?;
        (entry.key().0 <= self.now).then(|| entry.remove())
    }
}
