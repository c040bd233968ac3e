//! What has arrived, and what the peer may send.

use crate::announcement::{ANNOUNCEMENT_SIZE, Announcement};
use crate::byte_order::ByteOrder;
use crate::credits::Credits;
use crate::error::ProtocolError;
use crate::handshake::{Handshake, RemoteTable};
use crate::message::Message;
use crate::transport::Transport;

/// The receiving half of a stream.
///
/// The peer fills a ring of bytes, half after half. The first half is announced in the
/// [handshake](Self::announcement), the other one with the first update, and each one again
/// when all of its bytes were [consumed](Self::consume). A message returns its credit as
/// soon as it has arrived: it takes no memory here but that of its data.
#[derive(Clone, Debug)]
pub struct Receiver {
    transport: Transport,
    /// The ring in this side's memory.
    ring: Announcement,
    /// Bytes since the beginning of the stream.
    announced: u64,
    received: u64,
    consumed: u64,
    /// The peer's messages.
    credits: Credits,
    /// How many messages this side can receive without an update.
    window: u16,
    map_entries: u16,
    peer: Option<Peer>,
}

/// Where announcements go.
#[derive(Clone, Copy, Debug)]
struct Peer {
    table: RemoteTable,
    byte_order: ByteOrder,
    /// How many announcements were made, with the one in the handshake.
    announcements: u64,
}

/// An update for the peer: credits, and mostly an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// Where to write an announcement before the message: address, key, bytes.
    pub announcement: Option<(u64, u32, [u8; ANNOUNCEMENT_SIZE])>,
    /// The message.
    pub message: Message,
}

/// What a message was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Bytes that can be consumed now.
    Data(u32),
    /// An entry of this side's map table.
    Map(u32),
}

impl Receiver {
    /// A receiver with this ring, of which an even number of bytes is used, for this many
    /// messages between updates.
    #[must_use]
    pub fn new(transport: Transport, ring: Announcement, window: u16, map_entries: u16) -> Self {
        let ring = Announcement {
            length: ring.length & !1,
            ..ring
        };
        Self {
            transport,
            ring,
            announced: (ring.length / 2).into(),
            received: 0,
            consumed: 0,
            credits: Credits::new(window),
            window,
            map_entries,
            peer: None,
        }
    }

    /// The first half of the ring, for this side's handshake.
    #[must_use]
    pub fn announcement(&self) -> Announcement {
        Announcement {
            length: self.half(),
            ..self.ring
        }
    }

    /// The peer's handshake has arrived: updates may be sent from now on.
    pub fn connected(&mut self, peer: &Handshake) {
        self.peer = Some(Peer {
            table: peer.table,
            byte_order: peer.byte_order,
            announcements: 1,
        });
    }

    /// A data or map message has arrived.
    ///
    /// # Errors
    /// [`ProtocolError`], if the peer was not allowed to send it. What it says it has
    /// written has no meaning then.
    pub fn message(&mut self, message: Message) -> Result<Option<Received>, ProtocolError> {
        match message {
            Message::Data(length) => {
                self.check_data(length)?;
                self.use_credit()?;
                self.received += u64::from(length);
                Ok(Some(Received::Data(length)))
            }
            Message::Map(index) => {
                if index >= self.map_entries.into() {
                    let entries = self.map_entries;
                    return Err(ProtocolError::MapEntry { index, entries });
                }
                self.use_credit()?;
                Ok(Some(Received::Map(index)))
            }
            Message::Reserved(operation) => Err(ProtocolError::ReservedOperation(operation)),
            Message::Credits(_) | Message::Control(_) | Message::Ignored => Ok(None),
        }
    }

    fn check_data(&self, length: u32) -> Result<(), ProtocolError> {
        if length == 0 {
            return Err(ProtocolError::EmptyData);
        }
        let left = self.left();
        if length > left {
            return Err(ProtocolError::BeyondAnnouncement { length, left });
        }
        Ok(())
    }

    /// The bytes that are left in the entry that the peer is filling.
    fn left(&self) -> u32 {
        let half = u64::from(self.half());
        if half == 0 || self.received == self.announced {
            return 0;
        }
        // Less than a half, which is 32 bits.
        u32::try_from(half - self.received % half).unwrap_or(0)
    }

    fn use_credit(&mut self) -> Result<(), ProtocolError> {
        self.credits
            .take()
            .then_some(())
            .ok_or(ProtocolError::NoCredit)
    }

    /// How many bytes can be consumed.
    #[must_use]
    pub fn readable(&self) -> u32 {
        // No more than the ring.
        u32::try_from(self.received - self.consumed).unwrap_or(self.ring.length)
    }

    /// The offset in the ring of the next bytes, and how many of them follow it without
    /// wrapping around.
    #[must_use]
    pub fn next_bytes(&self) -> (u32, u32) {
        let size = u64::from(self.ring.length.max(1));
        let offset = u32::try_from(self.consumed % size).unwrap_or(0);
        (offset, self.readable().min(self.ring.length - offset))
    }

    /// The application has taken bytes, at most those that are [readable](Self::readable).
    pub fn consume(&mut self, bytes: u32) {
        self.consumed += u64::from(bytes.min(self.readable()));
    }

    /// Whether the peer should hear of free memory or of credits.
    #[must_use]
    pub fn is_update_due(&self) -> bool {
        self.peer.is_some() && (self.is_half_free() || self.are_credits_low())
    }

    /// How many send requests the update takes that is due.
    #[must_use]
    pub fn requests_per_update(&self) -> u32 {
        if self.is_half_free() {
            self.transport.requests_per_write()
        } else {
            1
        }
    }

    /// The update that is due, which the caller posts.
    pub fn update(&mut self) -> Option<Update> {
        if !self.is_update_due() {
            return None;
        }
        let is_half_free = self.is_half_free();
        let half = self.half();
        let peer = self.peer.as_mut()?;
        let announcement = is_half_free.then(|| {
            let is_second = (self.announced / u64::from(half)) % 2 == 1;
            let offset = if is_second { half } else { 0 };
            let announcement = Announcement {
                address: self.ring.address.wrapping_add(offset.into()),
                key: self.ring.key,
                length: half,
            };
            let address = peer.table.entry_address(peer.announcements);
            peer.announcements += 1;
            self.announced += u64::from(half);
            let bytes = announcement.to_bytes(peer.byte_order);
            (address, peer.table.key, bytes)
        });
        let limit = self.credits.refill(self.window);
        Some(Update {
            announcement,
            message: Message::Credits(limit),
        })
    }

    /// Whether the half that is announced next was consumed.
    fn is_half_free(&self) -> bool {
        let half = u64::from(self.half());
        half > 0 && self.announced - self.consumed <= half
    }

    /// Whether half of the messages were used up. A window of one must be given back at
    /// once.
    fn are_credits_low(&self) -> bool {
        self.credits.left() <= self.window / 2 && self.window > 0
    }

    fn half(&self) -> u32 {
        self.ring.length / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: Announcement = Announcement {
        address: 0x1000,
        key: 5,
        length: 101,
    };
    const PEER: Handshake = Handshake {
        byte_order: ByteOrder::Big,
        credits: 10,
        map_entries: 0,
        table: RemoteTable {
            address: 0x9000,
            key: 6,
            entries: 3,
        },
        announcement: RING,
    };

    fn receiver() -> Receiver {
        Receiver::new(Transport::Immediate, RING, 4, 2)
    }

    #[test]
    fn halves_are_announced_in_turn_at_entries_in_turn() {
        let mut receiver = receiver();
        assert_eq!(receiver.announcement().length, 50);
        assert_eq!(receiver.update(), None, "the peer's table is not known yet");
        receiver.connected(&PEER);
        let mut announce = || {
            let update = receiver.update().unwrap();
            let (address, key, bytes) = update.announcement.unwrap();
            let announcement = Announcement::from_bytes(bytes, ByteOrder::Big);
            assert_eq!((key, announcement.key, announcement.length), (6, 5, 50));
            assert_eq!(receiver.update(), None);
            receiver.message(Message::Data(50)).unwrap();
            receiver.consume(50);
            (address, announcement.address)
        };
        let announced = [(); 4].map(|()| announce());
        let expected = [
            (0x9010, 0x1032),
            (0x9020, 0x1000),
            (0x9000, 0x1032),
            (0x9010, 0x1000),
        ];
        assert_eq!(announced, expected);
    }

    #[test]
    fn a_write_ends_within_its_announcement() {
        let mut receiver = receiver();
        let error = |length, left| Err(ProtocolError::BeyondAnnouncement { length, left });
        assert_eq!(receiver.message(Message::Data(51)), error(51, 50));
        receiver.message(Message::Data(49)).unwrap();
        assert_eq!(receiver.message(Message::Data(2)), error(2, 1));
        receiver.message(Message::Data(1)).unwrap();
        // The second half is not announced yet.
        assert_eq!(receiver.message(Message::Data(1)), error(1, 0));
        assert_eq!(receiver.readable(), 50);
    }

    #[test]
    fn what_the_protocol_does_not_allow_is_an_error_and_changes_nothing() {
        let mut receiver = receiver();
        let mut refused = |message| receiver.message(message).unwrap_err();
        assert_eq!(refused(Message::Data(0)), ProtocolError::EmptyData);
        assert_eq!(
            refused(Message::Reserved(3)),
            ProtocolError::ReservedOperation(3)
        );
        let (index, entries) = (2, 2);
        assert_eq!(
            refused(Message::Map(2)),
            ProtocolError::MapEntry { index, entries }
        );
        assert_eq!(receiver.readable(), 0);
        assert_eq!(receiver.credits.left(), 4);
    }

    #[test]
    fn a_message_needs_a_credit_and_returns_it_when_it_arrives() {
        let mut receiver = receiver();
        for _ in 0..4 {
            receiver.message(Message::Data(1)).unwrap();
        }
        assert_eq!(
            receiver.message(Message::Data(1)),
            Err(ProtocolError::NoCredit)
        );
        receiver.connected(&PEER);
        // The announcement of the second half returns the credits too.
        let update = receiver.update().unwrap();
        assert!(update.announcement.is_some());
        assert_eq!(update.message, Message::Credits(8));
        for _ in 0..2 {
            assert!(!receiver.is_update_due());
            receiver.message(Message::Map(1)).unwrap();
        }
        let update = receiver.update().unwrap();
        assert_eq!(update.announcement, None);
        assert_eq!(update.message, Message::Credits(10));
    }

    #[test]
    fn an_empty_ring_receives_nothing() {
        let ring = Announcement { length: 1, ..RING };
        let mut receiver = Receiver::new(Transport::Send, ring, 1, 0);
        receiver.connected(&PEER);
        assert!(!receiver.is_update_due());
        let refused = receiver.message(Message::Data(1));
        let (length, left) = (1, 0);
        assert_eq!(
            refused,
            Err(ProtocolError::BeyondAnnouncement { length, left })
        );
        assert_eq!(receiver.next_bytes(), (0, 0));
    }
}
