//! Memory to send from and to receive into.
//!
//! # Safety
//! One of the modules with `unsafe`: it gives slices of memory that a device also
//! uses. It may, because a device uses the memory of a [`Buffer`] only while the
//! buffer lies in a queue, where nobody can reach it: posting takes it and the
//! completion gives it back.
#![expect(
    unsafe_code,
    reason = "slices of memory that a device may use at other times"
)]

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use rdmacm_abi::AccessFlags;

use super::heap::Heap;
use super::region::{Memory, Region, Registration};
use super::sge::Sge;
use crate::error::{Error, PostError, Result};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;

/// Registered bytes to send from and to receive into, owned.
///
/// In hand it is a slice. Posted, it belongs to the queue, and comes back with
/// the completion: so neither this process nor the allocator touches it while
/// the device may. No peer can reach it; for that there is
/// [`RemoteAccessRegion`](super::RemoteAccessRegion). (A peer on siw that guesses the key, 32
/// random bits, can read it: siw asks nobody for the right to read.)
///
/// Registering costs a system call and pins the pages: register much, then
/// [`split_off`](Self::split_off) or [`pieces`](Self::into_chunks). The
/// registration ends with the last part of it.
#[doc(alias = "ibv_mr", alias = "ibv_sge")]
pub struct Buffer {
    region: Arc<Region<Heap>>,
    // Within the region, and of no other buffer.
    start: usize,
    length: usize,
}

impl Buffer {
    pub(crate) fn allocate(domain: &ProtectionDomain, length: usize) -> Result<Self> {
        let operation = Operation::Register { length };
        let heap = Heap::zeroed(length);
        let heap = heap.ok_or_else(|| Error::invalid(operation, NO_BYTES))?;
        let buffer = Self::register(domain, heap);
        buffer.map_err(|(error, _)| error)
    }

    pub(crate) fn of(
        domain: &ProtectionDomain,
        bytes: Box<[u8]>,
    ) -> Result<Self, PostError<Box<[u8]>>> {
        let operation = Operation::Register { length: 0 };
        let heap = Heap::of(bytes)
            .map_err(|bytes| PostError::new(Error::invalid(operation, NO_BYTES), bytes))?;
        Self::register(domain, heap)
            .map_err(|(error, heap)| PostError::new(error, heap.into_boxed()))
    }

    fn register(domain: &ProtectionDomain, heap: Heap) -> Result<Self, (Error, Heap)> {
        let region = Region::register(domain, heap, AccessFlags::LOCAL_WRITE)?;
        Ok(Self {
            length: region.memory().len(),
            start: 0,
            region: Arc::new(region),
        })
    }

    /// Cuts it in two: `self` keeps the first `at` bytes and the rest is returned.
    ///
    /// # Panics
    /// If it has not so many, as [`Vec::split_off`].
    #[must_use = "the part cut off is gone otherwise"]
    pub fn split_off(&mut self, at: usize) -> Self {
        assert!(
            at <= self.length,
            "{at} is beyond its {} bytes",
            self.length
        );
        let rest = Self {
            region: Arc::clone(&self.region),
            start: self.start + at,
            length: self.length - at,
        };
        self.length = at;
        rest
    }

    /// Cuts it into buffers of `size` bytes, the last of which may be smaller.
    ///
    /// # Panics
    /// If `size` is 0.
    #[must_use]
    pub fn into_chunks(mut self, size: usize) -> Vec<Self> {
        assert!(size > 0, "chunks of no bytes");
        let mut chunks = Vec::with_capacity(self.length.div_ceil(size));
        while self.length > size {
            let rest = self.split_off(size);
            chunks.push(std::mem::replace(&mut self, rest));
        }
        chunks.push(self);
        chunks
    }

    /// A part of it, to be posted. The whole comes back.
    ///
    /// # Errors
    /// [`PostError`] with the buffer, where the range is not within.
    pub fn part(self, range: Range<usize>) -> Result<Sge, PostError<Self>> {
        Sge::of_buffer(self, range)
    }

    /// The domain it is registered in.
    #[must_use]
    pub fn protection_domain(&self) -> &ProtectionDomain {
        self.region().domain()
    }

    pub(super) fn keep(&self) {
        self.region.keep();
    }

    /// Tells whether its memory has been freed.
    #[cfg(test)]
    pub(crate) fn grave(&self) -> impl Fn() -> bool + use<> {
        let memory = self.region.watch();
        move || memory.strong_count() == 0
    }

    pub(super) fn region(&self) -> &Registration {
        self.region.registration()
    }

    pub(super) fn start(&self) -> usize {
        self.start
    }
}

const NO_BYTES: &str = "there must be at least one byte, and no more than memory holds";

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the range is this buffer's alone; no device writes there while
        // the buffer can be reached, and the slice borrows it.
        unsafe { self.region.memory().bytes(self.start, self.length) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the buffer is borrowed exclusively.
        unsafe { self.region.memory().bytes_mut(self.start, self.length) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}
