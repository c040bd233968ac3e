//! Messages, handshakes and announcements of a peer that may not keep to the protocol.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;
use rdmacm_rsocket::{
    Announcement, AnnouncementTable, ByteOrder, Control, Handshake, HandshakeError, How, MAX_DATA,
    MapEntry, Message, ProtocolError, Received, Receiver, RemoteTable, Sender, Shutdown, Transport,
};

use crate::streams::how;

/// Every kind of word, and all others.
fn words() -> impl Strategy<Value = u32> {
    let number = prop_oneof![0..4_u32, 0..400_u32, 0..=MAX_DATA];
    prop_oneof![
        any::<u32>(),
        (0..8_u32, number).prop_map(|(operation, number)| operation << 29 | number),
    ]
}

fn announcements() -> impl Strategy<Value = Announcement> {
    let length = prop_oneof![0..200_u32, any::<u32>()];
    (any::<u64>(), any::<u32>(), length).prop_map(|(address, key, length)| Announcement {
        address,
        key,
        length,
    })
}

/// A peer with a table of so many entries.
fn peer(entries: u32) -> Handshake {
    Handshake {
        byte_order: ByteOrder::Little,
        credits: 10,
        map_entries: 0,
        table: RemoteTable {
            address: 0x9000,
            key: 6,
            entries,
        },
        announcement: Announcement::default(),
    }
}

/// What a receiver allows its peer, counted in another way.
#[derive(Default)]
struct Model {
    half: u32,
    window: u16,
    map_entries: u16,
    /// Messages, and those since the last update.
    messages: u16,
    used: u16,
    /// The bytes that are left in each half that is announced.
    announced: VecDeque<u32>,
    announced_bytes: u64,
    received: u64,
    consumed: u64,
}

impl Model {
    fn new(ring: u32, window: u16, map_entries: u16) -> Self {
        let half = ring / 2;
        let mut model = Self {
            half,
            window,
            map_entries,
            ..Self::default()
        };
        model.announce();
        model
    }

    fn announce(&mut self) {
        self.announced.extend((self.half > 0).then_some(self.half));
        self.announced_bytes += u64::from(self.half);
    }

    fn message(&mut self, message: Message) -> Result<Option<Received>, ProtocolError> {
        match message {
            Message::Data(0) => Err(ProtocolError::EmptyData),
            Message::Data(length) => {
                let left = self.announced.front().copied().unwrap_or(0);
                if length > left {
                    return Err(ProtocolError::BeyondAnnouncement { length, left });
                }
                self.take_credit()?;
                self.received += u64::from(length);
                self.announced.pop_front();
                if length < left {
                    self.announced.push_front(left - length);
                }
                Ok(Some(Received::Data(length)))
            }
            Message::Map(index) if index < self.map_entries.into() => {
                self.take_credit()?;
                Ok(Some(Received::Map(index)))
            }
            Message::Map(index) => {
                let entries = self.map_entries;
                Err(ProtocolError::MapEntry { index, entries })
            }
            Message::Reserved(operation) => Err(ProtocolError::ReservedOperation(operation)),
            Message::Credits(_) | Message::Control(_) | Message::Ignored => Ok(None),
        }
    }

    fn take_credit(&mut self) -> Result<(), ProtocolError> {
        if self.used == self.window {
            return Err(ProtocolError::NoCredit);
        }
        self.used += 1;
        self.messages += 1;
        Ok(())
    }

    /// Sends all updates that are due.
    fn update(&mut self, receiver: &mut Receiver) {
        loop {
            let outstanding = self.announced_bytes - self.consumed;
            let is_half_free = self.half > 0 && outstanding <= self.half.into();
            let is_half_used = self.window > 0 && self.window - self.used <= self.window / 2;
            let update = receiver.update();
            assert_eq!(update.is_some(), is_half_free || is_half_used);
            let Some(update) = update else { return };
            assert_eq!(update.announcement.is_some(), is_half_free);
            assert_eq!(
                update.message,
                Message::Credits(self.messages + self.window)
            );
            self.used = 0;
            if is_half_free {
                self.announce();
            }
        }
    }
}

/// A table with the same announcement everywhere, until it is taken.
struct OneEntry {
    entry: Announcement,
    is_taken: bool,
}

impl AnnouncementTable for OneEntry {
    fn take(&mut self, _: usize, expected: Option<u32>) -> Announcement {
        if expected.is_some_and(|expected| expected != self.entry.length) {
            return Announcement::default();
        }
        self.is_taken = self.entry.length != 0;
        std::mem::take(&mut self.entry)
    }
}

/// Whether the writes fill announcements from the first byte to the last, one after the other.
fn fill(writes: &[Announcement], announced: &[Announcement]) -> bool {
    let mut announced = announced.iter().filter(|one| one.length > 0);
    let mut left = Announcement::default();
    writes.iter().all(|write| {
        if left.length == 0 {
            left = announced.next().copied().unwrap_or_default();
        }
        let is_next = (write.address, write.key) == (left.address, left.key);
        left.address = left.address.wrapping_add(write.length.into());
        let rest = left.length.checked_sub(write.length);
        left.length = rest.unwrap_or(0);
        is_next && rest.is_some()
    })
}

/// What this side writes to the peer's tables stays there.
fn stays_in_the_tables(peer: &Handshake) {
    let ring = Announcement {
        address: 0x1000,
        key: 1,
        length: 8,
    };
    let RemoteTable {
        address,
        key,
        entries,
    } = peer.table;
    let maps = address + u64::from(entries) * 16;
    let mut receiver = Receiver::new(Transport::Send, ring, 10, 0);
    receiver.connected(peer);
    for number in 1..20 {
        let update = receiver.update().unwrap();
        let (at, with, _) = update.announcement.unwrap();
        assert_eq!(
            (at, with),
            (address + number % u64::from(entries) * 16, key)
        );
        receiver.message(Message::Data(4)).unwrap();
        receiver.consume(4);
    }
    let peer = Handshake {
        credits: u16::MAX,
        ..*peer
    };
    let mut sender = Sender::new(Transport::Send, &peer, 100);
    for index in [
        0,
        peer.map_entries / 2,
        peer.map_entries.saturating_sub(1),
        peer.map_entries,
    ] {
        let written = sender.write_map_entry(index, MapEntry::default());
        let expected = (index < peer.map_entries).then_some((maps + u64::from(index) * 24, key));
        assert_eq!(
            written.map(|(write, _)| (write.address, write.key)),
            expected
        );
    }
}

/// An end of one direction or both.
#[derive(Clone, Copy, Debug)]
enum End {
    Close(How),
    Receive(Control),
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![
        how().prop_map(End::Close),
        Just(End::Receive(Control::Shutdown)),
        Just(End::Receive(Control::Disconnect)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    /// A word is a message, and the message is that word, but for the upper bits of a count of
    /// credits.
    #[test]
    fn any_word_is_a_message(word in words()) {
        let number = word & MAX_DATA;
        let message = Message::decode(word);
        let expected = match (word >> 29, number) {
            (0, _) => Message::Data(number),
            (4, _) => Message::Credits((number & 0xffff) as u16),
            (6, _) => Message::Map(number),
            (7, 0) => Message::Control(Control::Disconnect),
            (7, 2) => Message::Control(Control::Shutdown),
            (2 | 7, _) => Message::Ignored,
            (operation, _) => Message::Reserved(operation.to_le_bytes()[0]),
        };
        prop_assert_eq!(message, expected);
        match message {
            Message::Credits(_) => prop_assert_eq!(message.encode(), Some(word & 0xe000_ffff)),
            Message::Ignored | Message::Reserved(_) => prop_assert_eq!(message.encode(), None),
            _ => prop_assert_eq!(message.encode(), Some(word)),
        }
    }

    /// Whatever a peer sends: a word is an error that names it and changes nothing, or counts.
    #[test]
    fn any_words_are_counted_or_refused(
        ring in 0..300_u32,
        window in 0..40_u16,
        map_entries in 0..4_u16,
        words in vec((words(), any::<bool>()), 0..200),
    ) {
        let mut model = Model::new(ring, window, map_entries);
        let announcement = Announcement { address: 0x1000, key: 1, length: ring };
        let transport = Transport::Immediate;
        let mut receiver = Receiver::new(transport, announcement, window, map_entries);
        receiver.connected(&peer(2));
        model.update(&mut receiver);
        for (word, is_read) in words {
            let message = Message::decode(word);
            prop_assert_eq!(receiver.message(message), model.message(message), "{:?}", message);
            if is_read {
                receiver.consume(u32::MAX);
                model.consumed = model.received;
                model.update(&mut receiver);
            }
            prop_assert_eq!(u64::from(receiver.readable()), model.received - model.consumed);
        }
    }

    /// Whatever a peer announces and gives: this side writes where it says, and never more than
    /// it has credits for.
    #[test]
    fn any_announcements_and_credits_are_kept_to(
        credits in 0..40_u16,
        first in announcements(),
        updates in vec((any::<u16>(), any::<bool>(), announcements(), 0..1000_u32), 0..100),
    ) {
        let peer = Handshake { credits, announcement: first, ..peer(2) };
        let mut sender = Sender::new(Transport::Immediate, &peer, u32::MAX);
        let (mut used, mut limit) = (0_u16, credits);
        let mut written = Vec::new();
        let mut announced = vec![first];
        for (given, may_announce, announcement, wanted) in updates {
            // Every other one is possible.
            let given = if given % 2 == 0 { used.wrapping_add(given % 64) } else { given };
            let mut table = OneEntry { entry: announcement, is_taken: false };
            let is_possible = given.wrapping_sub(used) <= credits;
            let updated = sender.updated(given, may_announce, &mut table);
            prop_assert_eq!(updated.is_ok(), is_possible);
            prop_assert!(may_announce || !table.is_taken);
            limit = if is_possible { given } else { limit };
            announced.extend(table.is_taken.then_some(announcement));
            while let Some(write) = sender.write(wanted) {
                prop_assert_eq!(write.message, Message::Data(write.length));
                prop_assert!((1..=wanted.min(MAX_DATA)).contains(&write.length));
                prop_assert!(used != limit, "more messages than credits");
                used = used.wrapping_add(1);
                written.push(Announcement {
                    address: write.address,
                    key: write.key,
                    length: write.length,
                });
            }
        }
        prop_assert!(fill(&written, &announced), "{written:x?} {announced:x?}");
    }

    /// Any private data is a handshake that both halves of a stream take, or has a fault.
    #[test]
    fn any_private_data_is_a_handshake_or_has_a_fault(
        mut bytes in vec(any::<u8>(), 0..64),
        is_near in any::<bool>(),
    ) {
        if is_near && bytes.len() > 23 {
            bytes[0] = 1;
            bytes[20..23].fill(0);
        }
        let version = bytes.first().copied().unwrap_or(0);
        let entries = |bytes: &[u8]| u32::from_be_bytes(bytes[20..24].try_into().unwrap());
        match Handshake::from_bytes(&bytes) {
            Err(HandshakeError::Version(named)) => {
                prop_assert!(named == version && version != 1);
            }
            Err(HandshakeError::Length(length)) => {
                prop_assert!(length == bytes.len() && length < 40);
            }
            Err(HandshakeError::TableEntries(named)) => {
                prop_assert!(named == entries(&bytes) && named < 2);
            }
            Err(HandshakeError::AddressSpace) => {}
            Err(other) => prop_assert!(false, "{other}"),
            Ok(handshake) => {
                prop_assert!(version == 1 && bytes.len() >= 40 && entries(&bytes) >= 2);
                stays_in_the_tables(&handshake);
            }
        }
    }

    /// No order of control messages and closing has a side send one that it must not.
    #[test]
    fn a_side_ends_each_direction_once(steps in vec(ends(), 0..20)) {
        let mut shutdown = Shutdown::new();
        let mut told = Vec::new();
        for step in steps {
            match step {
                End::Close(how) => told.extend(shutdown.close(how)),
                End::Receive(control) => shutdown.receive(control),
            }
            prop_assert!(!(shutdown.peer_disconnected() && shutdown.can_write()));
        }
        let allowed: [&[Control]; 4] = [
            &[],
            &[Control::Shutdown],
            &[Control::Disconnect],
            &[Control::Shutdown, Control::Disconnect],
        ];
        prop_assert!(allowed.contains(&told.as_slice()), "{told:?}");
        let disconnected = told.contains(&Control::Disconnect) || shutdown.peer_disconnected();
        let have_crossed = !told.is_empty() && shutdown.peer_finished();
        prop_assert_eq!(shutdown.is_over(), disconnected || have_crossed);
        prop_assert!(told.is_empty() || !shutdown.can_write());
    }
}
