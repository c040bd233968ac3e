//! Address handles.

use std::sync::Arc;

use rdmacm_abi::AhAttr;
use rdmacm_abi::uverbs::{CreateAh, DestroyAh};
use rdmacm_core::QpType;

use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::request::SendOperation;

/// A way to a peer, for datagrams. Clones are the same handle; the kernel's goes
/// when they and the datagrams on their way are gone.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_ah")]
pub struct AddressHandle(Arc<Created>);

#[derive(Debug)]
struct Created {
    domain: ProtectionDomain,
    handle: u32,
    driver_number: u32,
    longest: u32,
}

impl AddressHandle {
    pub(crate) fn create(domain: &ProtectionDomain, attr: AhAttr) -> Result<Self> {
        let context = domain.context();
        let uverbs = context.uverbs();
        let operation = Operation::CreateAddressHandle;
        if !uverbs.provider().supports(QpType::UD, &SendOperation::Send) {
            return Err(Error::invalid(operation, "the device has no datagrams"));
        }
        let mtu = context.port(attr.port_number)?.active_mtu;
        let request = CreateAh::new(domain.handle(), attr);
        let (answer, driver_number) = uverbs.provider().create_ah(uverbs, operation, request)?;
        Ok(Self(Arc::new(Created {
            domain: domain.clone(),
            handle: answer.handle,
            driver_number,
            // The kernel names an MTU of a port that is there.
            longest: mtu.bytes().unwrap_or(u32::MAX),
        })))
    }

    /// The domain it was made in.
    #[must_use]
    pub fn protection_domain(&self) -> &ProtectionDomain {
        &self.0.domain
    }

    /// Bytes of the longest datagram, the port's MTU when this was made.
    #[must_use]
    pub fn max_message(&self) -> u32 {
        self.0.longest
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
