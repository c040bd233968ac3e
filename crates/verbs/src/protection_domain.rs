//! Protection domains.

use std::sync::Arc;

use rdmacm_abi::uverbs::DeallocPd;
use rdmacm_core::{AccessFlags, AhAttr};

use crate::address_handle::AddressHandle;
use crate::context::Context;
use crate::error::{PostError, Result};
use crate::memory::{Buffer, RawRegion, RemoteAccessRegion};

/// A protection domain: queue pairs access memory of their own domain only. Clones are the
/// same domain. It is destroyed when all of them and all its objects are dropped.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_pd", alias = "ibv_dealloc_pd")]
pub struct ProtectionDomain(Arc<Allocated>);

#[derive(Debug)]
struct Allocated {
    context: Context,
    handle: u32,
}

impl PartialEq for ProtectionDomain {
    /// Whether both are the same domain.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ProtectionDomain {}

impl ProtectionDomain {
    pub(crate) fn create(context: &Context) -> Result<Self> {
        let handle = context.uverbs().alloc_pd()?;
        Ok(Self(Arc::new(Allocated {
            context: context.clone(),
            handle,
        })))
    }

    /// Its context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Allocates and registers a buffer of `length` zeros. On siw, it has pages of its own.
    /// Source: `ibv_reg_mr(3)`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput) if `length` is 0, or cannot be
    /// allocated; [`Error::Command`](crate::Error::Command) if the kernel refuses, with
    /// `ENOMEM` beyond the limit of locked memory (`RLIMIT_MEMLOCK`).
    #[doc(alias = "ibv_reg_mr", alias = "rdma_reg_msgs")]
    pub fn allocate(&self, length: usize) -> Result<Buffer> {
        Buffer::allocate(self, length)
    }

    /// Registers these bytes as a buffer, without a copy. siw does not
    /// [read](crate::SendOperation::Read) into it: a hostile peer could make it write beyond it,
    /// to the end of its last page, where the allocator may have put anything. Read into memory
    /// that was [allocated](Self::allocate). Source: `ibv_reg_mr(3)`.
    ///
    /// # Errors
    /// Those of [`allocate`](Self::allocate), with the bytes.
    #[doc(alias = "ibv_reg_mr", alias = "rdma_reg_msgs")]
    pub fn register(&self, bytes: impl Into<Box<[u8]>>) -> Result<Buffer, PostError<Box<[u8]>>> {
        Buffer::with_bytes(self, bytes.into())
    }

    /// Allocates and registers `length` zeros that peers may access according to `access`.
    /// Remote writes and atomics also need [`LOCAL_WRITE`](AccessFlags::LOCAL_WRITE). On siw
    /// each peer that has the key can read, with or without
    /// [`REMOTE_READ`](AccessFlags::REMOTE_READ). Source: `ibv_reg_mr(3)`.
    ///
    /// # Errors
    /// Those of [`allocate`](Self::allocate), with `EINVAL` for an invalid combination
    /// of flags.
    #[doc(
        alias = "ibv_reg_mr",
        alias = "rdma_reg_read",
        alias = "rdma_reg_write"
    )]
    pub fn expose(&self, length: usize, access: AccessFlags) -> Result<RemoteAccessRegion> {
        RemoteAccessRegion::allocate(self, length, access)
    }

    /// Registers memory of the caller, by its address. Source: `ibv_reg_mr(3)`.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command) if the kernel refuses, with
    /// `EFAULT` if there is no memory at the address.
    ///
    /// # Safety
    /// Until the region is deregistered, requests of this domain's queue pairs and, according
    /// to `access`, their peers read and write the memory at any time. On siw each peer that has
    /// the key can read it. Dropping the region may fail to deregister it, which
    /// [`RawRegion::deregister`] reports. The caller guarantees that this is sound.
    #[expect(unsafe_code, reason = "passes on the caller's guarantee")]
    #[doc(alias = "ibv_reg_mr")]
    pub unsafe fn register_raw(
        &self,
        address: u64,
        length: usize,
        access: AccessFlags,
    ) -> Result<RawRegion> {
        // SAFETY: the caller's guarantee is the same.
        unsafe { RawRegion::register(self, address, length, access) }
    }

    /// Creates the address of a peer for datagrams. Source: `ibv_create_ah(3)`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput) on iWARP, which has no
    /// datagrams; [`Error::Command`](crate::Error::Command) if the kernel refuses, with
    /// `EINVAL` for a missing port.
    #[doc(alias = "ibv_create_ah")]
    pub fn create_address_handle(&self, attr: AhAttr) -> Result<AddressHandle> {
        AddressHandle::create(self, attr)
    }

    /// A number that no other domain has as long as this one exists; not 0.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    pub(crate) fn handle(&self) -> u32 {
        self.0.handle
    }
}

impl Drop for Allocated {
    fn drop(&mut self) {
        let handle = self.handle;
        self.context.uverbs().destroy(&DeallocPd { handle });
    }
}
