//! What became of a message that does not wait.

/// What `try_send` of a [`Connection`](crate::Connection) has done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "without a free send request the message is not sent"]
pub enum TrySent {
    /// It is sent.
    Sent,
    /// No send request is free now: nothing was done.
    Full,
}

impl TrySent {
    /// Whether the message is sent.
    #[must_use]
    pub fn is_sent(self) -> bool {
        self == Self::Sent
    }
}
