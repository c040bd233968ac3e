//! Protection domains.

use std::sync::Arc;

use rdmacm_abi::uverbs::DeallocPd;

use crate::context::Context;
use crate::error::Result;

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
