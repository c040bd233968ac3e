//! Which directions of a stream are open.

use crate::message::Control;

/// What to shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// No more data is read.
    Read,
    /// No more data is sent.
    Write,
    /// Neither.
    Both,
}

/// The open directions of a stream, and which message closes them.
///
/// A side that closes its sending direction tells the peer with [`Control::Shutdown`]; one
/// that closes both, with [`Control::Disconnect`]. Closing only the receiving direction
/// sends nothing to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "any of them may change without the others"
)]
pub struct Shutdown {
    can_read: bool,
    can_write: bool,
    /// The peer closed its sending direction.
    peer_finished: bool,
    /// The peer closed both directions.
    peer_disconnected: bool,
    told_disconnect: bool,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            can_read: true,
            can_write: true,
            peer_finished: false,
            peer_disconnected: false,
            told_disconnect: false,
        }
    }
}

impl Shutdown {
    /// Both directions are open.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// This side closes one direction or both. Returns the message for the peer.
    pub fn close(&mut self, how: How) -> Option<Control> {
        let could_write = self.can_write;
        self.can_read &= how == How::Write;
        self.can_write &= how == How::Read;
        self.message(could_write)
    }

    fn message(&mut self, could_write: bool) -> Option<Control> {
        if self.told_disconnect || self.peer_disconnected || self.can_write {
            return None;
        }
        if self.can_read && !self.peer_finished {
            return could_write.then_some(Control::Shutdown);
        }
        self.told_disconnect = true;
        Some(Control::Disconnect)
    }

    /// A control message of the peer has arrived. Data that arrived before can still be
    /// read.
    pub fn receive(&mut self, control: Control) {
        self.peer_finished = true;
        self.peer_disconnected |= control == Control::Disconnect;
        self.can_write &= !self.peer_disconnected;
    }

    /// Whether neither side has closed a direction.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.can_read && self.can_write && !self.peer_finished
    }

    /// Whether data may be sent.
    #[must_use]
    pub fn can_write(&self) -> bool {
        self.can_write
    }

    /// Whether the application may read what has arrived.
    #[must_use]
    pub fn can_read(&self) -> bool {
        self.can_read
    }

    /// Whether the peer sends no more data.
    #[must_use]
    pub fn peer_finished(&self) -> bool {
        self.peer_finished
    }

    /// Whether the peer closed both directions: nothing that is sent now is read.
    #[must_use]
    pub fn peer_disconnected(&self) -> bool {
        self.peer_disconnected
    }

    /// Whether both sides have closed what they send, or one of them everything: the
    /// connection can be torn down.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.peer_disconnected || self.told_disconnect || !self.can_write && self.peer_finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_one_direction_after_the_other_disconnects_with_the_second() {
        let mut shutdown = Shutdown::new();
        assert_eq!(shutdown.close(How::Write), Some(Control::Shutdown));
        assert!(!shutdown.can_write() && shutdown.can_read() && !shutdown.is_over());
        assert_eq!(shutdown.close(How::Read), Some(Control::Disconnect));
        assert!(shutdown.is_over());
        assert_eq!(shutdown.close(How::Both), None);
    }

    #[test]
    fn closing_the_receiving_direction_sends_nothing() {
        let mut shutdown = Shutdown::new();
        assert_eq!(shutdown.close(How::Read), None);
        assert!(shutdown.can_write() && !shutdown.can_read());
        assert_eq!(shutdown.close(How::Write), Some(Control::Disconnect));
    }

    #[test]
    fn the_same_direction_is_closed_once() {
        let mut shutdown = Shutdown::new();
        assert_eq!(shutdown.close(How::Write), Some(Control::Shutdown));
        assert_eq!(shutdown.close(How::Write), None);
    }

    #[test]
    fn closing_after_the_peers_end_disconnects() {
        let mut shutdown = Shutdown::new();
        shutdown.receive(Control::Shutdown);
        assert!(shutdown.peer_finished() && shutdown.can_write() && !shutdown.is_over());
        assert_eq!(shutdown.close(How::Write), Some(Control::Disconnect));
    }

    #[test]
    fn ends_that_cross_are_enough() {
        let mut shutdown = Shutdown::new();
        assert_eq!(shutdown.close(How::Write), Some(Control::Shutdown));
        shutdown.receive(Control::Shutdown);
        assert!(shutdown.is_over() && !shutdown.peer_disconnected());
    }

    #[test]
    fn after_the_peers_disconnect_nothing_is_sent() {
        let mut shutdown = Shutdown::new();
        shutdown.receive(Control::Disconnect);
        assert!(shutdown.is_over() && !shutdown.can_write() && shutdown.can_read());
        assert_eq!(shutdown.close(How::Both), None);
    }
}
