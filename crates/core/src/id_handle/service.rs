//! InfiniBand services.

use rdmacm_abi::{
    Command, CommandNumber, IbService, NoResponse, QueryIbService, QueryIbServiceResponse,
    ResolveIbService, ServiceRecord as Record,
};
use zerocopy::FromZeros;

use super::IdHandle;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::service::ServiceRecord;
use crate::service_resolution::IbServiceResolution;
use crate::ucma::Attachment;

/// How many records a query has space for: few at first, then more, at last as many
/// as the 16 bits of an answer's length allow.
const FEW: usize = 4;
const MORE: usize = 32;
const MOST: usize =
    (u16::MAX as usize - size_of::<QueryIbServiceResponse<0>>()) / size_of::<Record>();

impl IdHandle {
    /// Begins to query the subnet administrator for the records of an InfiniBand service;
    /// ends with an [`AddrInfoResolved`](crate::EventKind::AddrInfoResolved) or
    /// [`AddrInfoError`](crate::EventKind::AddrInfoError) event. Then
    /// [`IbServiceResolution::records`] returns the records. The id must
    /// be bound to an InfiniBand port. If it is dropped before the event, the drop waits until
    /// the query ends, up to two seconds.
    ///
    /// Needs Linux 6.18 or newer.
    /// Source: `rdma_resolve_addrinfo(3)`, the kernel's `cma.c`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] on older kernels. [`Error::Busy`] while the id resolves a
    /// service or a name. [`Error::Command`]: `EOPNOTSUPP` on RoCE and iWARP, `EINVAL` for
    /// an id without a device, or that has resolved a service already. The event fails
    /// with `ENODATA` if the administrator knows no such service, `EINVAL` if it refuses,
    /// `ETIMEDOUT` if it does not answer within two seconds.
    #[doc(alias = "rdma_resolve_addrinfo")]
    pub fn resolve_ib_service(&self, service: IbService) -> Result<IbServiceResolution> {
        let id = self.enter()?;
        let request = ResolveIbService::new(id.kernel_id(), service);
        let operation = Operation::ResolveIbService;
        let outcome = id.resolution().begin_service(|| {
            id.if_supported(CommandNumber::RESOLVE_IB_SERVICE, || {
                let send = || id.send(|| operation, request, &mut NoResponse, Attachment::None);
                id.invalidating(send)
            })
        })?;
        Ok(IbServiceResolution::new(self.clone(), outcome))
    }

    /// The records of the service that the id has resolved, in the administrator's
    /// order; at most 372, the limit of the kernel's answer. Needs Linux 6.18 or newer.
    ///
    /// # Errors
    /// [`Error::Unsupported`] on older kernels. [`Error::Command`]: `ENODATA`
    /// if no service was resolved. [`Error::Answer`] if there are more records.
    #[doc(alias = "rdma_query_addrinfo", alias = "query_ib_service")]
    pub fn ib_service_records(&self) -> Result<Vec<ServiceRecord>> {
        let queries = [
            Self::query_services::<FEW>,
            Self::query_services::<MORE>,
            Self::query_services::<MOST>,
        ];
        for query in queries {
            if let Some(records) = query(self)? {
                return Ok(records);
            }
        }
        let number = QueryIbService::<MOST>::NUMBER;
        let what = "there are more records than an answer can carry";
        Err(Error::answer(Operation::QueryIbService, number, what))
    }

    /// All records; `None` if there are more than `N`.
    fn query_services<const N: usize>(&self) -> Result<Option<Vec<ServiceRecord>>> {
        let id = self.enter()?;
        let mut answer = QueryIbServiceResponse::<N>::new_zeroed();
        let request = QueryIbService::<N>::new(id.kernel_id());
        let operation = Operation::QueryIbService;
        match id.send(|| operation, request, &mut answer, Attachment::None) {
            // QUERY's answer to an option that it does not know.
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                Err(Error::unsupported(CommandNumber::RESOLVE_IB_SERVICE))
            }
            Err(error) => Err(error),
            Ok(()) => {
                let records = answer.records();
                let count = usize::try_from(answer.record_count.get());
                if records.is_empty() {
                    let number = QueryIbService::<N>::NUMBER;
                    let what = "a service is resolved and has no record";
                    return Err(Error::answer(operation, number, what));
                }
                let all = count.is_ok_and(|count| count <= records.len());
                Ok(all.then(|| records.iter().map(ServiceRecord::from).collect()))
            }
        }
    }
}
