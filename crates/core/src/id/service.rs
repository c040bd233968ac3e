//! InfiniBand services, by the subnet administrator.

use rdmacm_abi::{
    Command, CommandNumber, IbService, NoResponse, QueryIbService, QueryIbServiceResponse,
    ResolveIbService, ServiceRecord,
};
use zerocopy::FromZeros;

use super::IdHandle;
use crate::device::Attachment;
use crate::error::{Error, Result};
use crate::operation::Operation;

/// More records than one question brings are asked for once more; nobody has
/// met as many.
const FIRST: usize = 4;
const MOST: usize = 256;

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
    /// resolves a service or a name, or has resolved a name that nobody has
    /// taken. [`Error::Command`]: `EOPNOTSUPP` on RoCE and iWARP, `EINVAL` for an id without a device.
    #[doc(alias = "rdma_resolve_addrinfo")]
    pub fn resolve_ib_service(&self, service: IbService) -> Result<()> {
        let id = self.enter()?;
        if self.is_busy() || id.resolves_service() {
            return Err(Error::Busy);
        }
        // Before the kernel can report.
        id.resolve_service();
        let request = ResolveIbService::new(id.kernel_id(), service);
        let operation = Operation::ResolveIbService;
        let begun = id.if_known(CommandNumber::RESOLVE_IB_SERVICE, || {
            id.moving_on(|| id.send(operation, &request, &mut NoResponse, Attachment::None))
        });
        if begun.is_err() {
            id.service_is_resolved();
        }
        begun
    }

    /// The records of the service that was resolved, in the administrator's
    /// order. Needs a kernel newer than 6.1.
    ///
    /// # Errors
    /// [`Error::Unsupported`] on older kernels. [`Error::Command`]: `ENODATA`
    /// where no service was resolved.
    #[doc(alias = "rdma_query_addrinfo")]
    pub fn ib_service_records(&self) -> Result<Vec<ServiceRecord>> {
        let (records, count) = self.ask_services::<FIRST>()?;
        if count <= records.len() {
            return Ok(records);
        }
        let (records, count) = self.ask_services::<MOST>()?;
        if count <= records.len() {
            return Ok(records);
        }
        let number = QueryIbService::<MOST>::NUMBER;
        let what = "it counts more records than an administrator has";
        Err(Error::answer(Operation::QueryIbService, number, what))
    }

    /// As many records as there is room for, and how many there are.
    fn ask_services<const N: usize>(&self) -> Result<(Vec<ServiceRecord>, usize)> {
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
                let count = usize::try_from(answer.record_count.get()).unwrap_or(usize::MAX);
                Ok((answer.records().to_vec(), count))
            }
        }
    }
}
