//! One side of a stream, and its memory.

use std::collections::VecDeque;

use rdmacm_rsocket::{
    ANNOUNCEMENT_SIZE, Announcement, AnnouncementTable, ByteOrder, Handshake, MAP_ENTRY_SIZE,
    MapEntry, Message, Received, Receiver, RemoteTable, SendRing, Sender, Shutdown, TABLE_ENTRIES,
    Transport,
};

const RING_ADDRESS: u64 = 0x1_0000;
const RING_KEY: u32 = 7;
const TABLE_ADDRESS: u64 = 0x2000;
const TABLE_KEY: u32 = 8;
/// Send requests for updates and controls.
const CONTROL_REQUESTS: u32 = 4;

/// How a side is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) transport: Transport,
    pub(crate) byte_order: ByteOrder,
    pub(crate) ring: u32,
    pub(crate) window: u16,
    pub(crate) send_ring: u32,
    pub(crate) requests: u32,
    /// The entries of its tables.
    pub(crate) entries: u32,
    pub(crate) map_entries: u16,
}

/// What one message does at the other side, with the write that it reports.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    write: Option<Write>,
    word: u32,
    /// Whether it takes a credit.
    is_data: bool,
    /// The requests of the sender that complete with it.
    requests: u32,
    ring_bytes: u32,
}

#[derive(Clone, Debug)]
struct Write {
    address: u64,
    key: u32,
    bytes: Vec<u8>,
    is_placed: bool,
}

impl Write {
    fn new(address: u64, key: u32, bytes: &[u8]) -> Self {
        Self {
            address,
            key,
            bytes: bytes.to_vec(),
            is_placed: false,
        }
    }
}

/// Requests that have completed, and the bytes of the send ring that they were made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement {
    is_data: bool,
    requests: u32,
    ring_bytes: u32,
}

impl Delivery {
    pub(crate) fn message(message: Message) -> Self {
        Self::word(message.encode().unwrap())
    }

    pub(crate) fn word(word: u32) -> Self {
        Self {
            write: None,
            word,
            is_data: false,
            requests: 0,
            ring_bytes: 0,
        }
    }

    /// Whether there is nothing to place, or it is.
    pub(crate) fn is_placed(&self) -> bool {
        self.write.as_ref().is_none_or(|write| write.is_placed)
    }

    /// What the write acknowledges: the first of the requests.
    pub(crate) fn placed(&self) -> Acknowledgement {
        Acknowledgement {
            is_data: self.is_data,
            requests: self.requests.min(1),
            ring_bytes: self.ring_bytes,
        }
    }

    /// What the message acknowledges: the others.
    pub(crate) fn reported(&self) -> Acknowledgement {
        let placed = u32::from(self.write.is_some()).min(self.requests);
        Acknowledgement {
            is_data: self.is_data,
            requests: self.requests - placed,
            ring_bytes: 0,
        }
    }
}

/// A side of a stream.
pub(crate) struct Side {
    setup: Setup,
    ring: Vec<u8>,
    table: Table,
    receiver: Receiver,
    sender: Option<Sender>,
    pub(crate) shutdown: Shutdown,
    send_ring: SendRing,
    send_bytes: Vec<u8>,
    control_requests: u32,
    /// Acknowledged by the peer's device, not polled yet.
    acknowledged: VecDeque<Acknowledgement>,
    /// The map entries that were reported.
    pub(crate) maps: Vec<(u16, MapEntry)>,
}

/// The table of announcements, and that of maps behind it.
struct Table {
    bytes: Vec<u8>,
    order: ByteOrder,
    entries: usize,
    /// How many announcements there were, with the one in the handshake.
    taken: usize,
}

impl Table {
    fn new(setup: Setup) -> Self {
        let entries = setup.entries as usize;
        let maps = usize::from(setup.map_entries) * MAP_ENTRY_SIZE;
        Self {
            bytes: vec![0; entries * ANNOUNCEMENT_SIZE + maps],
            order: setup.byte_order,
            entries,
            taken: 1,
        }
    }

    fn map_entry(&self, index: u16) -> MapEntry {
        let start = self.entries * ANNOUNCEMENT_SIZE + usize::from(index) * MAP_ENTRY_SIZE;
        let bytes = &self.bytes[start..][..MAP_ENTRY_SIZE];
        MapEntry::from_bytes(bytes.try_into().unwrap(), self.order)
    }
}

/// A sender has two entries. A side with more of them takes the one whose turn it is.
impl AnnouncementTable for Table {
    fn take(&mut self, index: usize, expected: Option<u32>) -> Announcement {
        assert_eq!(index, self.taken % TABLE_ENTRIES as usize);
        let start = self.taken % self.entries * ANNOUNCEMENT_SIZE;
        let entry = &mut self.bytes[start..][..ANNOUNCEMENT_SIZE];
        let announcement = Announcement::from_bytes((&*entry).try_into().unwrap(), self.order);
        if expected.is_some_and(|expected| expected != announcement.length) {
            return Announcement::default();
        }
        entry[12..].fill(0);
        self.taken += usize::from(announcement.length != 0);
        announcement
    }
}

impl Side {
    pub(crate) fn new(setup: Setup) -> Self {
        let ring = Announcement {
            address: RING_ADDRESS,
            key: RING_KEY,
            length: setup.ring,
        };
        Self {
            setup,
            ring: vec![0; setup.ring as usize],
            table: Table::new(setup),
            receiver: Receiver::new(setup.transport, ring, setup.window, setup.map_entries),
            sender: None,
            shutdown: Shutdown::new(),
            send_ring: SendRing::new(setup.send_ring),
            send_bytes: vec![0; setup.send_ring as usize],
            control_requests: CONTROL_REQUESTS,
            acknowledged: VecDeque::new(),
            maps: Vec::new(),
        }
    }

    pub(crate) fn handshake(&self) -> Handshake {
        Handshake {
            byte_order: self.setup.byte_order,
            credits: self.setup.window,
            map_entries: self.setup.map_entries,
            table: RemoteTable {
                address: TABLE_ADDRESS,
                key: TABLE_KEY,
                entries: self.setup.entries,
            },
            announcement: self.receiver.announcement(),
        }
    }

    /// The peer's handshake, as it is on the wire.
    pub(crate) fn connected(&mut self, peer: &Handshake) {
        let peer = Handshake::from_bytes(&peer.to_bytes()).unwrap();
        self.receiver.connected(&peer);
        self.sender = Some(Sender::new(
            self.setup.transport,
            &peer,
            self.setup.requests,
        ));
    }

    pub(crate) fn write(&mut self, data: &[u8], network: &mut VecDeque<Delivery>) -> usize {
        let sender = self.sender.as_mut().unwrap();
        let data = if self.shutdown.can_write() { data } else { &[] };
        let mut sent = 0;
        while sent < data.len() {
            let (offset, free) = self.send_ring.free();
            let wanted = free.min(u32::try_from(data.len() - sent).unwrap());
            let Some(write) = sender.write(wanted) else {
                break;
            };
            assert_eq!(self.send_ring.take(write.length), write.length);
            let length = write.length as usize;
            let source = &mut self.send_bytes[offset as usize..][..length];
            source.copy_from_slice(&data[sent..][..length]);
            network.push_back(Delivery {
                write: Some(Write::new(write.address, write.key, source)),
                word: write.message.encode().unwrap(),
                is_data: true,
                requests: self.setup.transport.requests_per_write(),
                ring_bytes: write.length,
            });
            sent += length;
        }
        sent
    }

    pub(crate) fn map(
        &mut self,
        index: u16,
        entry: MapEntry,
        network: &mut VecDeque<Delivery>,
    ) -> bool {
        let sender = self.sender.as_mut().unwrap();
        let can_write = self.shutdown.can_write();
        let written = can_write.then(|| sender.write_map_entry(index, entry));
        let Some((write, bytes)) = written.flatten() else {
            return false;
        };
        network.push_back(Delivery {
            write: Some(Write::new(write.address, write.key, &bytes)),
            word: write.message.encode().unwrap(),
            is_data: true,
            requests: self.setup.transport.requests_per_write(),
            ring_bytes: 0,
        });
        true
    }

    pub(crate) fn read(&mut self, bytes: usize) -> Vec<u8> {
        let mut read = Vec::new();
        while read.len() < bytes {
            let (offset, length) = self.receiver.next_bytes();
            let length = (length as usize).min(bytes - read.len());
            if length == 0 {
                break;
            }
            read.extend_from_slice(&self.ring[offset as usize..][..length]);
            // What is overwritten too early is noticed.
            self.ring[offset as usize..][..length].fill(0xee);
            self.receiver.consume(u32::try_from(length).unwrap());
        }
        read
    }

    pub(crate) fn send_updates(&mut self, network: &mut VecDeque<Delivery>) {
        while self.receiver.is_update_due() {
            let requests = self.receiver.requests_per_update();
            if requests > self.control_requests {
                return;
            }
            let update = self.receiver.update().unwrap();
            self.control_requests -= requests;
            network.push_back(Delivery {
                write: update
                    .announcement
                    .map(|(address, key, bytes)| Write::new(address, key, &bytes)),
                word: update.message.encode().unwrap(),
                is_data: false,
                requests,
                ring_bytes: 0,
            });
        }
    }

    /// The device places a write of the peer.
    pub(crate) fn place(&mut self, delivery: &mut Delivery) {
        if let Some(write) = &mut delivery.write {
            write.is_placed = true;
            self.memory(write.address, write.key, write.bytes.len())
                .copy_from_slice(&write.bytes);
        }
    }

    /// A message of the peer arrives.
    pub(crate) fn arrive(&mut self, delivery: &Delivery) {
        let word = self
            .setup
            .transport
            .decode(self.setup.transport.encode(delivery.word));
        let message = Message::decode(word);
        let received = self.receiver.message(message).unwrap();
        let is_after_the_end = received.is_some() && self.shutdown.peer_finished();
        assert!(!is_after_the_end, "{message:?}");
        if let Some(Received::Map(index)) = received {
            let index = u16::try_from(index).unwrap();
            self.maps.push((index, self.table.map_entry(index)));
        }
        match message {
            Message::Credits(limit) => {
                let sender = self.sender.as_mut().unwrap();
                let tells = self.setup.transport == Transport::Immediate;
                let may_announce = !tells || delivery.write.is_some();
                sender
                    .updated(limit, may_announce, &mut self.table)
                    .unwrap();
            }
            Message::Control(control) => self.shutdown.receive(control),
            _ => {}
        }
    }

    /// The memory that a key gives the peer; nothing else.
    fn memory(&mut self, address: u64, key: u32, length: usize) -> &mut [u8] {
        let (base, memory) = match key {
            RING_KEY => (RING_ADDRESS, self.ring.as_mut_slice()),
            TABLE_KEY => (TABLE_ADDRESS, self.table.bytes.as_mut_slice()),
            key => panic!("no memory has the key {key}"),
        };
        let offset = usize::try_from(address.checked_sub(base).unwrap()).unwrap();
        &mut memory[offset..offset + length]
    }

    /// The peer's device has a request of this side.
    pub(crate) fn acknowledged(&mut self, requests: Acknowledgement) {
        if requests.requests != 0 {
            self.acknowledged.push_back(requests);
        }
    }

    pub(crate) fn complete(&mut self, requests: usize) {
        let count = requests.min(self.acknowledged.len());
        for done in self.acknowledged.drain(..count) {
            self.send_ring.release(done.ring_bytes);
            if done.is_data {
                self.sender.as_mut().unwrap().completed(done.requests);
            } else {
                self.control_requests += done.requests;
            }
        }
    }

    pub(crate) fn is_data_message(delivery: &Delivery) -> bool {
        delivery.is_data
    }
}
