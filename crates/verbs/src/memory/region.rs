//! Registered memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rdmacm_abi::AccessFlags;
use rdmacm_abi::uverbs::{DeregMr, RegMr, ReregFlags, ReregMr};

use super::backing::Backing;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;

/// A range of addresses that a device knows by keys.
#[derive(Debug)]
struct Registration {
    domain: ProtectionDomain,
    handle: u32,
    local_key: AtomicU32,
    remote_key: AtomicU32,
    access: AtomicU32,
}

impl Registration {
    fn new(
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
            handle: answer.handle,
            local_key: AtomicU32::new(answer.lkey),
            remote_key: AtomicU32::new(answer.rkey),
            access: AtomicU32::new(access.bits()),
        })
    }

    fn change_access(&self, access: AccessFlags) -> Result<()> {
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
        let answer = uverbs.ask(Operation::ChangeAccess, &request)?;
        self.local_key.store(answer.lkey, Ordering::Release);
        self.remote_key.store(answer.rkey, Ordering::Release);
        self.access.store(access.bits(), Ordering::Release);
        Ok(())
    }

    /// Whether the device has forgotten the keys.
    fn deregister(&self) -> bool {
        let uverbs = self.domain.context().uverbs();
        let handle = self.handle;
        uverbs.destroy(&DeregMr { handle })
    }
}

/// Registered memory of this process's heap.
#[derive(Debug)]
pub(crate) struct Region {
    registration: Registration,
    backing: Arc<Backing>,
}

impl Region {
    /// Registers bytes; they come back when that fails.
    pub(super) fn register(
        domain: &ProtectionDomain,
        backing: Backing,
        access: AccessFlags,
    ) -> Result<Self, (Error, Backing)> {
        match Registration::new(domain, backing.address(), backing.len(), access) {
            Ok(registration) => Ok(Self {
                registration,
                backing: Arc::new(backing),
            }),
            Err(error) => Err((error, backing)),
        }
    }

    pub(super) fn backing(&self) -> &Backing {
        &self.backing
    }

    pub(super) fn domain(&self) -> &ProtectionDomain {
        &self.registration.domain
    }

    pub(super) fn local_key(&self) -> u32 {
        self.registration.local_key.load(Ordering::Acquire)
    }

    pub(super) fn remote_key(&self) -> u32 {
        self.registration.remote_key.load(Ordering::Acquire)
    }

    pub(super) fn access(&self) -> AccessFlags {
        AccessFlags::from_bits_retain(self.registration.access.load(Ordering::Acquire))
    }

    pub(super) fn change_access(&self, access: AccessFlags) -> Result<()> {
        self.registration.change_access(access)
    }
}

impl Drop for Region {
    /// The device forgets the keys before the bytes are freed. Where it does not,
    /// because the kernel no longer listens to this process, they are kept.
    fn drop(&mut self) {
        if !self.registration.deregister() {
            let context = self.domain().context();
            context.keep(Arc::clone(&self.backing));
        }
    }
}

/// Memory of the caller's own that a device knows by keys, until this is dropped.
#[derive(Debug)]
#[doc(alias = "ibv_mr")]
pub struct RawRegion(Registration);

impl RawRegion {
    pub(crate) fn register(
        domain: &ProtectionDomain,
        address: u64,
        length: usize,
        access: AccessFlags,
    ) -> Result<Self> {
        Registration::new(domain, address, length, access).map(Self)
    }

    /// The key of local requests.
    #[must_use]
    #[doc(alias = "lkey")]
    pub fn local_key(&self) -> u32 {
        self.0.local_key.load(Ordering::Acquire)
    }

    /// The key that peers use.
    #[must_use]
    #[doc(alias = "rkey")]
    pub fn remote_key(&self) -> u32 {
        self.0.remote_key.load(Ordering::Acquire)
    }
}

impl Drop for RawRegion {
    fn drop(&mut self) {
        // If the device does not listen, the memory is the caller's concern.
        self.0.deregister();
    }
}
