//! Path records: how packets travel between two ports.

use std::fmt;
use std::ops::Deref;

use rdmacm_abi::{PathFlags, PathMtu, PathRecordData};

use crate::gid::Gid;

mod wire;

pub(crate) use wire::NO_PATH;

/// A path record and what the path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ibv_path_data")]
pub struct PathData {
    /// What the path is for; empty with
    /// [`AddressAbi::IpOnly`](crate::AddressAbi::IpOnly), which does not return it.
    pub flags: PathFlags,
    /// The path.
    #[doc(alias = "path")]
    pub record: PathRecord,
}

impl PathData {
    /// The flags a path must have, exactly, to be set by
    /// [`IdHandle::set_ib_path`](crate::IdHandle::set_ib_path).
    #[doc(alias = "IBV_PATH_FLAG_GMP")]
    #[doc(alias = "IBV_PATH_FLAG_PRIMARY")]
    #[doc(alias = "IBV_PATH_FLAG_BIDIRECTIONAL")]
    pub const USABLE: PathFlags = PathRecordData::USABLE;
}

/// How packets travel between two ports. Numbers are in host order, encodings
/// are the field's. Source: IBTA Vol 1 §15.2.5.16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ibv_path_record")]
#[doc(alias = "ibv_sa_path_rec")]
pub struct PathRecord {
    /// The service for which the path was requested; 0 for any.
    pub service_id: u64,
    /// The destination's GID.
    pub dgid: Gid,
    /// The source's GID.
    pub sgid: Gid,
    /// The destination's LID. Meaningless on RoCE, where it has bytes of a MAC address.
    pub dlid: u16,
    /// The source's LID. Meaningless on RoCE.
    pub slid: u16,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Whether the path is reversible.
    pub reversible: bool,
    /// How many paths were requested, 7 bits.
    pub numb_path: u8,
    /// Partition key.
    pub pkey: u16,
    /// Class of service, 12 bits.
    pub qos_class: u16,
    /// Service level, 4 bits.
    pub sl: u8,
    /// Whether the MTU is greater (0), less (1), exact (2) or the largest (3).
    pub mtu_selector: u8,
    /// MTU; [`PathMtu::B1024`] is 3.
    pub mtu: PathMtu,
    /// As for the MTU.
    pub rate_selector: u8,
    /// Rate, IBTA encoding (2 is 2.5 Gb/s, 3 is 10 Gb/s …).
    pub rate: u8,
    /// As for the MTU.
    pub packet_life_time_selector: u8,
    /// Life time of a packet: 4.096 µs × 2^this.
    pub packet_life_time: u8,
    /// Preference; lower is better.
    pub preference: u8,
}

impl Default for PathRecord {
    /// All zeros: without GIDs, and with the number of no MTU.
    fn default() -> Self {
        NO_PATH.record
    }
}

/// The path records of an id: none on iWARP, one on RoCE, up to two (primary
/// and alternate) on InfiniBand. Dereferences to a slice, the primary first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PathRecords {
    records: [PathData; Self::MOST],
    count: usize,
}

impl PathRecords {
    /// How many records are queried, more than an id can have.
    pub(crate) const MOST: usize = 4;

    /// The first `count` records of an answer; `None` if the answer has fewer, or this
    /// holds fewer.
    pub(crate) fn new(records: impl IntoIterator<Item = PathData>, count: u32) -> Option<Self> {
        let count = usize::try_from(count).ok()?;
        let mut filled = Self {
            records: [NO_PATH; Self::MOST],
            count,
        };
        let mut records = records.into_iter();
        for slot in filled.records.get_mut(..count)? {
            *slot = records.next()?;
        }
        Some(filled)
    }
}

impl Deref for PathRecords {
    type Target = [PathData];

    fn deref(&self) -> &[PathData] {
        self.records.get(..self.count).unwrap_or_default()
    }
}

impl fmt::Debug for PathRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
