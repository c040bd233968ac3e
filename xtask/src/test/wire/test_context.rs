//! What a test has of the pair of guests: its device, and waits for answers, events and
//! actions beside the other tests of its group.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::bail;

use crate::guest::WireEnd;

use super::group::GuestAction;
use super::guest_client::GuestClient;
use super::pair::Pair;
use super::soft_device::SoftDevice;

/// A pair of guests that all tests of a group share.
pub(super) struct SharedPair {
    pub(super) pair: RefCell<Pair>,
    /// How many actions of the group have been performed.
    performed: Cell<usize>,
    /// How many tests wait for the next one.
    waiting: Cell<usize>,
    /// The last number that [`SharedPair::unique_number`] returned.
    last_number: Cell<u16>,
}

impl SharedPair {
    pub(super) fn new(pair: Pair) -> Self {
        Self {
            pair: RefCell::new(pair),
            performed: Cell::new(0),
            waiting: Cell::new(0),
            last_number: Cell::new(20_000),
        }
    }

    /// Resets the counts for the next group.
    pub(super) fn start_group(&self) {
        self.performed.set(0);
        self.waiting.set(0);
    }

    /// How many tests wait for the next action.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.get()
    }

    /// Performs the next action, which ends the waits for it.
    pub(super) fn perform(&self, action: GuestAction) -> anyhow::Result<()> {
        let mut pair = self.pair.borrow_mut();
        match action {
            GuestAction::Freeze => pair.freeze()?,
            GuestAction::Resume => pair.resume()?,
            GuestAction::Kill => pair.kill(),
            GuestAction::Restart => pair.restart()?,
            GuestAction::AttachNetwork => pair.attach_network()?,
            GuestAction::None => {}
        }
        self.performed.set(self.performed.get() + 1);
        self.waiting.set(0);
        Ok(())
    }

    /// Receives answers and events of both guests for a short time.
    pub(super) fn receive(&self) -> anyhow::Result<()> {
        self.pair.borrow_mut().receive()
    }

    /// Shuts both guests down.
    pub(super) fn shut_down(self) -> anyhow::Result<()> {
        self.pair.into_inner().shut_down()
    }

    /// A number that no test has: for a uid, a port or a queue pair number.
    pub(super) fn unique_number(&self) -> u16 {
        self.last_number.set(self.last_number.get() + 1);
        self.last_number.get()
    }
}

/// The pair of guests and the device of one test.
#[derive(Clone, Copy)]
pub(super) struct TestContext<'s> {
    pub(super) shared: &'s SharedPair,
    pub(super) device: SoftDevice,
}

impl<'s> TestContext<'s> {
    /// The guest that keeps running.
    pub(super) const fn near(self) -> GuestClient<'s> {
        GuestClient::new(self, WireEnd::Near)
    }

    /// The guest that the actions are performed on.
    pub(super) const fn far(self) -> GuestClient<'s> {
        GuestClient::new(self, WireEnd::Far)
    }

    /// Waits for the next action of the group, which is performed when every unfinished test
    /// waits for it.
    pub(super) async fn wait_for_action(self) {
        let shared = self.shared;
        let before = shared.performed.get();
        shared.waiting.set(shared.waiting.get() + 1);
        poll_fn(|_| {
            if shared.performed.get() > before {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Lets time pass, for the device to report nothing.
    pub(super) async fn let_pass(self, time: Duration) {
        let end = Instant::now() + time;
        poll_fn(|_| {
            if Instant::now() < end {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }

    /// Waits until `find` returns a value, or fails after `timeout`.
    pub(super) async fn until<T>(
        self,
        timeout: Duration,
        what: &str,
        mut find: impl FnMut(&mut Pair) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let end = Instant::now() + timeout;
        let found = poll_fn(|_| match find(&mut self.shared.pair.borrow_mut()) {
            Ok(None) if Instant::now() < end => Poll::Pending,
            found => Poll::Ready(found),
        });
        match found.await? {
            Some(found) => Ok(found),
            None => bail!("{what} did not arrive within {} s", timeout.as_secs()),
        }
    }
}
