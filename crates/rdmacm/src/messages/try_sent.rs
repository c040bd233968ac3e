//! What became of a message that does not wait for room.

/// What `try_send` of a [`Connection`](crate::Connection) has done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a message for which there is no room is not sent"]
pub enum TrySent {
    /// It is sent.
    Sent,
    /// There is no room for it now: nothing was done.
    NoRoom,
}

impl TrySent {
    /// Whether the message is sent.
    #[must_use]
    pub fn is_sent(self) -> bool {
        self == Self::Sent
    }
}
