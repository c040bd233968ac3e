//! Protection domains.

use std::sync::Arc;

use rdmacm_abi::uverbs::DeallocPd;
use rdmacm_core::{AccessFlags, AhAttr};

use crate::address_handle::AddressHandle;
use crate::context::Context;
use crate::error::{PostError, Result};
use crate::memory::{Buffer, RawRegion, RemoteAccessRegion};

/// A protection domain: queue pairs reach memory of their own domain only.
/// Clones are the same domain; the kernel's goes when they and all that was
/// made in it are gone.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_pd")]
pub struct ProtectionDomain(Arc<Allocated>);

#[derive(Debug)]
struct Allocated {
    context: Context,
    handle: u32,
}

impl ProtectionDomain {
    pub(crate) fn create(context: &Context) -> Result<Self> {
        let handle = context.uverbs().alloc_pd()?;
        Ok(Self(Arc::new(Allocated {
            context: context.clone(),
            handle,
        })))
    }

    /// The device it was made on.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// A buffer of `length` zeros.
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput) for no bytes at all;
    /// [`Error::Command`](crate::Error::Command) when the kernel refuses, with
    /// `ENOMEM` beyond the limit of locked memory (`RLIMIT_MEMLOCK`).
    #[doc(alias = "ibv_reg_mr", alias = "rdma_reg_msgs")]
    pub fn allocate(&self, length: usize) -> Result<Buffer> {
        Buffer::allocate(self, length)
    }

    /// A buffer of these bytes, where they are.
    ///
    /// # Errors
    /// Those of [`allocate`](Self::allocate), and the bytes.
    #[doc(alias = "ibv_reg_mr", alias = "rdma_reg_msgs")]
    pub fn register(&self, bytes: impl Into<Box<[u8]>>) -> Result<Buffer, PostError<Box<[u8]>>> {
        Buffer::of(self, bytes.into())
    }

    /// `length` zeros that peers may use as `access` says. A peer can change only
    /// what the device may write for this side: that takes
    /// [`LOCAL_WRITE`](AccessFlags::LOCAL_WRITE) as well. On siw every peer that has
    /// the key can read, with or without
    /// [`REMOTE_READ`](AccessFlags::REMOTE_READ).
    ///
    /// # Errors
    /// Those of [`allocate`](Self::allocate), with `EINVAL` for flags that do not
    /// go together.
    #[doc(
        alias = "ibv_reg_mr",
        alias = "rdma_reg_read",
        alias = "rdma_reg_write"
    )]
    pub fn expose(&self, length: usize, access: AccessFlags) -> Result<RemoteAccessRegion> {
        RemoteAccessRegion::allocate(self, length, access)
    }

    /// Registers memory of the caller's own, by its address.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command) when the kernel refuses, with
    /// `EFAULT` where there is no memory.
    ///
    /// # Safety
    /// Until the region is dropped, and beyond if that fails, requests of this
    /// domain's queue pairs and, as `access` says, their peers read and write the
    /// memory, whatever else this process does with it. The caller vouches that
    /// this is sound.
    #[expect(unsafe_code, reason = "passes on what the caller vouches for")]
    #[doc(alias = "ibv_reg_mr")]
    pub unsafe fn register_raw(
        &self,
        address: u64,
        length: usize,
        access: AccessFlags,
    ) -> Result<RawRegion> {
        RawRegion::register(self, address, length, access)
    }

    /// A way to a peer, for datagrams.
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput) on iWARP, which has no
    /// datagrams; [`Error::Command`](crate::Error::Command) when the kernel refuses,
    /// with `EINVAL` for a port that is not there.
    #[doc(alias = "ibv_create_ah")]
    pub fn create_address_handle(&self, attr: AhAttr) -> Result<AddressHandle> {
        AddressHandle::create(self, attr)
    }

    /// Whether both are one domain.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
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
