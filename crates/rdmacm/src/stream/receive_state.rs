//! What has arrived and was not read.

use std::io::IoSliceMut;
use std::ops::Range;
use std::sync::atomic::Ordering;

use rdmacm_core::AccessFlags;
use rdmacm_rsocket::{
    ANNOUNCEMENT_SIZE, Announcement, AnnouncementTable, ByteOrder, MAP_ENTRY_SIZE, MapEntry,
    Receiver, RemoteTable, TABLE_ENTRIES,
};
use rdmacm_verbs::{Completion, ProtectionDomain, RemoteAccessRegion, Result, SgList};

use super::options::StreamOptions;

/// Bytes of the table into which the peer writes announcements.
const TABLE_SIZE: usize = ANNOUNCEMENT_SIZE * TABLE_ENTRIES as usize;

/// Memory that the peer writes into: the table of announcements, after it that of maps, and
/// then the ring.
#[derive(Clone, Debug)]
pub(super) struct PeerMemory {
    region: RemoteAccessRegion,
    /// Where the ring begins.
    ring_start: usize,
    ring_length: u32,
}

// The ring begins with a word, which this side does not write: see `InPlaceReader`.
const _: () = assert!(TABLE_SIZE % 8 == 0 && MAP_ENTRY_SIZE % 8 == 0);

impl PeerMemory {
    /// Registers it.
    pub(super) fn expose(domain: &ProtectionDomain, options: &StreamOptions) -> Result<Self> {
        let ring_start = TABLE_SIZE + usize::from(options.map_entries) * MAP_ENTRY_SIZE;
        let ring_length = options.receive_buffer;
        let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
        let region = domain.expose(ring_start + ring_length as usize, access)?;
        Ok(Self {
            region,
            ring_start,
            ring_length,
        })
    }

    pub(super) fn table(&self) -> RemoteTable {
        let remote = self.region.remote();
        RemoteTable {
            address: remote.address(),
            key: remote.key(),
            entries: TABLE_ENTRIES,
        }
    }

    pub(super) fn ring(&self) -> Announcement {
        let remote = self.region.remote();
        Announcement {
            address: remote.address() + self.ring_start as u64,
            key: remote.key(),
            length: self.ring_length,
        }
    }

    /// Bytes of the ring, as a part of the region.
    pub(super) fn ring_part(
        &self,
        offset: u32,
        length: u32,
    ) -> (&RemoteAccessRegion, Range<usize>) {
        let start = self.ring_start + offset as usize;
        (&self.region, start..start + length as usize)
    }

    fn read(&self, offset: u32, into: &mut [u8]) {
        self.region.read(self.ring_start + offset as usize, into);
    }

    /// An entry of the map table; an empty one beyond it.
    fn map_entry(&self, index: u32) -> MapEntry {
        let start = TABLE_SIZE + index as usize * MAP_ENTRY_SIZE;
        let mut bytes = [0; MAP_ENTRY_SIZE];
        if start + MAP_ENTRY_SIZE <= self.ring_start {
            self.region.read(start, &mut bytes);
        }
        MapEntry::from_bytes(bytes, ByteOrder::NATIVE)
    }
}

impl AnnouncementTable for PeerMemory {
    /// Devices write from the first byte to the last: what stands before a length that has
    /// arrived has arrived as well.
    fn take(&mut self, index: usize, expected: Option<u32>) -> Announcement {
        let start = index * ANNOUNCEMENT_SIZE;
        let (Some(address), Some(rest)) = (self.region.word(start), self.region.word(start + 8))
        else {
            return Announcement::default();
        };
        let rest = rest.load(Ordering::Acquire).to_ne_bytes();
        let address = address.load(Ordering::Acquire).to_ne_bytes();
        let mut bytes = [0; ANNOUNCEMENT_SIZE];
        let halves = bytes.iter_mut().zip(address.iter().chain(&rest));
        halves.for_each(|(to, from)| *to = *from);
        let announcement = Announcement::from_bytes(bytes, ByteOrder::NATIVE);
        if expected.is_some_and(|expected| expected != announcement.length) {
            return Announcement::default();
        }
        if announcement.length != 0 {
            self.region.write(start, &[0; ANNOUNCEMENT_SIZE]);
        }
        announcement
    }
}

/// How to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Copies what has arrived, and frees its memory.
    Take,
    /// Copies what has arrived.
    Peek,
    /// Finds out what has arrived.
    Check,
}

impl Reading {
    /// For how many bytes messages are handled, at least one.
    pub(super) fn wanted(self, into: &[IoSliceMut<'_>]) -> usize {
        match self {
            Self::Take | Self::Peek => into.iter().map(|slice| slice.len()).sum::<usize>().max(1),
            Self::Check => usize::MAX,
        }
    }
}

/// The receiving half of a stream.
#[derive(Debug)]
pub(super) struct ReceiveState {
    pub(super) receiver: Receiver,
    memory: PeerMemory,
    /// Whether the peer has sent something.
    pub(super) has_received_from_peer: bool,
    /// One of the stream's own receive requests has failed. The device flushes all that follow it,
    /// and destroying the queue pair takes less time than polling for each.
    pub(super) has_request_failed: bool,
    /// Empty, for the completions that are handled.
    pub(super) completions: Vec<Completion>,
    /// The memory of receive requests that have completed, to be posted again.
    pub(super) completed: Vec<SgList>,
}

impl ReceiveState {
    pub(super) fn new(receiver: Receiver, memory: PeerMemory) -> Self {
        Self {
            receiver,
            memory,
            has_received_from_peer: false,
            has_request_failed: false,
            completions: Vec::new(),
            completed: Vec::new(),
        }
    }

    /// The table in this side's memory.
    pub(super) fn table(&self) -> RemoteTable {
        self.memory.table()
    }

    pub(super) fn table_mut(&mut self) -> &mut PeerMemory {
        &mut self.memory
    }

    /// An entry of this side's map table, which the peer has reported.
    pub(super) fn map_entry(&self, index: u32) -> MapEntry {
        self.memory.map_entry(index)
    }

    /// Returns how many bytes were read.
    pub(super) fn read(&mut self, reading: Reading, into: &mut [IoSliceMut<'_>]) -> usize {
        match reading {
            Reading::Take => {
                let length = self.copy(into);
                // At most what is readable, which is 32 bits.
                self.receiver.consume(u32::try_from(length).unwrap_or(0));
                length
            }
            Reading::Peek => self.copy(into),
            Reading::Check => self.receiver.next_bytes().1 as usize,
        }
    }

    /// Copies what has arrived.
    fn copy(&self, into: &mut [IoSliceMut<'_>]) -> usize {
        let (mut offset, mut contiguous) = self.receiver.next_bytes();
        let mut left = self.receiver.readable();
        let mut length = 0;
        for slice in into {
            let mut rest = &mut **slice;
            while left > 0 && !rest.is_empty() {
                if contiguous == 0 {
                    (offset, contiguous) = (0, left);
                }
                let bytes = rest.len().min(contiguous as usize);
                let (now, later) = rest.split_at_mut(bytes);
                self.memory.read(offset, now);
                rest = later;
                length += bytes;
                // No more than was contiguous, which is 32 bits.
                let bytes = u32::try_from(bytes).unwrap_or(0);
                offset += bytes;
                contiguous -= bytes;
                left -= bytes;
            }
        }
        length
    }
}
