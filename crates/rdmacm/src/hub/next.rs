//! Waiting for an id's next letter: the one thing everything else waits by.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use rdmacm_core::{Error, Result};

use super::{Hub, Leader, Letter, Mailbox};

/// The next letter in the mailbox, by `until`.
///
/// Dropping the future loses nothing: the letter stays for the next who asks,
/// and the turn goes to another who waits.
pub(crate) fn next<'a>(
    hub: &'a Arc<Hub>,
    mailbox: &'a Mailbox,
    until: Option<Instant>,
) -> Next<'a> {
    Next {
        hub,
        mailbox: Some(mailbox),
        until,
        key: None,
    }
}

/// Waits until a moment.
pub(crate) async fn sleep_until(hub: &Arc<Hub>, until: Instant) -> Result<()> {
    let sleep = Next {
        hub,
        mailbox: None,
        until: Some(until),
        key: None,
    };
    match sleep.await {
        Err(Error::DeadlinePassed) => Ok(()),
        other => other.map(|_| ()),
    }
}

#[derive(Debug)]
pub(crate) struct Next<'a> {
    hub: &'a Arc<Hub>,
    /// `None` for one who only waits for the time.
    mailbox: Option<&'a Mailbox>,
    until: Option<Instant>,
    key: Option<u64>,
}

impl Next<'_> {
    /// What there is to say now.
    fn look(&self) -> Option<Result<Letter>> {
        if let Some(letter) = self.mailbox.and_then(Mailbox::take) {
            return Some(Ok(letter));
        }
        if let Err(error) = self.hub.broken() {
            return Some(Err(error));
        }
        let passed = self.until.is_some_and(|until| until <= self.hub.now());
        passed.then_some(Err(Error::DeadlinePassed))
    }
}

impl Future for Next<'_> {
    type Output = Result<Letter>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.hub.take_turn();
        if let Some(outcome) = this.look() {
            return Poll::Ready(outcome);
        }
        let key = *this.key.get_or_insert_with(|| this.hub.key());
        if let Some(mailbox) = this.mailbox {
            mailbox.wait(key, context.waker());
        }
        this.hub.wait(key, this.until, context.waker());
        // From here on a wake-up is not missed; what came before is seen now.
        this.hub.arm();
        this.look().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Next<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            if let Some(mailbox) = self.mailbox {
                mailbox.leave(key);
            }
            self.hub.leave(key, self.until);
        }
    }
}

impl Hub {
    /// Puts one among those who wait.
    fn wait(&self, key: u64, until: Option<Instant>, waker: &std::task::Waker) {
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
