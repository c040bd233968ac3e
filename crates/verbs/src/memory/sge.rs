//! Scatter/gather entries.
//!
//! # Safety
//! One of the modules with `unsafe`: the caller guarantees that memory given by its address
//! is valid.
#![expect(unsafe_code, reason = "memory of the caller, by its address")]

use std::fmt;
use std::ops::{Deref, Range};

use rdmacm_abi::AccessFlags;
use rdmacm_abi::uverbs::Sge as AbiSge;

use super::buffer::Buffer;
use super::region::Registration;
use super::remote_access_region::RemoteAccessRegion;
use crate::error::{Error, PostError, Result};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;

/// A scatter/gather entry: a [`Buffer`], a part of one, or a part of a
/// [`RemoteAccessRegion`].
#[derive(Debug)]
#[doc(alias = "ibv_sge")]
pub struct Sge {
    memory: Memory,
    // The part is within the memory.
    start: usize,
    length: u32,
}

#[derive(Debug)]
enum Memory {
    Buffer(Buffer),
    Region(RemoteAccessRegion),
    Raw(AbiSge),
}

const NOT_WITHIN: &str = "the part is outside of the memory, or longer than 4 GiB";

impl Sge {
    pub(super) fn with_buffer(
        buffer: Buffer,
        range: Range<usize>,
    ) -> Result<Self, PostError<Buffer>> {
        let Some(length) = length_within(&range, buffer.len()) else {
            let error = Error::invalid(Operation::TakePart, NOT_WITHIN);
            return Err(PostError::new(error, buffer));
        };
        Ok(Self {
            memory: Memory::Buffer(buffer),
            start: range.start,
            length,
        })
    }

    pub(super) fn with_region(memory: RemoteAccessRegion, range: Range<usize>) -> Result<Self> {
        let Some(length) = length_within(&range, memory.len()) else {
            return Err(Error::invalid(Operation::TakePart, NOT_WITHIN));
        };
        Ok(Self {
            memory: Memory::Region(memory),
            start: range.start,
            length,
        })
    }

    /// Memory of the caller, by its address and the key of a
    /// [`RawRegion`](super::RawRegion).
    ///
    /// # Safety
    /// From posting until its completion is polled, or the queue pair is destroyed, the
    /// device reads this memory, or writes to it if the request does. The caller guarantees
    /// that the memory exists, and that no other access to it makes this unsound.
    #[must_use]
    #[doc(alias = "ibv_sge")]
    pub unsafe fn raw(address: u64, length: u32, key: u32) -> Self {
        let memory = Memory::Raw(AbiSge {
            address,
            length,
            lkey: key,
        });
        Self {
            memory,
            start: 0,
            length,
        }
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The whole buffer, if it is a part of one.
    #[must_use]
    pub fn into_buffer(self) -> Option<Buffer> {
        match self.memory {
            Memory::Buffer(buffer) => Some(buffer),
            Memory::Region(_) | Memory::Raw(_) => None,
        }
    }

    /// Drops it although a device may still use its memory, which is kept until the context is
    /// closed.
    fn keep(self) {
        match &self.memory {
            Memory::Buffer(buffer) => buffer.keep(),
            Memory::Region(memory) => memory.keep(),
            Memory::Raw(_) => {}
        }
    }

    /// Whether it is registered in this domain; always `true` for raw memory.
    #[inline]
    pub(crate) fn is_of(&self, domain: &ProtectionDomain) -> bool {
        self.region()
            .is_none_or(|region| region.domain().is(domain))
    }

    /// Whether it has local write access; always `true` for raw memory.
    #[inline]
    pub(crate) fn is_writable(&self) -> bool {
        self.region()
            .is_none_or(|region| region.access().contains(AccessFlags::LOCAL_WRITE))
    }

    #[inline]
    pub(crate) fn sge(&self) -> AbiSge {
        let (region, start) = match &self.memory {
            Memory::Buffer(buffer) => (buffer.region(), buffer.start()),
            Memory::Region(memory) => (memory.region(), 0),
            Memory::Raw(sge) => return *sge,
        };
        let offset = start + self.start;
        AbiSge {
            address: region.address() + offset as u64,
            length: self.length,
            lkey: region.local_key(),
        }
    }

    #[inline]
    fn region(&self) -> Option<&Registration> {
        match &self.memory {
            Memory::Buffer(buffer) => Some(buffer.region()),
            Memory::Region(memory) => Some(memory.region()),
            Memory::Raw(_) => None,
        }
    }
}

/// The length of a range within `length` bytes.
fn length_within(range: &Range<usize>, length: usize) -> Option<u32> {
    let part = range.end.checked_sub(range.start)?;
    let part = u32::try_from(part).ok()?;
    (range.end <= length).then_some(part)
}

/// The scatter/gather list of a request. A single entry needs no allocation.
#[derive(Default)]
pub struct SgList(Entries);

#[derive(Default)]
enum Entries {
    #[default]
    None,
    One(Sge),
    Many(Vec<Sge>),
}

impl SgList {
    /// No entries.
    pub const NONE: Self = Self(Entries::None);

    /// Appends an entry.
    pub fn push(&mut self, sge: Sge) {
        self.0 = match std::mem::take(&mut self.0) {
            Entries::None => Entries::One(sge),
            Entries::One(first) => Entries::Many(vec![first, sge]),
            Entries::Many(mut sg_list) => {
                sg_list.push(sge);
                Entries::Many(sg_list)
            }
        };
    }

    /// The entry, if there is one and no more.
    #[inline]
    pub(crate) fn as_one(&self) -> Option<&Sge> {
        match &self.0 {
            Entries::One(sge) => Some(sge),
            _ => None,
        }
    }

    /// Drops the entries although a device may still use their memory, which is kept until the
    /// context is closed.
    pub(crate) fn keep(self) {
        self.into_iter().for_each(Sge::keep);
    }

    /// The first buffer of the list.
    #[must_use]
    pub fn into_buffer(self) -> Option<Buffer> {
        match self.0 {
            Entries::None => None,
            Entries::One(sge) => sge.into_buffer(),
            Entries::Many(sg_list) => sg_list.into_iter().find_map(Sge::into_buffer),
        }
    }
}

impl Deref for SgList {
    type Target = [Sge];

    fn deref(&self) -> &[Sge] {
        match &self.0 {
            Entries::None => &[],
            Entries::One(sge) => std::slice::from_ref(sge),
            Entries::Many(sg_list) => sg_list,
        }
    }
}

impl IntoIterator for SgList {
    type Item = Sge;
    type IntoIter = std::iter::Chain<std::option::IntoIter<Sge>, std::vec::IntoIter<Sge>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, many) = match self.0 {
            Entries::None => (None, Vec::new()),
            Entries::One(sge) => (Some(sge), Vec::new()),
            Entries::Many(sg_list) => (None, sg_list),
        };
        one.into_iter().chain(many)
    }
}

impl fmt::Debug for SgList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&**self).finish()
    }
}

impl From<Sge> for SgList {
    fn from(sge: Sge) -> Self {
        Self(Entries::One(sge))
    }
}

impl From<Buffer> for SgList {
    fn from(buffer: Buffer) -> Self {
        Sge::from(buffer).into()
    }
}

impl From<Vec<Sge>> for SgList {
    fn from(sg_list: Vec<Sge>) -> Self {
        Self(Entries::Many(sg_list))
    }
}

impl From<Buffer> for Sge {
    fn from(buffer: Buffer) -> Self {
        // No device accepts a request as long as the longest entry.
        let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        Self {
            memory: Memory::Buffer(buffer),
            start: 0,
            length,
        }
    }
}
