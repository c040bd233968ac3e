//! A listener whose calls do not wait, and `poll(2)`.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use super::descriptor::Descriptor;
use super::handle::StreamHandle;
use super::options::StreamOptions;
use super::pending_handshakes::PendingHandshakes;
use crate::error::Result;
use crate::event_loop::EventLoop;
use crate::listen::ListeningIds;
use crate::stage::Stage;

/// A descriptor that is readable while accepting may return a stream, and the waiter in whose
/// place it is.
#[derive(Debug)]
pub(super) struct ListenerReadiness {
    /// Whether calls do not wait.
    is_used: AtomicBool,
    descriptor: Arc<Descriptor>,
    key: u64,
    waker: Waker,
}

/// Marks the descriptor, which ends with the listener: a [`StopHandle`](crate::StopHandle) may
/// keep the waker.
#[derive(Debug)]
struct DescriptorWaker(Weak<Descriptor>);

impl Wake for DescriptorWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(descriptor) = self.0.upgrade() {
            descriptor.set_mark();
        }
    }
}

impl ListenerReadiness {
    fn new(event_loop: &EventLoop) -> io::Result<Self> {
        let descriptor = Arc::new(Descriptor::new(event_loop)?);
        let waker = Arc::new(DescriptorWaker(Arc::downgrade(&descriptor)));
        Ok(Self {
            is_used: AtomicBool::new(false),
            descriptor,
            key: event_loop.new_key(),
            waker: Waker::from(waker),
        })
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
            readiness.is_used.store(is_nonblocking, Ordering::Release);
            if !is_nonblocking {
                // Whoever waits from now on is the one to wake.
                self.deregister(ids, readiness.key);
            }
        }
        Ok(())
    }

    /// A descriptor that is readable while something may have come for the listener.
    pub(crate) fn descriptor<'a>(&'a self, ids: &'a ListeningIds) -> BorrowedFd<'a> {
        match self.readiness.get() {
            Some(readiness) => readiness.descriptor.fd(),
            None => ids.event_loop().readiness(),
        }
    }

    /// Of a listener whose calls do not wait: the next stream if there is one. Otherwise the
    /// descriptor becomes readable when there may be one.
    pub(crate) fn accept_at_once(
        &self,
        ids: &ListeningIds,
        options: &StreamOptions,
    ) -> Option<Result<Option<StreamHandle>>> {
        let readiness = self.readiness.get()?;
        if !readiness.is_used.load(Ordering::Acquire) {
            return None;
        }
        let descriptor = &readiness.descriptor;
        descriptor.clear_mark();
        let failures = ids.event_loop().failures();
        ids.event_loop().run_once();
        let mut accepted = self.next_at_once(ids, options, readiness);
        if matches!(accepted, Ok(None)) {
            let failed = ids.event_loop().failed_since(failures);
            accepted = failed
                .map(|()| None)
                .map_err(|error| ids.attempt().fail(Stage::Accept, error));
        } else {
            // There may be more.
            descriptor.set_mark();
        }
        Some(accepted)
    }

    fn next_at_once(
        &self,
        ids: &ListeningIds,
        options: &StreamOptions,
        readiness: &ListenerReadiness,
    ) -> Result<Option<StreamHandle>> {
        loop {
            // Whatever comes from here on marks the descriptor; the look finds what came before.
            self.register(ids, readiness.key, &readiness.waker);
            self.give_up_on_silent_peers(ids);
            if let Some(stream) = self.take_stream()? {
                return Ok(Some(stream));
            }
            if self.is_full() {
                return ids.failure_at_once().map_or(Ok(None), Err);
            }
            match ids.take_request()? {
                Some(request) => self.begin(ids, request, options)?,
                None => return Ok(None),
            }
        }
    }
}
