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

/// A scatter/gather entry: a [`Buffer`], a slice of one, or a slice of a
/// [`RemoteAccessRegion`].
#[derive(Debug)]
#[doc(alias = "ibv_sge")]
pub struct Sge(Part);

// The part is within the memory.
#[derive(Debug)]
enum Part {
    Buffer {
        buffer: Buffer,
        start: usize,
        length: u32,
    },
    Region {
        memory: RemoteAccessRegion,
        start: usize,
        length: u32,
    },
    Raw(AbiSge),
}

const NOT_WITHIN: &str = "the slice is outside of the memory, or longer than 4 GiB";

impl Sge {
    #[inline]
    pub(super) fn with_buffer(
        buffer: Buffer,
        range: Range<usize>,
    ) -> Result<Self, PostError<Buffer>> {
        let Some(length) = length_within(&range, buffer.whole_len()) else {
            let error = Error::invalid(Operation::Slice, NOT_WITHIN);
            return Err(PostError::new(error, buffer));
        };
        Ok(Self(Part::Buffer {
            buffer,
            start: range.start,
            length,
        }))
    }

    pub(super) fn with_region(memory: RemoteAccessRegion, range: Range<usize>) -> Result<Self> {
        let Some(length) = length_within(&range, memory.len()) else {
            return Err(Error::invalid(Operation::Slice, NOT_WITHIN));
        };
        Ok(Self(Part::Region {
            memory,
            start: range.start,
            length,
        }))
    }

    /// Memory of the caller, by its address and the key of a
    /// [`RawRegion`](super::RawRegion).
    ///
    /// # Safety
    /// From posting until this entry comes back, in a [`Completion`](crate::Completion) or from
    /// [`QueuePair::destroy`](crate::QueuePair::destroy), the device reads this memory, or writes
    /// to it if the request does; in a shared receive queue, until then or until the context's
    /// file is closed. Dropping a queue pair is not enough: the kernel may refuse to destroy it.
    /// On siw a read may also write behind it, up to the end of the region's last page. The caller
    /// guarantees that the memory exists, and that no other access to it makes this unsound.
    #[must_use]
    #[doc(alias = "ibv_sge")]
    pub unsafe fn raw(address: u64, length: u32, key: u32) -> Self {
        Self(Part::Raw(AbiSge {
            address,
            length,
            lkey: key,
        }))
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Part::Buffer { length, .. } | Part::Region { length, .. } => *length as usize,
            Part::Raw(sge) => sge.length as usize,
        }
    }

    /// Whether the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole buffer, if it is a slice of one.
    #[must_use]
    pub fn into_buffer(self) -> Option<Buffer> {
        match self.0 {
            Part::Buffer { buffer, .. } => Some(buffer),
            Part::Region { .. } | Part::Raw(_) => None,
        }
    }

    /// Drops it although a device may still use its memory, which is kept until the context is
    /// closed.
    fn keep(self) {
        match &self.0 {
            Part::Buffer { buffer, .. } => buffer.keep(),
            Part::Region { memory, .. } => memory.keep(),
            Part::Raw(_) => {}
        }
    }

    /// Whether it is registered in this domain; always `true` for raw memory.
    #[inline]
    pub(crate) fn is_of(&self, domain: &ProtectionDomain) -> bool {
        let region = match &self.0 {
            Part::Buffer { buffer, .. } => buffer.region(),
            Part::Region { memory, .. } => memory.region(),
            Part::Raw(_) => return true,
        };
        region.domain() == domain
    }

    /// Whether it has local write access; always `true` for raw memory, and for buffers, which
    /// are registered for it.
    #[inline]
    pub(crate) fn is_writable(&self) -> bool {
        match &self.0 {
            Part::Buffer { .. } | Part::Raw(_) => true,
            Part::Region { memory, .. } => memory.access().contains(AccessFlags::LOCAL_WRITE),
        }
    }

    /// Whether its pages may hold memory that the process uses meanwhile.
    pub(crate) fn shares_pages(&self) -> bool {
        matches!(&self.0, Part::Buffer { buffer, .. } if buffer.shares_pages())
    }

    /// The entry for the device.
    #[inline]
    pub(crate) fn sge(&self) -> AbiSge {
        match &self.0 {
            Part::Buffer {
                buffer,
                start,
                length,
            } => within(buffer.region(), buffer.start() + start, *length),
            Part::Region {
                memory,
                start,
                length,
            } => within(memory.region(), *start, *length),
            Part::Raw(sge) => *sge,
        }
    }
}

/// An entry that is a slice of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferSlice<'a> {
    buffer: &'a Buffer,
    start: usize,
    length: u32,
}

impl BufferSlice<'_> {
    /// The number of the domain that it is registered in.
    #[inline]
    pub(crate) fn domain_id(&self) -> usize {
        self.buffer.region().domain_id()
    }

    /// The length in bytes.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.length
    }

    /// The entry for the device.
    #[inline]
    pub(crate) fn sge(&self) -> AbiSge {
        let start = self.buffer.start() + self.start;
        within(self.buffer.region(), start, self.length)
    }
}

/// The entry for the device: `length` bytes from `start` of a region.
#[inline]
fn within(region: &Registration, start: usize, length: u32) -> AbiSge {
    AbiSge {
        address: region.address() + start as u64,
        length,
        lkey: region.local_key(),
    }
}

/// The length of a range within `length` bytes.
fn length_within(range: &Range<usize>, length: usize) -> Option<u32> {
    let slice = range.end.checked_sub(range.start)?;
    let slice = u32::try_from(slice).ok()?;
    (range.end <= length).then_some(slice)
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

    /// Whether there are no entries.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.0, Entries::None)
    }

    /// The entry, if there is no other and it is a slice of a buffer, which devices may write to.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    pub(crate) fn as_buffer(&self) -> Option<BufferSlice<'_>> {
        match &self.0 {
            Entries::One(Sge(Part::Buffer {
                buffer,
                start,
                length,
            })) => Some(BufferSlice {
                buffer,
                start: *start,
                length: *length,
            }),
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
    #[inline]
    pub fn into_buffer(self) -> Option<Buffer> {
        match self.0 {
            Entries::One(Sge(Part::Buffer { buffer, .. })) => Some(buffer),
            other => first_buffer(Self(other)),
        }
    }
}

#[cold]
fn first_buffer(sg_list: SgList) -> Option<Buffer> {
    sg_list.into_iter().find_map(Sge::into_buffer)
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
    #[inline]
    fn from(sge: Sge) -> Self {
        Self(Entries::One(sge))
    }
}

impl From<Buffer> for SgList {
    #[inline]
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
    #[inline]
    fn from(buffer: Buffer) -> Self {
        // No device accepts a request as long as the longest entry.
        let length = u32::try_from(buffer.whole_len()).unwrap_or(u32::MAX);
        Self(Part::Buffer {
            buffer,
            start: 0,
            length,
        })
    }
}
