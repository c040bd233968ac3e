//! Memory that peers may access.

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
/// A peer may do so at any time, so this is never a slice: bytes are copied in and out, each
/// aligned word of 8 bytes at once. The peers agree on when something was written, by a
/// message behind the write for example.
///
/// Clones are the same memory. It is registered until all of them, and the requests that use
/// it, are dropped. Later accesses of peers are refused, except what a soft iWARP device has
/// under way. It has pages of its own, which nothing else of this process uses while a device
/// may access them.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_mr")]
pub struct RemoteAccessRegion(Arc<Region<Pages>>);

impl RemoteAccessRegion {
    pub(crate) fn allocate(
        domain: &ProtectionDomain,
        length: usize,
        access: AccessFlags,
    ) -> Result<Self> {
        let operation = Operation::Register { length };
        let pages = Pages::zeroed(length).ok_or_else(|| {
            let reason = "there must be at least one byte, and no more than memory holds";
            Error::invalid(operation, reason)
        })?;
        match Region::register(domain, pages, access) {
            Ok(region) => Ok(Self(Arc::new(region))),
            Err((error, _)) => Err(error),
        }
    }

    /// Bytes it has, at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "none is empty")]
    pub fn len(&self) -> usize {
        self.0.memory().len()
    }

    /// What peers may do, and the device itself.
    #[must_use]
    pub fn access(&self) -> AccessFlags {
        self.region().access()
    }

    /// The domain it is registered in.
    #[must_use]
    pub fn protection_domain(&self) -> &ProtectionDomain {
        self.region().domain()
    }

    /// All of it as a peer needs to know it.
    #[must_use]
    #[doc(alias = "rkey")]
    pub fn remote(&self) -> RemoteMemory {
        let address = self.0.memory().address();
        RemoteMemory::of_allocation(address, self.len(), self.region().remote_key())
    }

    /// A part of it, for a request of this side.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] where the range is not within.
    pub fn part(&self, range: Range<usize>) -> Result<Sge> {
        Sge::of_exposed(self.clone(), range)
    }

    /// Copies bytes out, from `start` on. They are copied in words of 8 bytes, as peers may
    /// write at the same time: a MiB takes about twice as long as with `memcpy`.
    ///
    /// # Panics
    /// If they are not within, as a slice.
    pub fn read(&self, start: usize, into: &mut [u8]) {
        self.0.memory().load(start, into);
    }

    /// Copies bytes in, from `start` on, as [`read`](Self::read) copies them out.
    ///
    /// # Panics
    /// If they are not within, as a slice.
    pub fn write(&self, start: usize, from: &[u8]) {
        self.0.memory().store(start, from);
    }

    /// Eight bytes as one value, in this machine's order; `None` where they are
    /// not within or `at` is no multiple of 8. What is read is some value it had.
    /// Changing it while a peer does loses one of the changes: devices' atomics are
    /// atomic among themselves only.
    #[must_use]
    pub fn word(&self, at: usize) -> Option<&AtomicU64> {
        self.0.memory().word(at)
    }

    /// Changes what peers may do. Keys that peers hold may be out of date then:
    /// tell them [`remote`](Self::remote) anew.
    ///
    /// # Errors
    /// [`Error::Command`] with `EOPNOTSUPP` where the driver cannot: siw, and rxe
    /// of Linux 6.1; with `EACCES` where anybody is to write to what was exposed for
    /// reading alone; with `EINVAL` for flags that do not go together.
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
