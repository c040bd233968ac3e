//! A listener whose calls do not wait, and `poll(2)`.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;

use parking_lot::Mutex;

use super::descriptor::Descriptor;
use super::handle::StreamHandle;
use super::options::StreamOptions;
use super::pending_handshakes::{GiveUp, PendingHandshakes};
use crate::error::Result;
use crate::event_loop::{EventLoop, waker_fn};
use crate::listen::ListeningIds;
use crate::stage::Stage;

/// A descriptor that is readable while accepting may return a stream.
#[derive(Debug)]
pub(super) struct ListenerReadiness {
    /// Whether calls do not wait. Changes under the lock.
    is_nonblocking: AtomicBool,
    switching: Mutex<()>,
    descriptor: Arc<Descriptor>,
    /// Of the waiter that makes the descriptor readable. Another one each time that calls stop waiting: of
    /// several waiters the oldest is woken, and who waits already goes first.
    key: AtomicU64,
    waker: Waker,
}

/// Makes the descriptor readable, which ends with the listener: a [`StopHandle`](crate::StopHandle) may
/// keep the waker.
///
/// Not in a forked child, which shares the descriptor with its parent.
fn descriptor_waker(descriptor: Weak<Descriptor>, event_loop: Weak<EventLoop>) -> Waker {
    waker_fn(move || {
        let event_loop = event_loop.upgrade();
        if event_loop.is_some_and(|event_loop| event_loop.is_in_child()) {
            return;
        }
        if let Some(descriptor) = descriptor.upgrade() {
            descriptor.set_ready();
        }
    })
}

impl ListenerReadiness {
    fn new(event_loop: &Arc<EventLoop>) -> io::Result<Self> {
        let descriptor = Arc::new(Descriptor::new([event_loop.readiness()])?);
        let waker = descriptor_waker(Arc::downgrade(&descriptor), Arc::downgrade(event_loop));
        Ok(Self {
            is_nonblocking: AtomicBool::new(false),
            switching: Mutex::default(),
            descriptor,
            key: AtomicU64::new(event_loop.new_key()),
            waker,
        })
    }

    fn is_nonblocking(&self) -> bool {
        self.is_nonblocking.load(Ordering::SeqCst)
    }

    fn key(&self) -> u64 {
        self.key.load(Ordering::SeqCst)
    }

    /// Whether calls wait again, or have waited since somebody has read the key.
    fn has_changed_since(&self, key: u64) -> bool {
        !self.is_nonblocking() || self.key() != key
    }
}

impl PendingHandshakes {
    /// Whether [`accept_at_once`](Self::accept_at_once) replaces waiting from now on. The first
    /// time, the listener gets a descriptor of its own.
    pub(crate) fn set_nonblocking(
        &self,
        ids: &ListeningIds,
        is_nonblocking: bool,
    ) -> io::Result<()> {
        if is_nonblocking && self.readiness.get().is_none() {
            let new = ListenerReadiness::new(ids.event_loop())?;
            // Another thread may have made one meanwhile.
            let _ = self.readiness.get_or_init(|| new);
        }
        if let Some(readiness) = self.readiness.get() {
            self.switch(ids, readiness, is_nonblocking);
        }
        Ok(())
    }

    fn switch(&self, ids: &ListeningIds, readiness: &ListenerReadiness, is_nonblocking: bool) {
        let switching = &readiness.switching;
        let _switching = switching.lock();
        if readiness.is_nonblocking() == is_nonblocking {
            return;
        }
        if is_nonblocking {
            // Before a call reads it.
            let key = ids.event_loop().new_key();
            readiness.key.store(key, Ordering::SeqCst);
        }
        readiness
            .is_nonblocking
            .store(is_nonblocking, Ordering::SeqCst);
        if is_nonblocking {
            // Nobody has polled the listener without waiting.
            readiness.descriptor.set_ready();
        } else {
            // Whoever waits from now on is the one to wake.
            self.deregister(ids, readiness.key());
        }
    }

    /// A descriptor that is readable while something may have come for the listener.
    pub(crate) fn descriptor<'a>(&'a self, ids: &'a ListeningIds) -> BorrowedFd<'a> {
        match self.readiness.get() {
            Some(readiness) => readiness.descriptor.fd(),
            None => ids.event_loop().readiness(),
        }
    }

    /// The next stream, if there is one; if not, the descriptor becomes readable when there may be
    /// one. `None` without anything done if calls wait.
    pub(crate) fn accept_at_once(
        &self,
        ids: &ListeningIds,
        options: &StreamOptions,
    ) -> Option<Result<Option<StreamHandle>>> {
        let readiness = self.readiness.get()?;
        if !readiness.is_nonblocking() {
            return None;
        }
        // A forked child, whose calls fail, shares the descriptor with its parent.
        let descriptor = &readiness.descriptor;
        let descriptor = (!ids.event_loop().is_in_child()).then_some(descriptor);
        if let Some(descriptor) = descriptor {
            descriptor.clear_ready();
        }
        let failures = ids.event_loop().failures();
        let is_more = ids.event_loop().run_once();
        let key = readiness.key();
        // Whatever comes from here on wakes the waker; what came before is found.
        let register = || self.register(ids, key, &readiness.waker);
        let give_up = if is_more { GiveUp::Nobody } else { GiveUp::All };
        let accepted = self.take_next(ids, options, give_up, register);
        let mut accepted = match accepted {
            Ok(None) if !is_more && self.is_idle() => ids.check_sockets().map(|()| None),
            accepted => accepted,
        };
        if readiness.has_changed_since(key) {
            // This call may have registered after the change.
            self.deregister(ids, key);
        }
        if matches!(accepted, Ok(None)) {
            let failed = ids.event_loop().failed_since(failures);
            accepted = failed
                .map(|()| None)
                .map_err(|error| ids.attempt().fail(Stage::WaitForRequest, error));
        }
        let is_due = is_more || !matches!(accepted, Ok(None));
        if let Some(descriptor) = descriptor.filter(|_| is_due) {
            descriptor.set_ready();
        }
        Some(accepted)
    }

    /// The next stream, if there is one: handles what has come. `register` is called before, each
    /// time that there may be other handshakes.
    pub(super) fn take_next(
        &self,
        ids: &ListeningIds,
        options: &StreamOptions,
        give_up: GiveUp,
        register: impl Fn(),
    ) -> Result<Option<StreamHandle>> {
        loop {
            register();
            if let Some(stream) = self.take_stream(ids)? {
                return Ok(Some(stream));
            }
            self.give_up_on_silent_peers(ids, give_up);
            if let Some(stopped) = ids.stopped() {
                // Nobody would complete what was begun.
                self.give_up();
                ids.reject_requests();
                return Err(stopped);
            }
            let request = if self.is_full() {
                ids.failure_at_once().map_or(Ok(None), Err)
            } else {
                ids.take_request()
            };
            match request {
                Ok(Some(request)) => self.begin(ids, request, options)?,
                Ok(None) => return Ok(None),
                // Just now: the next turn gives the others up.
                Err(error) if error.is_stopped() => {}
                Err(error) => return Err(error),
            }
        }
    }
}
