//! Memory that peers may access.
//!
//! # Safety
//! One of the modules with `unsafe`: it hands out slices of memory that peers can write to.
#![expect(unsafe_code, reason = "memory that a peer can write to")]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rdmacm_abi::AccessFlags;

use super::pages::Pages;
use super::region::{Memory, Region, Registration};
use super::remote::RemoteMemory;
use super::sge::Sge;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;

/// Registered memory that peers may read, write or modify atomically, as its access flags
/// say.
///
/// A peer may access it at any time, so safe code gets no slice of it: bytes are copied in and out,
/// in aligned words of 8. The unsafe [`bytes`](Self::bytes) returns a slice if the caller can rule
/// out concurrent writes. The peers agree on when something was written, for example by a message
/// after the write.
///
/// Clones are the same memory. It is registered until all of them, and the requests that use
/// it, are dropped. Later accesses of peers are refused, except those that siw has
/// begun. It has pages of its own, which nothing else of this process uses while a device
/// may access them.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_mr", alias = "ibv_dereg_mr", alias = "rdma_dereg_mr")]
pub struct RemoteAccessRegion(Arc<Region<Pages>>);

impl RemoteAccessRegion {
    pub(crate) fn allocate(
        domain: &ProtectionDomain,
        length: usize,
        access: AccessFlags,
    ) -> Result<Self> {
        let operation = Operation::Register { length };
        let pages = Pages::zeroed(length).ok_or_else(|| {
            let reason = "the length must be at least 1, and the memory available";
            Error::invalid(operation, reason)
        })?;
        match Region::register(domain, pages, access) {
            Ok(region) => Ok(Self(Arc::new(region))),
            Err((error, _)) => Err(error),
        }
    }

    /// The length in bytes, at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "none is empty")]
    pub fn len(&self) -> usize {
        self.0.memory().len()
    }

    /// What peers and the local device may do.
    #[must_use]
    pub fn access(&self) -> AccessFlags {
        self.region().access()
    }

    /// The domain it is registered in.
    #[must_use]
    pub fn protection_domain(&self) -> &ProtectionDomain {
        self.region().domain()
    }

    /// Describes the whole region for a peer.
    #[must_use]
    #[doc(alias = "rkey")]
    pub fn remote(&self) -> RemoteMemory {
        let address = self.0.memory().address();
        RemoteMemory::from_allocation(address, self.len(), self.region().remote_key())
    }

    /// A slice of it, for a local request.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the range is outside of it, or of 4 GiB or more.
    pub fn slice(&self, range: Range<usize>) -> Result<Sge> {
        Sge::with_region(self.clone(), range)
    }

    /// Copies bytes out, from `start` on. They are copied in words of 8 bytes, as peers may
    /// write at the same time: a MiB takes about twice as long as with `memcpy`.
    ///
    /// # Panics
    /// If the range is outside of it, as a slice.
    pub fn read(&self, start: usize, into: &mut [u8]) {
        self.0.memory().load(start, into);
    }

    /// Bytes where they lie, without a copy; empty if the range is outside of the region.
    ///
    /// # Safety
    /// As long as the slice lives, no device writes to these bytes, and nobody in this process to the
    /// aligned words of eight bytes that they touch, which [`write`](Self::write) and
    /// [`word`](Self::word) change as a whole. A peer that has the key can do so at any time: only an
    /// agreement with it, and trust, can rule that out. On siw, a read into a part of the region before
    /// them can write beyond that part, if the peer is hostile.
    #[must_use]
    pub unsafe fn bytes(&self, range: Range<usize>) -> &[u8] {
        let length = range.end.saturating_sub(range.start);
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.memory().bytes(range.start, length) }
    }

    /// Copies bytes in, from `start` on, as [`read`](Self::read) copies them out. A peer that
    /// reads at the same time may get some words from before and some from after, in any
    /// order: [`word`](Self::word) has stores in an order of the caller's.
    ///
    /// # Panics
    /// If the range is outside of it, as a slice.
    pub fn write(&self, start: usize, from: &[u8]) {
        self.0.memory().store(start, from);
    }

    /// Eight bytes as one value in native byte order; `None` if they are outside of the region
    /// or `at` is not a multiple of 8. A load returns some value that the word had.
    /// If this process and a peer modify it at the same time, one modification is lost:
    /// the atomics of devices are atomic only among themselves.
    #[must_use]
    pub fn word(&self, at: usize) -> Option<&AtomicU64> {
        self.0.memory().word(at)
    }

    /// Changes what peers may do. This may change the keys: send [`remote`](Self::remote) to
    /// the peers again. Source: `ibv_rereg_mr(3)`.
    ///
    /// # Errors
    /// [`Error::Command`] with `EOPNOTSUPP` if the driver does not support it: siw, and rxe of
    /// Linux 6.1; with `EACCES` to allow writing to memory that was registered for reading
    /// only; with `EINVAL` for an invalid combination of flags.
    #[doc(alias = "ibv_rereg_mr")]
    pub fn change_access(&self, access: AccessFlags) -> Result<()> {
        self.region().change_access(access)
    }

    pub(super) fn keep(&self) {
        self.0.keep();
    }

    pub(super) fn region(&self) -> &Registration {
        self.0.registration()
    }
}
