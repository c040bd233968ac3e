//! What events call an object.

/// What events of a context call an object of it: never used twice in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u32);

impl Token {
    pub(crate) fn new(number: u32) -> Self {
        Self(number)
    }

    /// As the kernel told it; `None` for what no object is called.
    pub(crate) fn told(handle: u64) -> Option<Self> {
        handle.try_into().ok().map(Self)
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// As the kernel is told it.
    pub(crate) fn handle(self) -> u64 {
        self.0.into()
    }
}
