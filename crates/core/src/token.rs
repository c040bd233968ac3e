//! The number by which the kernel names an id's owner in events.

use std::sync::atomic::{AtomicU64, Ordering};

/// What this process writes in the kernel's `uid`: never 0, because the kernel
/// reports no event for an id whose `uid` is 0, and never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Token(u64);

/// The one piece of process-wide state: an id keeps its token when it moves to
/// another channel, so tokens of all channels must differ.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Token {
    /// A token no id of this process has had. 2^64 of them outlast the machine.
    pub(crate) fn new() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The token in an event, whoever wrote it.
    pub(crate) fn from_kernel(uid: u64) -> Self {
        Self(uid)
    }

    /// The word to write into a request.
    pub(crate) fn uid(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_are_never_zero() {
        let (one, two) = (Token::new(), Token::new());
        assert_ne!(one, two);
        assert_ne!(one.uid(), 0);
        assert_eq!(Token::from_kernel(one.uid()), one);
    }
}
