//! Address handles.

use std::sync::Arc;

use rdmacm_abi::AhAttr;
use rdmacm_abi::uverbs::{CreateAh, DestroyAh};
use rdmacm_core::QpType;

use crate::error::{Error, Result};
use crate::opcodes::Opcodes;
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;

/// The address of a peer for datagrams. Clones are the same handle. It is destroyed when all
/// of them and all outstanding datagrams are dropped.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_ah", alias = "ibv_destroy_ah")]
pub struct AddressHandle(Arc<Created>);

#[derive(Debug)]
struct Created {
    domain: ProtectionDomain,
    handle: u32,
    driver_number: u32,
    max_message: u32,
}

impl PartialEq for AddressHandle {
    /// Whether both are the same handle.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for AddressHandle {}

impl AddressHandle {
    pub(crate) fn create(domain: &ProtectionDomain, attr: AhAttr) -> Result<Self> {
        let context = domain.context();
        let uverbs = context.uverbs();
        let operation = Operation::CreateAddressHandle;
        if uverbs.provider().operations(QpType::UD) == Opcodes::NONE {
            return Err(Error::invalid(operation, "the device has no datagrams"));
        }
        let mtu = context.port(attr.port_number)?.active_mtu;
        let request = CreateAh::new(domain.handle(), attr);
        let (answer, driver_number) = uverbs.provider().create_ah(uverbs, operation, request)?;
        Ok(Self(Arc::new(Created {
            domain: domain.clone(),
            handle: answer.handle,
            driver_number,
            // The kernel reports a valid MTU for an existing port.
            max_message: mtu.bytes().unwrap_or(u32::MAX),
        })))
    }

    /// Its protection domain.
    #[must_use]
    pub fn protection_domain(&self) -> &ProtectionDomain {
        &self.0.domain
    }

    /// The length of the longest datagram in bytes: the port's MTU when the handle was created.
    #[must_use]
    pub fn max_message(&self) -> u32 {
        self.0.max_message
    }

    pub(crate) fn driver_number(&self) -> u32 {
        self.0.driver_number
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        let handle = self.handle;
        self.domain
            .context()
            .uverbs()
            .destroy(&DestroyAh { handle });
    }
}
