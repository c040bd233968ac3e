//! Threads that wait, and when the clock may move for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::eventfd::EventFd;

/// The threads that wait on the fabric's files. The one that began last checks whether the
/// clock may move.
#[derive(Debug)]
pub(crate) struct Waits {
    threads: BTreeMap<u64, Wait>,
    last: u64,
    /// Counts what happened on the fabric.
    pub(crate) changes: u64,
    /// How long a thread that has not used the fabric may compute while nothing happens,
    /// before a wait moves the clock.
    pub(crate) idle_time: Duration,
}

/// One thread that waits.
#[derive(Debug)]
struct Wait {
    until: Option<Instant>,
    wake: Arc<EventFd>,
    /// The number of changes when the thread last checked what it waits for.
    checked: u64,
}

impl Wait {
    fn wake(&self) {
        // Fails only if the counter is full, and then the thread wakes anyway.
        let _ = self.wake.write(1);
    }
}

impl Waits {
    pub(crate) fn new() -> Self {
        Self {
            threads: BTreeMap::new(),
            last: 0,
            changes: 0,
            idle_time: Duration::from_millis(20),
        }
    }

    pub(crate) fn add(&mut self, until: Option<Instant>, wake: Arc<EventFd>) -> u64 {
        self.last += 1;
        let wait = Wait {
            until,
            wake,
            checked: self.changes,
        };
        self.threads.insert(self.last, wait);
        self.last
    }

    /// Records that the thread has found nothing to do.
    pub(crate) fn check(&mut self, number: u64) {
        if let Some(wait) = self.threads.get_mut(&number) {
            wait.checked = self.changes;
        }
    }

    /// Whether all threads have checked what they wait for since the last change. A thread
    /// that was notified and has not run yet is about to act.
    pub(crate) fn is_settled(&self) -> bool {
        let mut threads = self.threads.values();
        threads.all(|wait| wait.checked == self.changes)
    }

    /// Whether it is the thread that checks whether the clock may move.
    pub(crate) fn is_newest(&self, number: u64) -> bool {
        self.threads.keys().next_back() == Some(&number)
    }

    pub(crate) fn remove(&mut self, number: u64) {
        let was_newest = self.is_newest(number);
        self.threads.remove(&number);
        if let Some((_, newest)) = self.threads.last_key_value().filter(|_| was_newest) {
            newest.wake();
        }
    }

    /// The earliest end of a wait.
    pub(crate) fn earliest(&self) -> Option<Instant> {
        self.threads.values().filter_map(|wait| wait.until).min()
    }

    /// Records that something happened, and makes every waiting thread check for it.
    pub(crate) fn notify(&mut self) {
        self.changes += 1;
        self.threads.values().for_each(Wait::wake);
    }
}
