//! Threads that wait, and when the clock may move for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::eventfd::EventFd;

use crate::event_queue::FileKey;

/// The threads that wait on the fabric's files.
#[derive(Debug)]
pub(crate) struct Waits {
    threads: BTreeMap<u64, Wait>,
    last: u64,
    /// Counts what happened on the fabric.
    pub(crate) changes: u64,
    /// How long nothing must happen before a wait moves the clock while some
    /// file is not waited on.
    pub(crate) idle_time: Duration,
}

/// One thread that waits.
#[derive(Debug)]
struct Wait {
    file: FileKey,
    until: Option<Instant>,
    wake: Arc<EventFd>,
    /// The number of changes when the thread last checked what it waits for.
    checked: u64,
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

    pub(crate) fn add(&mut self, file: FileKey, until: Option<Instant>, wake: Arc<EventFd>) -> u64 {
        self.last += 1;
        let wait = Wait {
            file,
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

    pub(crate) fn remove(&mut self, number: u64) {
        self.threads.remove(&number);
    }

    /// The earliest end of a wait.
    pub(crate) fn earliest(&self) -> Option<Instant> {
        self.threads.values().filter_map(|wait| wait.until).min()
    }

    /// How many different files are waited on.
    pub(crate) fn files(&self) -> usize {
        let files: BTreeSet<_> = self.threads.values().map(|wait| wait.file).collect();
        files.len()
    }

    /// Records that something happened, and makes every waiting thread check for it.
    pub(crate) fn notify(&mut self) {
        self.changes += 1;
        for wait in self.threads.values() {
            // Fails only if the counter is full, and then the thread wakes anyway.
            let _ = wait.wake.write(1);
        }
    }
}
