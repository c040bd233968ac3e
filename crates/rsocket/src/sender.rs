//! What may be sent, and where it goes.

use crate::announcement::Announcement;
use crate::byte_order::ByteOrder;
use crate::credits::Credits;
use crate::error::ProtocolError;
use crate::handshake::{Handshake, RemoteTable, TABLE_ENTRIES};
use crate::map_entry::{MAP_ENTRY_SIZE, MapEntry};
use crate::message::{MAX_DATA, Message};
use crate::transport::Transport;

const MAP_ENTRY_LENGTH: u32 = 24;
const _: () = assert!(MAP_ENTRY_LENGTH as usize == MAP_ENTRY_SIZE);

/// The table of this side, into which the peer writes announcements.
pub trait AnnouncementTable {
    /// Reads an entry. If its length is not 0, empties it: sets its length to 0. An entry of another
    /// length than `expected`, if that is given, stays as it is and counts as empty.
    ///
    /// The peer may write an entry only after all bytes of the entry before it in the same place
    /// have arrived, so it does not write a full one at the same time unless it violates the
    /// protocol; whatever is read then is an address in the peer's own memory. It may be
    /// writing an empty one, which must not be written here, or its announcement is lost.
    fn take(&mut self, index: usize, expected: Option<u32>) -> Announcement;
}

/// A write into the peer's memory, and the message that reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The peer's address.
    pub address: u64,
    /// The peer's remote key.
    pub key: u32,
    /// The number of bytes.
    pub length: u32,
    /// The message.
    pub message: Message,
}

/// The sending half of a stream.
///
/// A write needs a credit, memory that the peer has announced, and room in the send queue.
/// It ends at the end of an entry.
#[derive(Clone, Debug)]
pub struct Sender {
    transport: Transport,
    credits: Credits,
    /// Announcements that were taken out of the table; the current one is the first to be
    /// filled.
    entries: [Announcement; TABLE_ENTRIES as usize],
    /// The index of the current one.
    current: usize,
    /// Where the peer writes its next announcement.
    next: usize,
    /// The length of each announcement, if the first one has one.
    announced: Option<u32>,
    /// How many more send requests fit.
    requests: u32,
    /// The peer's table of maps: where to write an entry, and how many it has.
    table: RemoteTable,
    map_entries: u16,
    byte_order: ByteOrder,
}

impl Sender {
    /// A sender to the peer with this handshake, with a send queue that has room for this
    /// many data requests: those for [updates](crate::Receiver) and controls come on top.
    #[must_use]
    pub fn new(transport: Transport, peer: &Handshake, requests: u32) -> Self {
        let mut entries = [Announcement::default(); TABLE_ENTRIES as usize];
        if let Some(first) = entries.first_mut() {
            *first = peer.announcement;
        }
        Self {
            transport,
            credits: Credits::with_reserve(peer.credits, reserve(peer.credits)),
            entries,
            current: usize::from(peer.announcement.length == 0),
            // The first one was in the handshake.
            next: 1,
            announced: Some(peer.announcement.length).filter(|length| *length > 0),
            requests,
            table: peer.table,
            map_entries: peer.map_entries,
            byte_order: peer.byte_order,
        }
    }

    /// How many bytes the next write may have: 0 if one must wait.
    #[must_use]
    pub fn writable(&self) -> u32 {
        if self.credits.left() == 0 || self.requests < self.transport.requests_per_write() {
            return 0;
        }
        self.current_entry().length.min(MAX_DATA)
    }

    /// Whether a write must wait for a message of the peer: for a credit, or for announced memory.
    #[must_use]
    pub fn waits_for_peer(&self) -> bool {
        self.credits.left() == 0 || self.current_entry().length == 0
    }

    /// How many writes may follow each other before a completion or an update from the
    /// peer, if the announced memory suffices.
    #[must_use]
    pub fn writes_left(&self) -> u32 {
        let requests = self.requests / self.transport.requests_per_write();
        requests.min(self.credits.left().into())
    }

    /// Takes announced memory for at most this many bytes, one credit and room in the send
    /// queue. The caller posts the write, and the message with or after it.
    pub fn write(&mut self, bytes: u32) -> Option<Write> {
        let length = bytes.min(self.writable());
        if length == 0 || !self.credits.take() {
            return None;
        }
        self.requests -= self.transport.requests_per_write();
        let entry = self.entries.get_mut(self.current)?;
        let write = Write {
            address: entry.address,
            key: entry.key,
            length,
            message: Message::Data(length),
        };
        entry.address = entry.address.wrapping_add(length.into());
        entry.length -= length;
        if entry.length == 0 {
            self.current = next(self.current);
        }
        Some(write)
    }

    /// Takes one credit and room in the send queue to write an entry of the peer's map table,
    /// and returns the entry as the peer reads it; `None` if that must wait, or if the peer has
    /// no such entry.
    pub fn write_map_entry(
        &mut self,
        index: u16,
        entry: MapEntry,
    ) -> Option<(Write, [u8; MAP_ENTRY_SIZE])> {
        let requests = self.transport.requests_per_write();
        if index >= self.map_entries || self.requests < requests || !self.credits.take() {
            return None;
        }
        self.requests -= requests;
        let write = Write {
            address: self.table.map_entry_address(index),
            key: self.table.key,
            length: MAP_ENTRY_LENGTH,
            message: Message::Map(index.into()),
        };
        Some((write, entry.to_bytes(self.byte_order)))
    }

    /// Takes room in the send queue for one request that no message reports, such as a
    /// write into a mapped region.
    #[must_use]
    pub fn take_request(&mut self) -> bool {
        let has_room = self.has_request();
        self.requests -= u32::from(has_room);
        has_room
    }

    /// Whether there is room in the send queue for one request.
    #[must_use]
    pub fn has_request(&self) -> bool {
        self.requests > 0
    }

    /// Requests have completed.
    pub fn completed(&mut self, requests: u32) {
        self.requests = self.requests.saturating_add(requests);
    }

    /// [`Message::Credits`] has arrived. Takes the announcement that the peer has written
    /// before it, and no other: that of a later message may be half written.
    ///
    /// `may_announce` is whether there may be one. With immediate data, a message without an
    /// announcement is a write of no bytes. A message on iWARP does not tell, so there an announcement
    /// counts only with the length of the first one: a device places the bytes of a write as they
    /// arrive, and the length may be half written.
    ///
    /// # Errors
    /// [`ProtocolError::TooManyCredits`]: more are left than the handshake gave.
    pub fn updated(
        &mut self,
        limit: u16,
        may_announce: bool,
        table: &mut impl AnnouncementTable,
    ) -> Result<(), ProtocolError> {
        if !self.credits.set_limit(limit) {
            return Err(ProtocolError::TooManyCredits);
        }
        let Some(entry) = self.entries.get_mut(self.next) else {
            return Ok(());
        };
        if may_announce && entry.length == 0 {
            // An entry that wraps around names memory of the peer that does not exist; the
            // peer's device refuses such a write.
            let is_certain = self.transport == Transport::Immediate;
            let expected = self.announced.filter(|_| !is_certain);
            *entry = table.take(self.next, expected);
            if entry.length != 0 {
                self.next = next(self.next);
            }
        }
        Ok(())
    }

    /// The number of entries of the peer's map table.
    #[must_use]
    pub fn map_entries(&self) -> u16 {
        self.map_entries
    }

    fn current_entry(&self) -> Announcement {
        self.entries.get(self.current).copied().unwrap_or_default()
    }
}

/// How many credits are left unused, so that updates and controls, which need none, find a
/// receive request of the peer: librdmacm posts no more requests than it gives credits. Without
/// one, a peer on RoCE refuses the message, which is sent again after up to 655 ms; one on iWARP
/// closes the connection.
///
/// Until the peer handles what it has received, it causes four updates at most: it fills both
/// halves of the ring, and uses up its credits. Two controls may follow. A peer gives credits
/// back once half of them were used.
fn reserve(credits: u16) -> u16 {
    (credits / 4).min(6)
}

fn next(index: usize) -> usize {
    (index + 1) % TABLE_ENTRIES as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Announcement = Announcement {
        address: 0x1000,
        key: 5,
        length: 10,
    };
    const PEER: Handshake = Handshake {
        byte_order: ByteOrder::Little,
        credits: 3,
        map_entries: 2,
        table: RemoteTable {
            address: 0x9000,
            key: 6,
            entries: 2,
        },
        announcement: FIRST,
    };

    struct Table([Announcement; 2]);

    impl AnnouncementTable for Table {
        fn take(&mut self, index: usize, expected: Option<u32>) -> Announcement {
            let entry = &mut self.0[index];
            if expected.is_some_and(|expected| expected != entry.length) {
                return Announcement::default();
            }
            std::mem::take(entry)
        }
    }

    fn sender() -> Sender {
        Sender::new(Transport::Immediate, &PEER, 8)
    }

    #[test]
    fn writes_follow_each_other_until_the_entry_is_full() {
        let mut sender = sender();
        let write = sender.write(4).unwrap();
        assert_eq!((write.address, write.key, write.length), (0x1000, 5, 4));
        assert_eq!(write.message, Message::Data(4));
        let write = sender.write(100).unwrap();
        assert_eq!((write.address, write.length), (0x1004, 6));
        assert_eq!((sender.writable(), sender.write(1)), (0, None));
        assert!(sender.waits_for_peer());
        let second = Announcement {
            address: 0x2000,
            ..FIRST
        };
        let mut table = Table([Announcement::default(), second]);
        sender.updated(4, true, &mut table).unwrap();
        assert_eq!(sender.write(1).unwrap().address, 0x2000);
        assert_eq!(
            table.0,
            [Announcement::default(); 2],
            "entries are taken once"
        );
    }

    #[test]
    fn an_entry_is_not_taken_while_the_one_before_it_in_its_place_has_room() {
        let mut sender = sender();
        let other = Announcement {
            address: 0x2000,
            ..FIRST
        };
        let mut table = Table([other; 2]);
        sender.updated(3, true, &mut table).unwrap();
        assert_eq!(table.0, [other, Announcement::default()]);
        assert_eq!(sender.write(10).unwrap().address, 0x1000);
        assert_eq!(sender.write(10).unwrap().address, 0x2000);
        assert_eq!(sender.write(10), None);
    }

    #[test]
    fn a_message_takes_the_announcement_before_it_and_no_other() {
        let mut sender = sender();
        sender.write(10).unwrap();
        let at = |address| Announcement { address, ..FIRST };
        let mut table = Table([at(0x3000), at(0x2000)]);
        sender.updated(4, true, &mut table).unwrap();
        assert_eq!(table.0, [at(0x3000), Announcement::default()]);
        assert_eq!(sender.write(10).unwrap().address, 0x2000);
        assert_eq!(sender.write(10), None, "the other message has not arrived");
        sender.updated(4, true, &mut table).unwrap();
        assert_eq!(sender.write(10).unwrap().address, 0x3000);
    }

    #[test]
    fn a_half_written_announcement_stays_in_the_table() {
        let mut sender = Sender::new(Transport::Send, &PEER, 8);
        sender.write(10).unwrap();
        let half_written = Announcement {
            address: 0x2000,
            length: 2,
            ..FIRST
        };
        let mut table = Table([Announcement::default(), half_written]);
        sender.updated(4, true, &mut table).unwrap();
        assert_eq!((sender.writable(), table.0[1]), (0, half_written));
        table.0[1].length = 10;
        sender.updated(4, true, &mut table).unwrap();
        assert_eq!(sender.write(10).unwrap().address, 0x2000);
    }

    #[test]
    fn a_message_that_announces_nothing_leaves_the_table() {
        let mut sender = sender();
        sender.write(10).unwrap();
        let mut table = Table([FIRST; 2]);
        sender.updated(4, false, &mut table).unwrap();
        assert_eq!(table.0, [FIRST; 2]);
        assert_eq!(sender.writable(), 0);
        // Announced later than its message on iWARP, as far as that tells.
        sender
            .updated(4, true, &mut Table(Default::default()))
            .unwrap();
        assert_eq!(sender.writable(), 0);
        sender.updated(4, true, &mut table).unwrap();
        assert_eq!(sender.writable(), 10);
    }

    #[test]
    fn each_write_takes_a_credit_and_a_request() {
        let mut sender = Sender::new(Transport::Send, &PEER, 5);
        assert_eq!(sender.writes_left(), 2);
        sender.write(1).unwrap();
        sender.write(1).unwrap();
        assert_eq!(sender.write(1), None, "the send queue is full");
        assert!(!sender.waits_for_peer());
        sender.completed(4);
        sender.write(1).unwrap();
        assert_eq!(sender.write(1), None, "there is no credit");
        assert!(sender.waits_for_peer());
        // The count is absolute, and wraps.
        sender.completed(2);
        sender
            .updated(4, true, &mut Table(Default::default()))
            .unwrap();
        assert_eq!(sender.writes_left(), 1);
        sender.write(1).unwrap();
        assert_eq!(sender.write(1), None);
    }

    #[test]
    fn credits_that_the_peer_cannot_have_are_refused() {
        let mut sender = sender();
        sender.write(1).unwrap();
        let mut updated = |limit| sender.updated(limit, false, &mut Table(Default::default()));
        // One of three was used, so that the count is 4 at most.
        for limit in [5, 0, 0x8000, u16::MAX] {
            let refused = Err(ProtocolError::TooManyCredits);
            assert_eq!(updated(limit), refused, "{limit}");
        }
        assert_eq!((updated(1), updated(4)), (Ok(()), Ok(())));
        assert_eq!(sender.writes_left(), 3);
    }

    #[test]
    fn some_credits_are_left_for_updates() {
        for (credits, writes) in [(1, 1), (3, 3), (16, 12), (384, 378)] {
            let peer = Handshake { credits, ..PEER };
            let sender = Sender::new(Transport::Immediate, &peer, 1000);
            assert_eq!(sender.writes_left(), writes);
        }
    }

    #[test]
    fn map_entries_are_written_behind_the_peers_announcements() {
        let mut sender = sender();
        let entry = MapEntry {
            offset: 1,
            address: 2,
            key: 3,
            length: 4,
        };
        let (write, bytes) = sender.write_map_entry(1, entry).unwrap();
        assert_eq!(
            (write.address, write.key, write.length),
            (0x9020 + 24, 6, 24)
        );
        assert_eq!(write.message, Message::Map(1));
        assert_eq!(MapEntry::from_bytes(bytes, PEER.byte_order), entry);
        let beyond = sender.write_map_entry(2, entry);
        assert_eq!(beyond, None, "the peer's table has two entries");
        assert_eq!(sender.writes_left(), 2, "it took a credit");
    }

    #[test]
    fn nothing_is_written_to_a_peer_without_memory() {
        let announcement = Announcement { length: 0, ..FIRST };
        let mut sender = Sender::new(
            Transport::Immediate,
            &Handshake {
                announcement,
                ..PEER
            },
            8,
        );
        assert_eq!(sender.write(1), None);
        let mut table = Table([Announcement::default(), FIRST]);
        sender.updated(3, true, &mut table).unwrap();
        assert_eq!(sender.write(1).unwrap().address, 0x1000);
    }

    #[test]
    fn requests_without_messages_take_room_only() {
        let mut sender = Sender::new(Transport::Immediate, &PEER, 1);
        assert!(sender.take_request());
        assert!(!sender.take_request());
        assert_eq!(sender.write(1), None);
        sender.completed(1);
        assert!(sender.write(1).is_some());
    }
}
