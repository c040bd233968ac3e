//! Tokens of objects.

/// Identifies an object in the events of its context; never reused in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u64);

impl Token {
    pub(crate) fn new(number: u64) -> Self {
        Self(number)
    }

    /// What the kernel's events name it by.
    pub(crate) fn handle(self) -> u64 {
        self.0
    }
}
