//! InfiniBand services, by the subnet administrator.

use rdmacm_abi::{
    Command, CommandNumber, IbService, NoResponse, QueryIbService, QueryIbServiceResponse,
    ResolveIbService, ServiceRecord as Record,
};
use zerocopy::FromZeros;

use super::IdHandle;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::service::ServiceRecord;
use crate::ucma::Attachment;

/// Room for so many records at first, then for more; at last for all that an
/// answer can carry, whose length the kernel is told in 16 bits.
const FEW: usize = 4;
const MORE: usize = 32;
const MOST: usize =
    (u16::MAX as usize - size_of::<QueryIbServiceResponse<0>>()) / size_of::<Record>();

impl IdHandle {
    /// Begins to ask the subnet administrator where an InfiniBand service is; an
    /// [`AddrInfoResolved`](crate::EventKind::AddrInfoResolved) or
    /// [`AddrInfoError`](crate::EventKind::AddrInfoError) event reports the end,
    /// and [`ib_service_records`](Self::ib_service_records) has the answer. The
    /// id must be bound to an InfiniBand port.
    ///
    /// Needs a kernel newer than 6.1.
    /// Source: `rdma_resolve_addrinfo(3)`, the kernel's `cma.c`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] on older kernels. [`Error::Busy`] while the id
    /// resolves a service or a name. [`Error::Command`]: `EOPNOTSUPP` on RoCE and iWARP, `EINVAL` for an
    /// id without a device, or that has its answer already. The event fails with
    /// `ENODATA` where the administrator knows no such service, `EINVAL` where it
    /// refuses, `ETIMEDOUT` where it does not answer within two seconds.
    #[doc(alias = "rdma_resolve_addrinfo")]
    pub fn resolve_ib_service(&self, service: IbService) -> Result<()> {
        let id = self.enter()?;
        // Before the kernel can report.
        id.resolution().begin_service()?;
        let request = ResolveIbService::new(id.kernel_id(), service);
        let operation = Operation::ResolveIbService;
        let begun = id.if_supported(CommandNumber::RESOLVE_IB_SERVICE, || {
            id.invalidating(|| id.send(operation, &request, &mut NoResponse, Attachment::None))
        });
        if begun.is_err() {
            id.resolution().cancel_service();
        }
        begun
    }

    /// The records of the service that was resolved, in the administrator's
    /// order, however many there are, up to the 372 an answer of the kernel can
    /// carry. Needs a kernel newer than 6.1.
    ///
    /// # Errors
    /// [`Error::Unsupported`] on older kernels. [`Error::Command`]: `ENODATA`
    /// where no service was resolved. [`Error::Answer`] where there are more.
    #[doc(alias = "rdma_query_addrinfo", alias = "query_ib_service")]
    pub fn ib_service_records(&self) -> Result<Vec<ServiceRecord>> {
        let rooms = [
            Self::ask_services::<FEW>,
            Self::ask_services::<MORE>,
            Self::ask_services::<MOST>,
        ];
        for ask in rooms {
            if let Some(records) = ask(self)? {
                return Ok(records);
            }
        }
        let number = QueryIbService::<MOST>::NUMBER;
        let what = "there are more records than an answer can carry";
        Err(Error::answer(Operation::QueryIbService, number, what))
    }

    /// All records; `None` if there are more than there is room for.
    fn ask_services<const N: usize>(&self) -> Result<Option<Vec<ServiceRecord>>> {
        let id = self.enter()?;
        let mut answer = QueryIbServiceResponse::<N>::new_zeroed();
        let request = QueryIbService::<N>::new(id.kernel_id());
        let operation = Operation::QueryIbService;
        match id.send(operation, &request, &mut answer, Attachment::None) {
            // What QUERY says of an option it does not know.
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
