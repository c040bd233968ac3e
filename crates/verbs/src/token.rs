//! Tokens of objects.

/// Identifies an object in the events of its context; never reused in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u32);

impl Token {
    pub(crate) fn new(number: u32) -> Self {
        Self(number)
    }

    /// From the kernel's 64-bit handle; `None` if no object has it.
    pub(crate) fn from_handle(handle: u64) -> Option<Self> {
        handle.try_into().ok().map(Self)
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// The kernel's 64-bit handle.
    pub(crate) fn handle(self) -> u64 {
        self.0.into()
    }
}
