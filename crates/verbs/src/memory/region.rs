//! Registered memory.
//!
//! # Safety
//! One of the modules with `unsafe`: once a range of addresses is registered, devices and peers
//! access it. Either it is memory that is kept until the device is known to use it no more, or the
//! caller guarantees that this is sound.
#![expect(unsafe_code, reason = "ranges of addresses that devices access")]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use rdmacm_abi::AccessFlags;
use rdmacm_abi::uverbs::{DeregMr, RegMr, ReregFlags, ReregMr};

use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;

/// A range of addresses that is registered with a device.
#[derive(Debug)]
pub(super) struct Registration {
    domain: ProtectionDomain,
    domain_id: usize,
    address: u64,
    handle: u32,
    local_key: AtomicU32,
    remote_key: AtomicU32,
    access: AtomicU32,
    /// Held while the kernel changes the three.
    changing: Mutex<()>,
}

impl Registration {
    /// # Safety
    /// Until it is deregistered, requests of the domain and peers access the memory, as `access` says.
    /// The caller guarantees that this is sound.
    unsafe fn new(
        domain: &ProtectionDomain,
        address: u64,
        length: usize,
        access: AccessFlags,
    ) -> Result<Self> {
        let operation = Operation::Register { length };
        let uverbs = domain.context().uverbs();
        let request = RegMr {
            response: 0,
            start: address,
            length: length as u64,
            device_address: address,
            pd: domain.handle(),
            access,
        };
        let answer = uverbs.provider().register(uverbs, operation, request)?;
        Ok(Self {
            domain: domain.clone(),
            domain_id: domain.id(),
            address,
            handle: answer.handle,
            local_key: AtomicU32::new(answer.lkey),
            remote_key: AtomicU32::new(answer.rkey),
            access: AtomicU32::new(access.bits()),
            changing: Mutex::new(()),
        })
    }

    pub(super) fn domain(&self) -> &ProtectionDomain {
        &self.domain
    }

    /// The number of its domain.
    #[inline]
    pub(super) fn domain_id(&self) -> usize {
        self.domain_id
    }

    pub(super) fn address(&self) -> u64 {
        self.address
    }

    pub(super) fn local_key(&self) -> u32 {
        self.local_key.load(Ordering::Acquire)
    }

    pub(super) fn remote_key(&self) -> u32 {
        self.remote_key.load(Ordering::Acquire)
    }

    pub(super) fn access(&self) -> AccessFlags {
        AccessFlags::from_bits_retain(self.access.load(Ordering::Acquire))
    }

    pub(super) fn change_access(&self, access: AccessFlags) -> Result<()> {
        let request = ReregMr {
            response: 0,
            handle: self.handle,
            flags: ReregFlags::CHANGE_ACCESS,
            start: 0,
            length: 0,
            device_address: 0,
            pd: 0,
            access,
        };
        let uverbs = self.domain.context().uverbs();
        // A thread of the parent may have held the lock at the fork.
        if uverbs.is_in_child() {
            return Err(uverbs.closed_error());
        }
        // What is stored is what the kernel has done last.
        let _changing = self.changing.lock();
        let answer = uverbs.ask(Operation::ChangeAccess, &request)?;
        self.local_key.store(answer.lkey, Ordering::Release);
        self.remote_key.store(answer.rkey, Ordering::Release);
        self.access.store(access.bits(), Ordering::Release);
        Ok(())
    }

    /// Invalidates the keys; whether that succeeded.
    fn deregister(&self) -> bool {
        let uverbs = self.domain.context().uverbs();
        let handle = self.handle;
        uverbs.destroy(&DeregMr { handle })
    }
}

/// Memory that can be registered.
///
/// # Safety
/// Until the value is dropped, the address and the length are the same, and the bytes there are its
/// own: devices and peers may write to them at any time, and what accesses them expects that.
pub(crate) unsafe trait Memory: fmt::Debug + Send + Sync + 'static {
    fn address(&self) -> u64;

    /// The length in bytes, at least 1.
    fn len(&self) -> usize;
}

/// Registered memory of this process.
#[derive(Debug)]
pub(super) struct Region<M: Memory> {
    registration: Registration,
    memory: Arc<M>,
}

impl<M: Memory> Region<M> {
    /// Registers memory; returns it on error.
    pub(super) fn register(
        domain: &ProtectionDomain,
        memory: M,
        access: AccessFlags,
    ) -> Result<Self, (Error, M)> {
        let (address, length) = (memory.address(), memory.len());
        // SAFETY: the memory is its own. It is dropped after it was deregistered, and kept if that
        // fails.
        let registered = unsafe { Registration::new(domain, address, length, access) };
        match registered {
            Ok(registration) => Ok(Self {
                registration,
                memory: Arc::new(memory),
            }),
            Err(error) => Err((error, memory)),
        }
    }

    pub(super) fn memory(&self) -> &M {
        &self.memory
    }

    pub(super) fn registration(&self) -> &Registration {
        &self.registration
    }

    #[cfg(test)]
    pub(super) fn weak_memory(&self) -> std::sync::Weak<M> {
        Arc::downgrade(&self.memory)
    }

    /// Keeps the memory until the context is closed, even if the region is dropped.
    pub(super) fn keep(&self) {
        let context = self.registration.domain.context();
        let memory: Arc<dyn Memory> = self.memory.clone();
        context.keep(memory);
    }
}

impl<M: Memory> Drop for Region<M> {
    /// Invalidates the keys before the memory is freed. Keeps the memory if the kernel refuses
    /// commands of this process.
    fn drop(&mut self) {
        if !self.registration.deregister() {
            self.keep();
        }
    }
}

/// Memory of the caller that is registered with a device until this is dropped.
#[derive(Debug)]
#[doc(alias = "ibv_mr", alias = "ibv_dereg_mr", alias = "rdma_dereg_mr")]
#[must_use = "dropping it deregisters the memory"]
pub struct RawRegion {
    registration: Registration,
    is_deregistered: bool,
}

impl RawRegion {
    /// # Safety
    /// That of [`ProtectionDomain::register_raw`].
    pub(crate) unsafe fn register(
        domain: &ProtectionDomain,
        address: u64,
        length: usize,
        access: AccessFlags,
    ) -> Result<Self> {
        // SAFETY: passed on.
        let registration = unsafe { Registration::new(domain, address, length, access)? };
        Ok(Self {
            registration,
            is_deregistered: false,
        })
    }

    /// The key for local requests.
    #[must_use]
    #[doc(alias = "lkey")]
    pub fn local_key(&self) -> u32 {
        self.registration.local_key()
    }

    /// The key for peers.
    #[must_use]
    #[doc(alias = "rkey")]
    pub fn remote_key(&self) -> u32 {
        self.registration.remote_key()
    }

    /// Deregisters the memory. Source: `ibv_dereg_mr(3)`.
    ///
    /// # Errors
    /// The region, if the kernel refuses, or in a forked child: requests and peers may still use
    /// the memory.
    #[doc(alias = "ibv_dereg_mr", alias = "rdma_dereg_mr")]
    pub fn deregister(mut self) -> Result<(), Self> {
        self.is_deregistered = self.registration.deregister();
        if self.is_deregistered {
            Ok(())
        } else {
            Err(self)
        }
    }
}

impl Drop for RawRegion {
    fn drop(&mut self) {
        if !self.is_deregistered {
            // If this fails, the caller is responsible for the memory.
            self.registration.deregister();
        }
    }
}
