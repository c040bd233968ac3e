//! Whether an id waits for its peer's answer, or is about to.

use std::sync::atomic::{AtomicU8, Ordering};

/// A message to the peer needs an answer, which the caller has not read.
const UNANSWERED: u8 = 1;
/// A command that sends the peer a message is in flight.
const SENDING: u8 = 2;

/// Which messages to the peer are in flight.
///
/// The kernel would treat a command that answers the peer as a rejection while the id itself
/// waits for an answer, and forget what it waits for. Destroying the id would then take more
/// than a minute on RoCE, and crash the kernel on iWARP (a `BUG` of `iwcm.c`, Linux 7.3). So one
/// command at a time sends a message, and none while an answer is due.
#[derive(Debug, Default)]
pub(crate) struct Answering(AtomicU8);

impl Answering {
    /// Why no message may be sent now, if that is so.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        refusal(self.0.load(Ordering::Acquire))
    }

    /// Whether the caller has not read the answer to a message that was sent.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.0.load(Ordering::Acquire) == UNANSWERED
    }

    /// Begins a command that sends a message, which the peer answers or not.
    ///
    /// # Errors
    /// Why none may be sent now.
    pub(crate) fn begin(&self, is_answered: bool) -> Result<Sending<'_>, &'static str> {
        let new = SENDING | if is_answered { UNANSWERED } else { 0 };
        let begun = self
            .0
            .compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire);
        match begun {
            Ok(_) => Ok(Sending {
                answering: self,
                is_sent: false,
            }),
            Err(state) => Err(refusal(state).unwrap_or_default()),
        }
    }

    /// The answer has been read.
    pub(crate) fn set_answered(&self) {
        self.0.fetch_and(!UNANSWERED, Ordering::AcqRel);
    }
}

fn refusal(state: u8) -> Option<&'static str> {
    match state {
        0 => None,
        UNANSWERED => Some("the peer's answer has not been read yet"),
        _ => Some("another thread is connecting, accepting, rejecting or establishing"),
    }
}

/// A command that sends a message. Dropping it ends that; the message was not sent, unless
/// [`sent`](Self::sent) was called.
#[derive(Debug)]
#[must_use = "dropping it ends the command"]
pub(crate) struct Sending<'a> {
    answering: &'a Answering,
    is_sent: bool,
}

impl Sending<'_> {
    /// The message was sent. Its answer may have been read already.
    pub(crate) fn sent(mut self) {
        self.is_sent = true;
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let kept = if self.is_sent { UNANSWERED } else { 0 };
        self.answering.0.fetch_and(kept, Ordering::AcqRel);
    }
}
