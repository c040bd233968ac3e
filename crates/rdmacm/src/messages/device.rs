//! Devices that are open for messages.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rdmacm_core::DeviceId;
use rdmacm_verbs::{CompletionChannel, Context, Result, Token};

use super::traffic::Traffic;

/// How many queues that tell are looked at in one turn.
const SHARE: usize = 32;

/// What a look at a device's channel came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// There may be more.
    InPart,
    /// There is nothing for now.
    Wholly,
    /// The device has gone.
    ForGood,
}

/// A device and the one channel on which all that is open on it tells of
/// completions. It is closed with the last connection that uses it.
#[derive(Debug)]
pub(crate) struct OpenDevice {
    id: DeviceId,
    context: Context,
    channel: CompletionChannel,
    traffics: Mutex<HashMap<Token, Weak<Traffic>>>,
}

impl OpenDevice {
    pub(crate) fn open(id: DeviceId) -> Result<Arc<Self>> {
        let context = Context::open_by_id(id)?;
        Ok(Arc::new(Self {
            id,
            channel: context.create_completion_channel()?,
            context,
            traffics: Mutex::default(),
        }))
    }

    pub(crate) fn id(&self) -> DeviceId {
        self.id
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn channel(&self) -> &CompletionChannel {
        &self.channel
    }

    /// Lets it go, under all who use it.
    pub(crate) fn close(&self) {
        self.context.close();
    }

    /// The same where it has been removed.
    pub(crate) fn heed_removal(&self) {
        self.context.heed_removal();
    }

    /// Whether it was removed, or its context closed.
    pub(crate) fn is_gone(&self) -> bool {
        self.context.is_gone()
    }

    pub(super) fn admit(&self, token: Token, traffic: &Arc<Traffic>) {
        self.traffics().insert(token, Arc::downgrade(traffic));
    }

    pub(super) fn dismiss(&self, token: Token) {
        self.traffics().remove(&token);
    }

    /// Hands out what there is, up to a turn's share: peers that never cease to send
    /// make queues tell as fast as they are looked at. The device's removal is heard
    /// of here.
    pub(crate) fn drain(&self) -> Drained {
        let take = || self.channel.take().ok().flatten();
        let notify = |token| {
            let traffic = self.traffics().get(&token).and_then(Weak::upgrade);
            if let Some(traffic) = traffic {
                traffic.notified();
            }
        };
        if hand_out_a_share(take, notify) {
            Drained::InPart
        } else {
            self.drained()
        }
    }

    fn drained(&self) -> Drained {
        if !self.is_gone() {
            return Drained::Wholly;
        }
        let traffics: Vec<_> = self.traffics().values().filter_map(Weak::upgrade).collect();
        for traffic in traffics {
            traffic.pump();
        }
        Drained::ForGood
    }

    fn traffics(&self) -> MutexGuard<'_, HashMap<Token, Weak<Traffic>>> {
        self.traffics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there may be more.
fn hand_out_a_share<T>(mut take: impl FnMut() -> Option<T>, mut hand_out: impl FnMut(T)) -> bool {
    for _ in 0..SHARE {
        match take() {
            Some(one) => hand_out(one),
            None => return false,
        }
    }
    true
}

impl AsFd for OpenDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As of queues that tell again as soon as they are looked at.
    #[test]
    fn a_turn_ends_though_there_is_more() {
        let mut queues = 0..10_000;
        let mut told = Vec::new();
        assert!(hand_out_a_share(|| queues.next(), |queue| told.push(queue)));
        assert!(told.into_iter().eq(0..SHARE));
    }

    #[test]
    fn a_turn_ends_with_what_there_is() {
        let mut queues = 0..3;
        let mut told = Vec::new();
        assert!(!hand_out_a_share(
            || queues.next(),
            |queue| told.push(queue)
        ));
        assert_eq!(told, [0, 1, 2]);
    }
}
