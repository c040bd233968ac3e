//! The numbers by which events name their ids.

use std::sync::atomic::{AtomicU64, Ordering};

/// The `uid` of an id or a group in the kernel: never 0, because the kernel reports no
/// event for an id whose `uid` is 0, and never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Token(u64);

/// The only process-wide state: an id keeps its token when it migrates, so the tokens of
/// all channels must differ.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Token {
    /// A token that was never used in this process. The counter does not wrap in practice.
    pub(crate) fn new() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The token in an event, which may be unknown.
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
