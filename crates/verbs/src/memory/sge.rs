//! What requests take.
//!
//! # Safety
//! One of the modules with `unsafe`: who names memory by its address vouches for it.
#![expect(unsafe_code, reason = "memory of the caller's own, by its address")]

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

/// A piece of registered memory in a request: a [`Buffer`], a part of one, or a
/// part of [`RemoteAccessRegion`].
#[derive(Debug)]
#[doc(alias = "ibv_sge")]
pub struct Sge {
    memory: Memory,
    // Within the memory.
    range: Range<usize>,
}

#[derive(Debug)]
enum Memory {
    Buffer(Buffer),
    Exposed(RemoteAccessRegion),
    Raw(AbiSge),
}

const NOT_WITHIN: &str = "the part is not within the memory, or longer than a request can say";

impl Sge {
    pub(super) fn of_buffer(
        buffer: Buffer,
        range: Range<usize>,
    ) -> Result<Self, PostError<Buffer>> {
        if !fits(&range, buffer.len()) {
            let error = Error::invalid(Operation::TakePart, NOT_WITHIN);
            return Err(PostError::new(error, buffer));
        }
        let memory = Memory::Buffer(buffer);
        Ok(Self { memory, range })
    }

    pub(super) fn of_exposed(memory: RemoteAccessRegion, range: Range<usize>) -> Result<Self> {
        if !fits(&range, memory.len()) {
            return Err(Error::invalid(Operation::TakePart, NOT_WITHIN));
        }
        let memory = Memory::Exposed(memory);
        Ok(Self { memory, range })
    }

    /// Memory of the caller's own, by its address and the key of a
    /// [`RawRegion`](super::RawRegion).
    ///
    /// # Safety
    /// From posting it until its completion is taken, or the queue pair is
    /// destroyed, the device reads this memory, or writes to it if the request
    /// does. The caller vouches that it is there, and that nobody else's access
    /// to it meanwhile makes that unsound.
    #[must_use]
    #[doc(alias = "ibv_sge")]
    pub unsafe fn raw(address: u64, length: u32, key: u32) -> Self {
        let memory = Memory::Raw(AbiSge {
            address,
            length,
            lkey: key,
        });
        let range = 0..length as usize;
        Self { memory, range }
    }

    /// Bytes of the part.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The whole buffer, if it is a part of one.
    #[must_use]
    pub fn into_buffer(self) -> Option<Buffer> {
        match self.memory {
            Memory::Buffer(buffer) => Some(buffer),
            Memory::Exposed(_) | Memory::Raw(_) => None,
        }
    }

    /// Gives it up where a device may still use its memory, which is kept then
    /// whoever has other parts of it.
    fn keep(self) {
        match &self.memory {
            Memory::Buffer(buffer) => buffer.keep(),
            Memory::Exposed(memory) => memory.keep(),
            Memory::Raw(_) => {}
        }
    }

    /// Whether it is registered in this domain, as far as is known here.
    pub(crate) fn is_of(&self, domain: &ProtectionDomain) -> bool {
        self.region()
            .is_none_or(|region| region.domain().is(domain))
    }

    /// Whether the device may write there for this side, as far as is known here.
    pub(crate) fn is_writable(&self) -> bool {
        self.region()
            .is_none_or(|region| region.access().contains(AccessFlags::LOCAL_WRITE))
    }

    pub(crate) fn sge(&self) -> AbiSge {
        let (region, start) = match &self.memory {
            Memory::Buffer(buffer) => (buffer.region(), buffer.start()),
            Memory::Exposed(memory) => (memory.region(), 0),
            Memory::Raw(sge) => return *sge,
        };
        let offset = start + self.range.start;
        AbiSge {
            address: region.address() + offset as u64,
            // As checked when it was made.
            length: u32::try_from(self.len()).unwrap_or(u32::MAX),
            lkey: region.local_key(),
        }
    }

    fn region(&self) -> Option<&Registration> {
        match &self.memory {
            Memory::Buffer(buffer) => Some(buffer.region()),
            Memory::Exposed(memory) => Some(memory.region()),
            Memory::Raw(_) => None,
        }
    }
}

fn fits(range: &Range<usize>, length: usize) -> bool {
    range.start <= range.end && range.end <= length && u32::try_from(range.len()).is_ok()
}

/// The pieces of one request, in order. One takes no allocation.
#[derive(Default)]
pub struct SgList(Few);

#[derive(Default)]
enum Few {
    #[default]
    None,
    One(Sge),
    Many(Vec<Sge>),
}

impl SgList {
    /// None.
    pub const NONE: Self = Self(Few::None);

    /// One more, behind the others.
    pub fn push(&mut self, sge: Sge) {
        self.0 = match std::mem::take(&mut self.0) {
            Few::None => Few::One(sge),
            Few::One(first) => Few::Many(vec![first, sge]),
            Few::Many(mut sg_list) => {
                sg_list.push(sge);
                Few::Many(sg_list)
            }
        };
    }

    /// Gives them up where a device may still use their memory: it is kept until the
    /// context ends.
    pub(crate) fn keep(self) {
        self.into_iter().for_each(Sge::keep);
    }

    /// The first buffer among them: of a request with one, that one.
    #[must_use]
    pub fn into_buffer(self) -> Option<Buffer> {
        self.into_iter().find_map(Sge::into_buffer)
    }
}

impl Deref for SgList {
    type Target = [Sge];

    fn deref(&self) -> &[Sge] {
        match &self.0 {
            Few::None => &[],
            Few::One(sge) => std::slice::from_ref(sge),
            Few::Many(sg_list) => sg_list,
        }
    }
}

impl IntoIterator for SgList {
    type Item = Sge;
    type IntoIter = std::iter::Chain<std::option::IntoIter<Sge>, std::vec::IntoIter<Sge>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, many) = match self.0 {
            Few::None => (None, Vec::new()),
            Few::One(sge) => (Some(sge), Vec::new()),
            Few::Many(sg_list) => (None, sg_list),
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
        Self(Few::One(sge))
    }
}

impl From<Buffer> for SgList {
    fn from(buffer: Buffer) -> Self {
        Sge::from(buffer).into()
    }
}

impl From<Vec<Sge>> for SgList {
    fn from(sg_list: Vec<Sge>) -> Self {
        Self(Few::Many(sg_list))
    }
}

impl From<Buffer> for Sge {
    fn from(buffer: Buffer) -> Self {
        // No longer than a request can say: `sge` clamps what no device takes.
        let range = 0..buffer.len();
        Self {
            memory: Memory::Buffer(buffer),
            range,
        }
    }
}
