//! Completion queues that are waited for by hand.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use nix::errno::Errno;
use nix::sys::epoll::Epoll;
use rdmacm_verbs::CompletionChannel;

use super::sources::readable;

/// The channels of queues, each watched for as long as somebody waits.
#[derive(Debug, Default)]
pub(super) struct Queues(Mutex<Vec<Awaited>>);

/// A channel that has one queue, and who waits for that.
#[derive(Debug)]
struct Awaited {
    channel: CompletionChannel,
    waiters: BTreeMap<u64, Waker>,
}

impl Awaited {
    fn is(&self, channel: &CompletionChannel) -> bool {
        // Both are open, so they are the same if their descriptors are.
        self.channel.as_fd().as_raw_fd() == channel.as_fd().as_raw_fd()
    }

    /// Whether the queue has told of something, or never will again.
    fn has_told(&self) -> Told {
        let mut told = Told::Nothing;
        loop {
            match self.channel.take() {
                Ok(Some(_)) => told = Told::Something,
                Ok(None) => return told,
                Err(_) => return Told::Over,
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    Something,
    /// Its descriptor would be readable for good.
    Over,
}

impl Queues {
    pub(super) fn is_empty(&self) -> bool {
        self.awaited().is_empty()
    }

    /// Puts one among those who wait. Whether this is the first queue.
    pub(super) fn join(
        &self,
        epoll: &Epoll,
        channel: &CompletionChannel,
        key: u64,
        waker: &Waker,
    ) -> Result<bool, Errno> {
        let mut awaited = self.awaited();
        if let Some(one) = awaited.iter_mut().find(|one| one.is(channel)) {
            let former = one.waiters.insert(key, waker.clone());
            drop(awaited);
            // Not under the lock: the last to know a task ends it.
            drop(former);
            return Ok(false);
        }
        epoll.add(channel, readable())?;
        awaited.push(Awaited {
            channel: channel.clone(),
            waiters: BTreeMap::from([(key, waker.clone())]),
        });
        Ok(awaited.len() == 1)
    }

    pub(super) fn leave(&self, epoll: &Epoll, channel: &CompletionChannel, key: u64) {
        let mut awaited = self.awaited();
        let Some(place) = awaited.iter().position(|one| one.is(channel)) else {
            return;
        };
        let Some(one) = awaited.get_mut(place) else {
            return;
        };
        let former = one.waiters.remove(&key);
        let nobodys = one.waiters.is_empty().then(|| {
            let _ = epoll.delete(channel);
            awaited.swap_remove(place)
        });
        drop(awaited);
        drop((former, nobodys));
    }

    /// Wakes all who wait for a queue that has told of something: each looks, and who
    /// finds nothing waits again.
    pub(super) fn drain(&self, epoll: &Epoll) {
        let mut wakers = Vec::new();
        let mut over = Vec::new();
        let mut awaited = self.awaited();
        awaited.retain_mut(|one| {
            let told = one.has_told();
            if told != Told::Nothing {
                wakers.extend(one.waiters.values().cloned());
            }
            if told == Told::Over {
                let _ = epoll.delete(&one.channel);
                over.push((one.channel.clone(), std::mem::take(&mut one.waiters)));
            }
            told != Told::Over
        });
        drop(awaited);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn awaited(&self) -> MutexGuard<'_, Vec<Awaited>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
