//! The resolution of a service for an id.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::event_failure::EventFailure;
use crate::id_handle::IdHandle;
use crate::id_state::Outcome;
use crate::service::ServiceRecord;

/// A query of the subnet administrator that an id has begun, see
/// [`IdHandle::resolve_ib_service`]. Its outcome stays the same when the id resolves something
/// else later.
///
/// It keeps neither the id nor its channel alive. Dropping it changes nothing: the event comes
/// all the same.
#[derive(Clone, Debug)]
pub struct IbServiceResolution {
    id: IdHandle,
    outcome: Arc<Outcome>,
}

impl IbServiceResolution {
    pub(crate) fn new(id: IdHandle, outcome: Arc<Outcome>) -> Self {
        Self { id, outcome }
    }

    /// How the query has ended; `None` before its event is read.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<(), EventFailure>> {
        self.outcome.get().copied()
    }

    /// The records of the service, see [`IdHandle::ib_service_records`].
    ///
    /// # Errors
    /// [`Error::Superseded`] if the id has begun to resolve another service since; those of
    /// [`IdHandle::ib_service_records`].
    #[doc(alias = "rdma_query_addrinfo")]
    pub fn records(&self) -> Result<Vec<ServiceRecord>> {
        let records = self.id.ib_service_records();
        // Afterwards: the records may have been replaced meanwhile.
        if !self.id.enter()?.resolution().is_last_service(&self.outcome) {
            return Err(Error::Superseded);
        }
        records
    }
}
