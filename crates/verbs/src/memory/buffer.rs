//! Memory to send from and receive into.
//!
//! # Safety
//! One of the modules with `unsafe`: it returns slices of memory that a device also
//! uses. This is sound because a device uses the memory of a [`Buffer`] only while the
//! buffer is in a queue, where no reference to it exists: posting moves it there and the
//! completion returns it. A device that lets a peer write behind the memory of a read reads into
//! whole buffers only, see `Provider::overruns_reads`.
#![expect(
    unsafe_code,
    reason = "slices of memory that a device may use at other times"
)]

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use rdmacm_abi::AccessFlags;

use super::heap::Heap;
use super::region::{Memory, Region, Registration};
use super::sge::Sge;
use crate::error::{Error, PostError, Result};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;

/// An owned buffer of registered memory to send from and receive into.
///
/// It dereferences to a slice. Posting moves it into the queue, and the completion returns
/// it, so neither this process nor the allocator accesses it while the device may. Peers
/// cannot access it; [`RemoteAccessRegion`](super::RemoteAccessRegion) is for that. (A peer
/// on siw that guesses the key, 32 random bits, can read it: siw does not check the right to
/// read.)
///
/// Registering costs a system call and pins the pages: register one large buffer, then use
/// [`split_off`](Self::split_off) or [`into_chunks`](Self::into_chunks). The memory is
/// deregistered when the last part is dropped.
///
/// On siw, a hostile peer that answers a [read](crate::SendOperation::Read) into a part could also
/// write to the parts after it. So a read into a part is refused there while other parts exist.
#[doc(alias = "ibv_mr", alias = "ibv_sge")]
#[doc(alias = "ibv_dereg_mr", alias = "rdma_dereg_mr")]
pub struct Buffer {
    region: Arc<Region<Heap>>,
    // The range is within the region and belongs to no other buffer.
    start: usize,
    length: usize,
}

impl Buffer {
    pub(crate) fn allocate(domain: &ProtectionDomain, length: usize) -> Result<Self> {
        let operation = Operation::Register { length };
        let provider = domain.context().uverbs().provider();
        let heap = if provider.overruns_reads() {
            Heap::zeroed_pages(length)
        } else {
            Heap::zeroed(length)
        };
        let heap = heap.ok_or_else(|| Error::invalid(operation, NO_BYTES))?;
        let buffer = Self::register(domain, heap);
        buffer.map_err(|(error, _)| error)
    }

    pub(crate) fn with_bytes(
        domain: &ProtectionDomain,
        bytes: Box<[u8]>,
    ) -> Result<Self, PostError<Box<[u8]>>> {
        let operation = Operation::Register { length: 0 };
        let heap = Heap::from_box(bytes)
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

    /// Splits it: `self` keeps the first `at` bytes, and the rest is returned.
    ///
    /// # Panics
    /// If `at` is beyond the end, as [`Vec::split_off`].
    #[must_use = "the rest is dropped otherwise"]
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

    /// Splits it into buffers of `size` bytes, the last of which may be smaller.
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

    /// A slice of it, to post. The completion returns the whole buffer.
    ///
    /// # Errors
    /// [`PostError`] with the buffer if the range is outside of it, or of 4 GiB or more.
    #[inline]
    pub fn slice(self, range: Range<usize>) -> Result<Sge, PostError<Self>> {
        Sge::with_buffer(self, range)
    }

    /// Whether its pages may hold other memory of the process: it is a box of the caller's, whose
    /// last page the allocator shares out, or has other parts.
    pub(super) fn shares_pages(&self) -> bool {
        if self.region.memory().is_from_box() || Arc::strong_count(&self.region) > 1 {
            return true;
        }
        // What the owners of other parts have done is done before a device writes there.
        fence(Ordering::Acquire);
        false
    }

    /// The domain it is registered in.
    #[must_use]
    pub fn protection_domain(&self) -> &ProtectionDomain {
        self.region().domain()
    }

    pub(super) fn keep(&self) {
        self.region.keep();
    }

    /// Returns whether its memory has been freed.
    #[cfg(test)]
    pub(crate) fn free_probe(&self) -> impl Fn() -> bool + use<> {
        let memory = self.region.weak_memory();
        move || memory.strong_count() == 0
    }

    pub(super) fn region(&self) -> &Registration {
        self.region.registration()
    }

    /// As the length of its slice, which need not be checked for that.
    #[inline]
    pub(super) fn whole_len(&self) -> usize {
        self.length
    }

    pub(super) fn start(&self) -> usize {
        self.start
    }
}

const NO_BYTES: &str = "the length must be at least 1, and the memory available";

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the range belongs to this buffer only. No device writes to it while a
        // reference to the buffer exists, and the slice borrows the buffer.
        unsafe { self.region.memory().bytes(self.start, self.length) }
    }
}

impl DerefMut for Buffer {
    #[inline]
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
