//! Waiting for what comes to a place: the one thing everything else waits by.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rdmacm_core::{Error, Result};

use super::{Hub, Leader};

/// Where something comes that is waited for, as an id's letters to its mailbox.
pub(crate) trait Place {
    /// What comes.
    type Item;

    /// Takes what there is.
    fn take(&mut self) -> Option<Self::Item>;

    /// Puts one among those who are woken when something comes.
    fn wait(&mut self, key: u64, waker: &Waker);

    /// One who waited does so no more; what it was woken for is the next one's.
    fn leave(&mut self, key: u64);
}

impl<P: Place> Place for &mut P {
    type Item = P::Item;

    fn take(&mut self) -> Option<P::Item> {
        P::take(self)
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        P::wait(self, key, waker);
    }

    fn leave(&mut self, key: u64) {
        P::leave(self, key);
    }
}

/// The next thing that comes to the place, by `until`.
///
/// Dropping the future loses nothing: what came stays for the next who asks,
/// and the turn goes to another who waits.
pub(crate) fn next<P: Place + Unpin>(
    hub: &Arc<Hub>,
    place: P,
    until: Option<Instant>,
) -> Next<'_, P> {
    Next {
        hub,
        place,
        until,
        key: None,
        failures: hub.failures(),
    }
}

/// Waits until a moment.
pub(crate) async fn sleep_until(hub: &Arc<Hub>, until: Instant) -> Result<()> {
    match next(hub, Nowhere, Some(until)).await {
        Err(Error::DeadlinePassed) => Ok(()),
        other => other.map(drop),
    }
}

/// Where nothing comes, for one who only waits for the time.
struct Nowhere;

impl Place for Nowhere {
    type Item = Infallible;

    fn take(&mut self) -> Option<Infallible> {
        None
    }

    fn wait(&mut self, _: u64, _: &Waker) {}

    fn leave(&mut self, _: u64) {}
}

#[derive(Debug)]
pub(crate) struct Next<'a, P: Place> {
    hub: &'a Arc<Hub>,
    place: P,
    until: Option<Instant>,
    key: Option<u64>,
    /// How many there had been when this began.
    failures: u64,
}

impl<P: Place> Next<'_, P> {
    /// What there is to say now.
    fn look(&mut self) -> Option<Result<P::Item>> {
        if let Some(item) = self.place.take() {
            return Some(Ok(item));
        }
        if let Err(error) = self.hub.failed_since(self.failures) {
            return Some(Err(error));
        }
        let passed = self.until.is_some_and(|until| until <= self.hub.now());
        passed.then_some(Err(Error::DeadlinePassed))
    }
}

impl<P: Place + Unpin> Future for Next<'_, P> {
    type Output = Result<P::Item>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.hub.take_turn();
        if let Some(outcome) = this.look() {
            return Poll::Ready(outcome);
        }
        let key = *this.key.get_or_insert_with(|| this.hub.key());
        this.place.wait(key, context.waker());
        this.hub.wait(key, this.until, context.waker());
        // From here on a wake-up is not missed; what came before is seen now.
        this.hub.arm();
        this.look().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<P: Place> Drop for Next<'_, P> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.place.leave(key);
            self.hub.leave(key, self.until);
        }
    }
}

impl Hub {
    /// Puts one among those who wait.
    fn wait(&self, key: u64, until: Option<Instant>, waker: &Waker) {
        let mut state = self.state();
        let former = state.waiters.insert(key, waker.clone());
        let Some(at) = until else {
            drop(state);
            // Not under the lock: the last to know a task ends it.
            drop(former);
            return;
        };
        let first = state.timers.first_key_value().map(|((at, _), _)| *at);
        let former = (former, state.timers.insert((at, key), waker.clone()));
        let sooner = first.is_none_or(|first| at < first);
        let oversleeps = sooner && state.leader == Leader::Asleep;
        drop(state);
        drop(former);
        if oversleeps {
            self.channel.waker().wake();
        }
    }
}
